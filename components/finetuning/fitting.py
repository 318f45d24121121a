"""What fitting a model takes and gives, whatever the family and the task.

A family has a ``Learner`` for every task it can do. ``fit`` writes a model into ``model_dir``; ``restore`` gives the
function that maps examples to the task's outputs (``outputs.py``). Texts of classification examples are normalised
already; NER and question answering keep the original text, and a learner reads it through ``PieceEncoder``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.contract import LogMetrics
from components.errors import TrainingError
from components.examples import TaskName
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import TaskData, blocks
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


ScoreInputs = Callable[[Sequence[Any]], Any]
"""N examples of the task, gold or not, to its outputs: classification an array [N, num_labels] (float64), NER N
``TokenScores``, question answering N ``SpanScores``. An example's output does not depend on the other examples."""


@dataclass(frozen=True)
class FittingInputs:
    """Everything a learner needs to fit itself."""

    encoder: Path
    data: TaskData[Any]
    task: Task
    config: FinetuningConfig
    """The task's own settings: ``ClassificationConfig``, ``NerConfig`` or ``QuestionAnsweringConfig``."""
    model_dir: Path
    """Where to write the encoder's files and the head."""
    checkpoint_dir: Path | None
    log_metrics: LogMetrics

    @property
    def facts(self) -> dict[str, Any]:
        """What ``task.json`` will say before the learner adds its own facts."""
        return {"task": self.config.task, "labels": self.data.labels, **self.data.facts}

    def validate(self, score_inputs: ScoreInputs) -> dict[str, float]:
        """Validation metrics of a model; for question answering after tuning the no-answer threshold."""
        return self.score_validation(
            prediction
            for block in blocks(self.data.validation, self.task.block_size)
            for prediction in self.task.decode(block, score_inputs(block), self.facts)
        )

    def score_validation(self, predictions: Iterator[Any]) -> dict[str, float]:
        """Validation metrics of untuned predictions, in the order of the validation examples."""
        examples = self.data.validation
        facts, tuned = self.task.tune(examples, list(predictions), self.facts)
        return self.task.score(examples, tuned, facts)


@dataclass(frozen=True)
class Fitted:
    """A fitted model whose files are in ``model_dir``."""

    report: WeightReport
    num_parameters: int
    """Encoder and head together."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What ``restore`` must know beside the files, as JSON values."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The learner's own metrics, such as ``best_epoch``."""
    unused: dict[str, list[str]] = field(default_factory=dict)
    """Ids of training examples that could not be learned from, by reason."""


@dataclass(frozen=True)
class Learner:
    """How one family learns one task."""

    fit: Callable[[FittingInputs], Fitted]
    restore: Callable[[Path, Mapping[str, Any], Task, int], ScoreInputs]
    """Model folder, its ``task.json``, the task and the batch size to the function that scores examples. The recipe of
    the training texts is ``read_normalization(model_dir)``."""


@dataclass(frozen=True)
class Family:
    """One family of encoders: what it can learn."""

    learners: Mapping[TaskName, Learner]


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
