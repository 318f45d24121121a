"""Predictions and gold labels in, scores out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from components.artifacts import open_artifact
from components.contract import LogMetrics, Metrics, ignore_metrics
from components.errors import ArtifactError, InputError
from components.evaluation.bootstrap import Estimate, bootstrap
from components.evaluation.config import EvaluationConfig
from components.evaluation.data import View, read_gold, read_matched, select_view
from components.evaluation.picture import draw_confusion_matrix
from components.evaluation.tasks import TASKS
from components.examples import read_labels
from components.formats import write_json

COSTS = ("train_seconds", "num_parameters", "test_items_per_second", "model_bytes")
"""Metrics of fine-tuning that are shown beside the score."""
SUFFIXES: dict[View, str] = {"all": "", "never_leaked": "_clean"}


def evaluate(
    config: EvaluationConfig,
    *,
    predictions: Path,
    dataset: Path,
    out_dir: Path,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Score predictions against gold labels, on all test items and on those never leaked into any training text.

    A pure function of two files: no model is loaded. The costs are copied from the manifest of the predictions, so
    that one run shows what a score was paid with; they are in the metrics only, never in the files.

    Args:
        config: Settings.
        predictions: Published fine-tuning artifact with ``predictions.jsonl``.
        dataset: Dataset artifact with ``test.jsonl`` and ``labels.json``.
        out_dir: Receives ``scores.json`` and ``confusion_matrix.png``.
        log_metrics: Receives ``progress``.

    Returns:
        ``accuracy`` and ``macro_f1``, each with ``_low`` and ``_high``, the same with ``_clean`` before the bound for
        the never-leaked items (absent when there are none), counts, and the costs.

    Raises:
        InputError: Predictions and gold items do not match one to one, or a predicted label is unknown.
        ArtifactError: ``predictions`` has no manifest, or its manifest lacks a cost.
    """
    costs = _read_costs(predictions)
    items = read_gold(dataset / "test.jsonl")
    predicted = read_matched(predictions / "predictions.jsonl", items)
    known = read_labels(dataset)
    if unknown := sorted({*predicted} - {*known}):
        raise InputError(
            f"predicted labels {', '.join(map(repr, unknown[:5]))} are not in labels.json",
            file=predictions / "predictions.jsonl",
            remedy="evaluate on the dataset that the model was fine-tuned on",
        )
    # A gold label that train lacks gets a row of its own; no prediction can be right about it.
    labels = known + sorted({item.label for item in items} - {*known})
    metrics: dict[str, float] = {}
    counts: dict[str, float] = {"num_unseen_labels": sum(item.label not in known for item in items)}
    views: dict[str, Any] = {}
    for view, suffix in SUFFIXES.items():
        kept = select_view(items, view)
        counts[f"num{suffix or '_test'}_items"] = len(kept)
        if len(kept):
            gold_kept, predicted_kept = [items[n].label for n in kept], [predicted[n] for n in kept]
            estimates, views[view] = _score_view(config, gold_kept, predicted_kept, labels)
            metrics |= _flatten(estimates, suffix)
    matrix = np.array(views["all"]["confusion_matrix"])
    title = f"accuracy {metrics['accuracy']:.3f}, {len(items):,} test items"
    written = draw_confusion_matrix(matrix, labels, title, out_dir / "confusion_matrix.png")
    facts = {"labels": labels, "labels_in_picture": "names" if written else "numbers", **config.model_dump()}
    write_json(out_dir / "scores.json", {**facts, "views": views})
    log_metrics({"progress": 1.0})
    # Scores first: MLflow's compare page opens on the first metric of a run.
    return {**metrics, **costs, **counts}


def _read_costs(predictions: Path) -> dict[str, float]:
    stored = open_artifact(predictions, verify=False).metrics
    if missing := [name for name in COSTS if name not in stored]:
        raise ArtifactError(
            f"{predictions}: the manifest has no {', '.join(missing)}; evaluate needs a fine-tuning artifact"
        )
    return {name: stored[name] for name in COSTS}


def _score_view(
    config: EvaluationConfig, gold: list[str], predicted: list[str], labels: list[str]
) -> tuple[dict[str, Estimate], dict[str, Any]]:
    task = TASKS[config.task]
    counts = task.item_counts(gold, predicted, labels)
    estimates = {
        name: bootstrap(
            counts,
            metric,
            num_resamples=config.num_resamples,
            confidence_level=config.confidence_level,
            seed=config.seed,
        )
        for name, metric in task.metrics.items()
    }
    scores = {name: asdict(estimate) for name, estimate in estimates.items()}
    return estimates, {"num_items": len(gold), "metrics": scores, **task.describe(gold, predicted, labels)}


def _flatten(estimates: dict[str, Estimate], suffix: str) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, estimate in estimates.items():
        flat |= {
            f"{name}{suffix}": estimate.value,
            f"{name}{suffix}_low": estimate.low,
            f"{name}{suffix}_high": estimate.high,
        }
    return flat
