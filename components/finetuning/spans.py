"""From scores of starts and ends to the best spans, by arithmetic on a band of (start, length).

Legend of shape suffixes: P pieces of the passage, L longest answer in pieces.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from components.finetuning.outputs import SpanScores


def best_spans(output: SpanScores, max_answer_length: int, num_candidates: int) -> list[tuple[int, int, float]]:
    """The spans with the highest sum of start and end score, best first, none overlapping a better one.

    Args:
        output: Scores of one passage.
        max_answer_length: Longest span in pieces.
        num_candidates: Most spans.

    Returns:
        First piece, last piece, score; on a tie the span that starts earlier, then the shorter one. Only finite
        scores; empty for a passage without pieces.
    """
    band_PL = _band(output, max_answer_length)
    spans: list[tuple[int, int, float]] = []
    while band_PL.size and len(spans) < num_candidates:
        first, length = divmod(int(band_PL.argmax()), band_PL.shape[1])
        score = float(band_PL[first, length])
        if not np.isfinite(score):
            break
        spans.append((first, first + length, score))
        _drop_overlapping(band_PL, first, first + length)
    return spans


def _band(output: SpanScores, max_answer_length: int) -> NDArray[np.float64]:
    """Score of the span from piece p with l more pieces at [p, l]; -inf beyond the passage."""
    num_pieces = len(output.start_P)
    longest = min(max_answer_length, num_pieces)
    if not longest:
        return np.empty((0, 0))
    ends = np.concatenate([np.asarray(output.end_P, dtype=np.float64), np.full(longest - 1, -np.inf)])
    band_PL: NDArray[np.float64] = np.asarray(output.start_P, dtype=np.float64)[:, None] + sliding_window_view(
        ends, longest
    )
    return band_PL


def _drop_overlapping(band_PL: NDArray[np.float64], first: int, last: int) -> None:
    longest = band_PL.shape[1]
    band_PL[first : last + 1] = -np.inf
    for start in range(max(0, first - longest + 1), first):
        band_PL[start, first - start :] = -np.inf
