"""The best legal sequence of IOB2 tags, exactly, for a batch of texts at once (Viterbi 1967).

Legend of shape suffixes: B texts, T tokens of the longest, K tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.examples import OUTSIDE
from components.finetuning.outputs import TokenScores

BATCH_SIZE = 64
"""Texts decoded together, of similar length."""


@lru_cache(maxsize=8)
def legal_tags(tags: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Which tags may begin a text and which may follow which: 0 for yes, -inf for no.

    I-X continues B-X or I-X and nothing else (IOB2; Tjong Kim Sang & De Meulder 2003).

    Returns:
        Shapes [K] and [K, K], from row to column.
    """
    inside = np.array([tag.startswith("I-") for tag in tags])
    types = np.array([tag if tag == OUTSIDE else tag[2:] for tag in tags])
    continues = types[:, None] == types[None, :]
    start_K = np.where(inside, -np.inf, 0.0)
    follow_KK = np.where(inside[None, :] & ~continues, -np.inf, 0.0)
    return start_K, follow_KK


def best_tags(outputs: Sequence[TokenScores], tags: Sequence[str]) -> list[list[int]]:
    """The legal sequence of tags with the highest sum of scores and transitions, for every text.

    Args:
        outputs: Scores of N texts; with transitions in all of them or in none.
        tags: Names of the K tags.

    Returns:
        N lists of tag indices, one a token; the lower index wins a tie.
    """
    found: list[list[int]] = [[] for _ in outputs]
    order = sorted(range(len(outputs)), key=lambda number: len(outputs[number].scores_TK))
    order = [number for number in order if len(outputs[number].scores_TK)]
    start_K, follow_KK = legal_tags(tuple(tags))
    for begin in range(0, len(order), BATCH_SIZE):
        numbers = order[begin : begin + BATCH_SIZE]
        transitions = outputs[numbers[0]].transitions_KK
        scores_KK = follow_KK if transitions is None else follow_KK + transitions
        paths = _decode([outputs[number].scores_TK for number in numbers], start_K, scores_KK)
        for number, path in zip(numbers, paths, strict=True):
            found[number] = path
    return found


def _decode(
    scores: Sequence[NDArray[np.floating[Any]]], start_K: NDArray[np.float64], follow_KK: NDArray[np.float64]
) -> list[list[int]]:
    """Padding repeats the best end: its scores are zero and every tag points to itself."""
    lengths_B = np.array([len(rows) for rows in scores])
    num_texts, longest, num_tags = len(scores), int(lengths_B.max()), len(start_K)
    scores_BTK = np.zeros((num_texts, longest, num_tags))
    for number, rows in enumerate(scores):
        scores_BTK[number, : len(rows)] = rows
    own_K = np.arange(num_tags)
    came_from_BTK = np.empty((num_texts, longest, num_tags), dtype=np.int32)
    best_BK = scores_BTK[:, 0] + start_K
    for step in range(1, longest):
        paths_BKK = best_BK[:, :, None] + follow_KK
        from_BK = paths_BKK.argmax(axis=1)
        reached_BK = np.take_along_axis(paths_BKK, from_BK[:, None], axis=1)[:, 0] + scores_BTK[:, step]
        active_B = (step < lengths_B)[:, None]
        best_BK = np.where(active_B, reached_BK, best_BK)
        came_from_BTK[:, step] = np.where(active_B, from_BK, own_K)
    tag_B = best_BK.argmax(axis=1)
    path_BT = np.empty((num_texts, longest), dtype=np.int64)
    for step in range(longest - 1, -1, -1):
        path_BT[:, step] = tag_B
        if step:
            tag_B = came_from_BTK[np.arange(num_texts), step, tag_B]
    return [path_BT[number, :length].tolist() for number, length in enumerate(lengths_B)]
