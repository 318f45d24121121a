"""What differs between tasks, as a record of functions in one table.

Encoder families know nothing of how a task is decoded or scored, and tasks know nothing of encoders. They meet in the
outputs of ``outputs.py``, which are the same for every family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.examples import TaskName
from components.finetuning.classification import decode_labels, parse_text, read_classification, score_labels
from components.finetuning.config import (
    ClassificationConfig,
    FinetuningConfig,
    NerConfig,
    QuestionAnsweringConfig,
)
from components.finetuning.data import TaskData
from components.finetuning.ner import decode_tags, parse_tagged, read_ner, score_tags
from components.finetuning.question_answering import (
    decode_answers,
    parse_question,
    read_question_answering,
    score_answers,
    tune_threshold,
)
from components.text.normalization import NormalizationConfig

Facts = Mapping[str, Any]
"""What ``task.json`` of a model says, as JSON values."""


@dataclass(frozen=True)
class Task:
    """One supervised task. Examples, outputs and predictions are those of the task; see ``outputs.py``."""

    name: TaskName
    config: type[FinetuningConfig]
    read: Callable[[Path, Any], TaskData[Any]]
    """Dataset and settings to checked examples."""
    parse_input: Callable[[int, Any, Facts, NormalizationConfig], Any]
    """Position, serving input, facts and recipe to an example without gold."""
    decode: Callable[[Sequence[Any], Any, Facts], list[Any]]
    """Examples, their outputs and facts to predictions, which carry the examples' ids."""
    score: Callable[[Sequence[Any], Sequence[Any], Facts], dict[str, float]]
    """Gold examples, their predictions and facts to validation metrics."""
    tune: Callable[[Sequence[Any], Sequence[Any], Facts], tuple[dict[str, Any], list[Any]]]
    """Gold examples, predictions decoded without tuning and facts to tuned facts and predictions."""
    block_size: int
    """Examples read, scored and decoded together: memory does not grow with their number."""


def tune_nothing(examples: Sequence[Any], predictions: Sequence[Any], facts: Facts) -> tuple[dict[str, Any], list[Any]]:
    """For tasks without anything to tune after training."""
    return dict(facts), list(predictions)


TASKS: dict[TaskName, Task] = {
    "classification": Task(
        "classification", ClassificationConfig, read_classification, parse_text, decode_labels, score_labels,
        tune_nothing, block_size=2048,
    ),
    "ner": Task("ner", NerConfig, read_ner, parse_tagged, decode_tags, score_tags, tune_nothing, block_size=512),
    "question_answering": Task(
        "question_answering", QuestionAnsweringConfig, read_question_answering, parse_question, decode_answers,
        score_answers, tune_threshold, block_size=128,
    ),
}  # fmt: skip
