"""How each task is scored, as a record of functions in one table.

Every metric here is a function of sums over items: an item contributes a row of counts, a metric turns the summed row
into a number. Resampling items is then a matrix product, and the same code serves accuracy, entity F1 and exact match.
A metric is NaN where it is undefined, such as the F1 of unseen entities when there is none; it is then left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.evaluation import ner, question_answering
from components.evaluation.classification import accuracy, describe_labels, label_counts, macro_f1
from components.evaluation.data import read_train_entities
from components.evaluation.picture import draw_confusion_matrix
from components.evaluation.reference import Reference
from components.evaluation.score_pictures import draw_answers, draw_entities
from components.examples import Example, Question, TaskName
from components.text.sentences import Language

Metric = Callable[[NDArray[Any]], NDArray[np.float64]]
Details = dict[str, Any]


def _none(*_: Any) -> list[str]:
    return []


@dataclass(frozen=True)
class ScoredTask:
    """One task's scoring; gold items are the task's examples, predictions what ``read_matched`` gives for it."""

    count: Callable[[Sequence[Any], Sequence[Any], Reference], NDArray[Any]]
    """Gold items, predictions and reference to counts of each of N items, shape [N, K]."""
    metrics: dict[str, Metric]
    """By name: summed counts, shape [..., K], to metric values, shape [...]."""
    describe: Callable[[Sequence[Any], Sequence[Any], Reference, NDArray[Any]], Details]
    """Gold items, predictions, reference and what ``count`` gave for them to details for ``scores.json``."""
    picture: str
    """Name of the picture."""
    draw: Callable[[Details, Reference, str, Path], bool]
    """Details, reference, title and file; whether names are written out in the picture."""
    gold_names: Callable[[Sequence[Any]], list[str]] = _none
    """The label or entity type of everything that gold labels."""
    predicted_names: Callable[[Sequence[Any]], list[str]] = _none
    """The labels or entity types that are predicted."""
    facts: Callable[[Sequence[Any], Sequence[Any]], dict[str, float]] = lambda items, predicted: {}
    """Counts of gold items and predictions, as metrics."""
    scoring: Callable[[Language], dict[str, str]] = lambda language: {}
    """Scheme, mode or definition by metric, stated beside the score."""
    read_seen: Callable[[Path], frozenset[tuple[str, str]]] | None = None
    """Reads what training saw from the data set, for ``seen_metrics``."""
    seen_metrics: frozenset[str] = frozenset()
    """Metrics that need to know it."""
    cluster: Callable[[Any], str] | None = None
    """What an item shares with the items it is not independent of; such items are resampled together."""


def _label_counts(items: Sequence[Example], predicted: Sequence[str], reference: Reference) -> NDArray[Any]:
    return label_counts([item.label for item in items], predicted, reference.labels)


def _describe_labels(
    items: Sequence[Example], predicted: Sequence[str], reference: Reference, counts: NDArray[Any]
) -> Details:
    return describe_labels([item.label for item in items], predicted, reference.labels)


def _draw_labels(details: Details, reference: Reference, title: str, path: Path) -> bool:
    return draw_confusion_matrix(np.array(details["confusion_matrix"]), reference.labels, title, path)


def _passage(item: Question) -> str:
    return item.text


TASKS: dict[TaskName, ScoredTask] = {
    "classification": ScoredTask(
        count=_label_counts,
        metrics={"accuracy": accuracy, "macro_f1": macro_f1},
        describe=_describe_labels,
        picture="confusion_matrix.png",
        draw=_draw_labels,
        gold_names=lambda items: [item.label for item in items],
        predicted_names=lambda predicted: sorted({*predicted}),
    ),
    "ner": ScoredTask(
        count=ner.entity_counts,
        metrics=ner.METRICS,
        describe=ner.describe_entities,
        picture="scores.png",
        draw=draw_entities,
        gold_names=ner.gold_types,
        predicted_names=ner.predicted_types,
        facts=ner.entity_facts,
        scoring=lambda language: ner.SCORING,
        read_seen=read_train_entities,
        seen_metrics=frozenset({"entity_f1_seen", "entity_f1_unseen"}),
    ),
    "question_answering": ScoredTask(
        count=question_answering.answer_counts,
        metrics=question_answering.METRICS,
        describe=question_answering.describe_answers,
        picture="scores.png",
        draw=draw_answers,
        facts=question_answering.answer_facts,
        scoring=lambda language: dict.fromkeys(question_answering.METRICS, question_answering.DEFINITIONS[language]),
        cluster=_passage,
    ),
}
