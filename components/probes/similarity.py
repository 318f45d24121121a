"""What vectors say about how similar words are: correlation with people, triples, analogies, neighbours, orthogonality.

Similarity is the cosine. Where vectors cannot decide, as one-hot vectors never can, the tie is shared between the
answers, so that they score exactly what guessing does.

Legend of shape suffixes: N items, V words, D numbers per vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, spearmanr

from components.probes.intervals import CONFIDENCE_LEVEL

Vectors = NDArray[np.float32]
TIE = 1e-6
"""Cosines in float32 that differ by less are the same."""
LEAST_PAIRS = 10
"""Pairs below which a correlation says nothing."""
_BATCH = 256


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation with its 95 % interval."""

    value: float
    low: float
    high: float
    num_items: int
    num_pairs: int
    """Pairs of the list, those with an unknown word included."""


@dataclass(frozen=True)
class Orthogonality:
    """How far the vectors of different words are from being at right angles."""

    num_words: int
    share_orthogonal: float
    """Share of pairs whose cosine is zero."""
    mean_cosine: float
    """Mean of the cosines' absolute values."""
    max_cosine: float


def unit_rows(vectors_ND: Vectors) -> Vectors:
    """The vectors at length one; zeros stay zeros."""
    lengths = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    return np.asarray(vectors_ND / np.maximum(lengths, 1e-12), dtype=np.float32)


def cosines(first_ND: Vectors, second_ND: Vectors) -> NDArray[np.float64]:
    """Cosine of each row with its counterpart, shape [N]; NaN where either is unknown."""
    return np.asarray(np.einsum("nd,nd->n", unit_rows(first_ND), unit_rows(second_ND), dtype=np.float64))


def correlate(similarities_N: NDArray[np.float64], scores_N: NDArray[np.float64]) -> Correlation | None:
    """Spearman's correlation of similarities with people's scores, and Bonett and Wright's interval (2000).

    Args:
        similarities_N: Cosines; NaN for pairs with an unknown word, which are left out.
        scores_N: What people said.

    Returns:
        None where fewer than ``LEAST_PAIRS`` pairs are known or either side is constant, so that there is no ranking.
    """
    known = np.isfinite(similarities_N)
    ours, theirs = np.round(similarities_N[known], 6), scores_N[known]
    if len(ours) < LEAST_PAIRS or np.ptp(ours) < TIE or np.ptp(theirs) == 0:
        return None
    value = float(spearmanr(ours, theirs).statistic)
    # Fisher's transform; at 1 it has no width, hence the clip.
    center = math.atanh(min(max(value, -0.999999), 0.999999))
    half = norm.ppf((1 + CONFIDENCE_LEVEL) / 2) * math.sqrt((1 + value**2 / 2) / (len(ours) - 3))
    return Correlation(value, math.tanh(center - half), math.tanh(center + half), len(ours), len(known))


def triple_credits(anchor_ND: Vectors, near_ND: Vectors, far_ND: Vectors) -> NDArray[np.float64]:
    """Whether each anchor is nearer the near word: 1, 0, one half for a tie, NaN where a word is unknown."""
    gap = cosines(anchor_ND, near_ND) - cosines(anchor_ND, far_ND)
    return np.where(np.isnan(gap), np.nan, np.where(np.abs(gap) < TIE, 0.5, (gap > 0).astype(np.float64)))


def analogy_credits(vectors_VD: Vectors, questions_N4: NDArray[np.intp], *, offset: bool = True) -> NDArray[np.float64]:
    """Whether the nearest candidate of b − a + c is d: 3CosAdd (Mikolov et al. 2013; Levy & Goldberg 2014, section 3).

    The three words of a question are no candidates. On vectors of length one this maximises
    cos(x, b) − cos(x, a) + cos(x, c).

    Args:
        vectors_VD: Vectors of the candidates, among them all words of the questions.
        questions_N4: Rows of a, b, c and d.
        offset: Without it the nearest candidate of c alone is taken: how much is won without any analogy
            (Linzen 2016, section 3).

    Returns:
        Shape [N]: 1 for right, 0 for wrong, 1/m for a tie of m candidates that d is among.
    """
    unit_VD = unit_rows(vectors_VD)
    credits = np.zeros(len(questions_N4))
    for start in range(0, len(questions_N4), _BATCH):
        a, b, c, d = questions_N4[start : start + _BATCH].T
        target = unit_VD[b] - unit_VD[a] + unit_VD[c] if offset else unit_VD[c]
        scores = target @ unit_VD.T
        rows = np.arange(len(a))
        for asked in (a, b, c):
            scores[rows, asked] = -np.inf
        best = scores >= scores.max(axis=1, keepdims=True) - TIE
        credits[start : start + _BATCH] = best[rows, d] / best.sum(axis=1)
    return credits


def nearest(vectors_VD: Vectors, queries: Sequence[int], num_neighbours: int) -> list[list[tuple[int, float]]]:
    """Rows and cosines of the nearest vectors of each query row, from near to far, itself left out."""
    unit_VD = unit_rows(vectors_VD)
    found = []
    for query in queries:
        similarity_V = np.round(unit_VD @ unit_VD[query], 4)
        order = [row for row in np.argsort(-similarity_V, kind="stable")[: num_neighbours + 1] if row != query]
        found.append([(int(row), float(similarity_V[row])) for row in order[:num_neighbours]])
    return found


def orthogonality(vectors_ND: Vectors) -> Orthogonality | None:
    """How the vectors of N different words stand to each other; None for fewer than two."""
    if len(vectors_ND) < 2:
        return None
    unit_ND = unit_rows(vectors_ND)
    products = np.abs((unit_ND @ unit_ND.T)[np.triu_indices(len(unit_ND), 1)])
    return Orthogonality(len(unit_ND), float((products < TIE).mean()), float(products.mean()), float(products.max()))
