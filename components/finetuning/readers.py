"""A reader: how an encoder reads one task. The training loop and prediction know nothing but this record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.finetuning.encoders import LoadedEncoder
from components.finetuning.model import TaskModel
from components.finetuning.rows import Row, Rows
from components.text.normalization import NormalizationConfig

RowOutput = NDArray[np.float32]


@dataclass(frozen=True)
class ReaderInputs:
    """What a reader is made of; the same before training and after loading, dropout and smoothing aside."""

    loaded: LoadedEncoder
    facts: Mapping[str, Any]
    """What the model's ``task.json`` says."""
    normalization: NormalizationConfig
    dropout: float = 0.0
    label_smoothing: float = 0.0


@dataclass(frozen=True)
class Reader:
    """One encoder reading one task."""

    model: TaskModel
    """Its forward pass maps a batch to one tensor whose first dimension is the rows."""
    pads: Mapping[str, int]
    """Value to pad each array of a row with; 0 for the others."""
    training_rows: Callable[[Sequence[Any]], Rows]
    """Gold examples to rows with targets."""
    rows: Callable[[Sequence[Any]], Rows]
    """Examples to rows without targets."""
    cut: Callable[[RowOutput, Row], RowOutput]
    """A row's output without its padding."""
    assemble: Callable[[Rows, Sequence[RowOutput]], Any]
    """Rows and their outputs to the task's outputs, one per example."""
