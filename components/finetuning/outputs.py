"""What a fitted model says about an example, the same for every family, so that nothing later asks for the family.

A classifier gives an array of logits, shape [N, num_labels]. Legend of shape suffixes: T gold tokens, K tags, P pieces
of a passage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTSIDE_INDEX = 0
"""Index of the tag O among ``tag_names``."""


@dataclass(frozen=True)
class TokenScores:
    """Scores of every tag for every token of one text: T is always the number of its gold tokens."""

    scores_TK: NDArray[np.floating[Any]]
    """Higher is likelier; comparable within a text. A token that no piece stands for has the row of
    ``outside_row``."""
    transitions_KK: NDArray[np.floating[Any]] | None = None
    """Score of a tag (column) after another (row), from a CRF."""


def outside_row(num_tags: int) -> NDArray[np.float64]:
    """The row that makes O certain: a token without pieces is in no entity."""
    row = np.full(num_tags, -np.inf)
    row[OUTSIDE_INDEX] = 0.0
    return row


@dataclass(frozen=True)
class SpanScores:
    """Scores of every piece of one passage as the start and as the end of the answer."""

    offsets_P2: NDArray[np.int64]
    """Start and end of every piece in the passage, in code points."""
    start_P: NDArray[np.floating[Any]]
    end_P: NDArray[np.floating[Any]]
    null: float
    """Score of "the passage holds no answer", comparable with start + end."""
