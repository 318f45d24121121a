"""Rows: what goes through a neural model at a time, a text or a window of one, and how rows become batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Batch = dict[str, Tensor]
"""Each array of the rows by its name, padded on the right, shape [B, longest]; its lengths, shape [B], under
``<name>_lengths``."""
NOTHING: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Row:
    """One row of a batch."""

    example: int
    """Position of its example among those the rows were made from."""
    arrays: dict[str, NDArray[np.int64]]
    """What the model reads, each of one dimension and not empty, by name."""
    sources: NDArray[np.int64] = field(default_factory=lambda: NOTHING)
    """Positions in this row's output that speak for their example …"""
    places: NDArray[np.int64] = field(default_factory=lambda: NOTHING)
    """… and the positions in the example's output where they go."""

    @property
    def length(self) -> int:
        """Tokens of its longest array: what its forward pass costs."""
        return max(len(array) for array in self.arrays.values())


@dataclass(frozen=True)
class Rows:
    """The rows of some examples."""

    rows: list[Row]
    contexts: list[Any] = field(default_factory=list)
    """For each example what its output needs beside the rows, such as the offsets of a passage's pieces."""
    counts: dict[str, float] = field(default_factory=dict)
    """What was cut or left out, as metrics."""
    unused: dict[str, list[str]] = field(default_factory=dict)
    """Ids of examples that gave no row to learn from, by reason."""


def as_array(values: Sequence[int]) -> NDArray[np.int64]:
    """An int64 array."""
    return np.asarray(values, dtype=np.int64)


def collate(rows: Sequence[Row], pads: Mapping[str, int], device: torch.device) -> Batch:
    """The rows as one batch.

    Args:
        rows: B rows with the same names.
        pads: Value to pad with, by name; 0 for the others.
        device: Where the model is.
    """
    batch: Batch = {}
    for name in rows[0].arrays:
        arrays = [row.arrays[name] for row in rows]
        lengths = [len(array) for array in arrays]
        padded = np.full((len(rows), max(lengths)), pads.get(name, 0), dtype=np.int64)
        for number, array in enumerate(arrays):
            padded[number, : len(array)] = array
        batch[name] = torch.from_numpy(padded).to(device)
        batch[f"{name}_lengths"] = torch.tensor(lengths, device=device)
    return batch


def mask_of(batch: Batch, name: str) -> Tensor:
    """True where an array has a value, false at its padding; shape [B, longest]."""
    lengths_B = batch[f"{name}_lengths"]
    return torch.arange(batch[name].shape[1], device=lengths_B.device) < lengths_B[:, None]


def sort_key(row: Row) -> tuple[int, bytes]:
    """Orders rows by cost and then by content, so that the order they come in changes nothing."""
    return row.length, b"".join(array.tobytes() for array in row.arrays.values())
