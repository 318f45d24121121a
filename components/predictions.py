"""Predictions of every task, one JSON object a line, in the order of the inputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from components.errors import ArtifactError
from components.examples import TaskName
from components.formats import read_jsonl, write_jsonl


@dataclass(frozen=True)
class Prediction:
    """The predicted label of one example and the probability of every label."""

    id: str
    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Entity:
    """An entity: ``text[start:end]`` of the predicted text, in code points."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True)
class TagPrediction:
    """The predicted IOB2 tag of every token, and the entities they make up."""

    id: str
    tags: tuple[str, ...]
    entities: tuple[Entity, ...]


@dataclass(frozen=True)
class AnswerCandidate:
    """A span of the passage as a possible answer: ``passage[start:end]``, in code points."""

    text: str
    start: int
    end: int
    score: float
    """Sum of the start's and the end's logit; comparable within one question."""


@dataclass(frozen=True)
class AnswerPrediction:
    """The predicted answer to a question; "" at 0:0 says that the passage holds none."""

    id: str
    answer: str
    start: int
    end: int
    no_answer_score: float
    """How much better "no answer" scores than the best span; above the model's threshold the answer is ""."""
    candidates: tuple[AnswerCandidate, ...]
    """The best spans, best first."""


AnyPrediction: TypeAlias = Prediction | TagPrediction | AnswerPrediction


def _parse_tags(row: dict[str, Any]) -> TagPrediction:
    return TagPrediction(row["id"], tuple(row["tags"]), tuple(Entity(**entity) for entity in row["entities"]))


def _parse_answer(row: dict[str, Any]) -> AnswerPrediction:
    return AnswerPrediction(**{**row, "candidates": tuple(AnswerCandidate(**item) for item in row["candidates"])})


_PARSERS: dict[TaskName, Callable[[dict[str, Any]], AnyPrediction]] = {
    "classification": lambda row: Prediction(**row),
    "ner": _parse_tags,
    "question_answering": _parse_answer,
}


def parse_prediction(task: TaskName, row: dict[str, Any]) -> AnyPrediction:
    """The prediction in one row of a task's ``predictions.jsonl``."""
    return _PARSERS[task](row)


def write_predictions(path: Path, predictions: Iterable[AnyPrediction]) -> int:
    """Write ``predictions.jsonl``; returns the number of predictions.

    Raises:
        ArtifactError: A number in a prediction is not finite.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for prediction in predictions:
            row = asdict(prediction)
            if not _finite(row):
                raise ArtifactError(f"prediction {prediction.id} has a number that is not finite")
            yield row

    return write_jsonl(path, rows())


def read_predictions(path: Path) -> list[Prediction]:
    """Read the ``predictions.jsonl`` of a classification."""
    return [Prediction(**row) for row in read_jsonl(path)]


def read_any_predictions(path: Path, task: TaskName) -> list[AnyPrediction]:
    """Read the ``predictions.jsonl`` of a task."""
    return [parse_prediction(task, row) for row in read_jsonl(path)]


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_finite(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(_finite(item) for item in value)
    return not isinstance(value, float) or math.isfinite(value)


def prediction_columns(predictions: Iterable[AnyPrediction]) -> dict[str, list[Any]]:
    """Predictions as columns of a table, without ids; values that are no scalars become JSON text."""
    columns: dict[str, list[Any]] = {}
    for prediction in predictions:
        for name, value in asdict(prediction).items():
            if name != "id":
                nested = isinstance(value, dict | list | tuple)
                columns.setdefault(name, []).append(json.dumps(value, ensure_ascii=False) if nested else value)
    return columns
