"""Overlapping windows over a long text, and which of them speaks for a position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def cut_windows(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Start and end of the windows that cover ``length`` positions; only the last one may be shorter than ``size``.

    Args:
        length: Positions; 0 gives one empty window.
        size: Most positions in a window.
        overlap: Positions that neighbouring windows share, below ``size``.
    """
    assert 0 <= overlap < size, "windows advance"
    starts = range(0, max(length - overlap, 1), size - overlap)
    return [(start, min(start + size, length)) for start in starts]


def window_of_most_context(windows: Sequence[tuple[int, int]], length: int) -> NDArray[np.int64]:
    """For every position the number of the window that shows most on its poorer side; the earlier one on a tie.

    This is the rule of Devlin et al. (2019) for SQuAD: a window in which the position has 4 neighbours to the left and
    2 to the right counts 2.

    Returns:
        Shape [length].
    """
    best = np.full(length, -1, dtype=np.int64)
    owner = np.zeros(length, dtype=np.int64)
    for number, (start, end) in enumerate(windows):
        inside = np.arange(end - start)
        context = np.minimum(inside, inside[::-1])
        better = context > best[start:end]
        owner[start:end][better] = number
        best[start:end][better] = context[better]
    return owner
