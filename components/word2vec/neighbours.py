"""Nearest neighbours of frequent words: the first look at what vectors have learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def frequent_words(counts: Mapping[str, int], num_words: int) -> list[str]:
    """The most frequent words of at least two letters; word pieces and punctuation tell little.

    Args:
        counts: Words, most frequent first.
        num_words: Most words returned.
    """
    return [word for word in counts if len(word) > 1 and word.isalpha()][:num_words]


def nearest_neighbours(
    words: list[str], vectors_VD: NDArray[np.float32], queries: list[str], num_neighbours: int
) -> dict[str, list[dict[str, Any]]]:
    """The most similar words of each query by cosine, the query itself left out.

    Args:
        words: V words.
        vectors_VD: Shape [V, D].
        queries: Words among ``words``.
        num_neighbours: Neighbours per query.

    Returns:
        For every query, ``{"word", "cosine"}`` from near to far; cosines rounded to four digits.
    """
    index = {word: row for row, word in enumerate(words)}
    unit_VD = vectors_VD / np.maximum(np.linalg.norm(vectors_VD, axis=1, keepdims=True), 1e-12)
    found = {}
    for query in queries:
        cosines = np.round(unit_VD @ unit_VD[index[query]], 4)
        order = [row for row in np.argsort(-cosines, kind="stable") if row != index[query]][:num_neighbours]
        found[query] = [{"word": words[row], "cosine": float(f"{cosines[row]:.4f}")} for row in order]
    return found
