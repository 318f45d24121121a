"""What fitting a model gives, whatever the family, and the check that its pretrained weights are really in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.contract import LogMetrics
from components.errors import TrainingError
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import TaskData
from components.finetuning.tasks import Task
from components.formats import write_json

HEAD = "head.safetensors"
MINIMUM_LOADED = 0.9
"""Smallest share of an encoder's tensors that must come from its artifact; BERT's pooler may be missing."""


@dataclass(frozen=True)
class WeightReport:
    """Names of an encoder's tensors by what became of them when it was loaded."""

    loaded: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """In the model, not in the artifact: freshly initialised."""
    unexpected: tuple[str, ...] = ()
    """In the artifact, not in the model: unused."""


@dataclass(frozen=True)
class FittingInputs:
    """Everything a family needs to fit itself."""

    encoder: Path
    data: TaskData
    task: Task
    config: FinetuningConfig
    model_dir: Path
    """Where to write the encoder's files and the head."""
    checkpoint_dir: Path | None
    log_metrics: LogMetrics


@dataclass(frozen=True)
class Fitted:
    """A fitted model whose files are in ``model_dir``."""

    report: WeightReport
    num_parameters: int
    """Encoder and head together."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What ``restore`` must know beside the files, as JSON values."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The family's own metrics, such as ``best_epoch``."""


ScoreTexts = Callable[[Sequence[str]], NDArray[np.float64]]
"""N texts to head outputs, shape [N, num_labels]; a text's row does not depend on the other texts."""


@dataclass(frozen=True)
class Family:
    """One family of encoders."""

    fit: Callable[[FittingInputs], Fitted]
    restore: Callable[[Path, Mapping[str, Any], Task, int], ScoreTexts]
    """Model folder, its ``task.json``, the task and the batch size to the function that scores texts."""


def write_load_report(path: Path, family: str, report: WeightReport) -> None:
    """Write which tensors were loaded, missing and unexpected."""
    write_json(path, {"family": family, **asdict(report)})


def check_loaded(encoder: Path, report: WeightReport) -> None:
    """Refuse an encoder whose pretrained weights are not in the model, as it would train from scratch unnoticed.

    Raises:
        TrainingError: Less than ``MINIMUM_LOADED`` of the tensors were loaded.
    """
    total = len(report.loaded) + len(report.missing)
    if not report.loaded or len(report.loaded) < MINIMUM_LOADED * total:
        raise TrainingError(
            f"{encoder}: {len(report.loaded)} of {total} tensors of the encoder were loaded; missing: "
            f"{', '.join(report.missing[:5]) or 'all'}; not used: {', '.join(report.unexpected[:5]) or 'none'}. "
            "Remedy: give an encoder artifact of the same architecture and version."
        )
