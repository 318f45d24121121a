"""Predictions and gold items in, scores out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.artifacts import open_artifact
from components.contract import LogMetrics, Metrics, ignore_metrics
from components.errors import ArtifactError, InputError
from components.evaluation.bootstrap import Estimate, bootstrap_all, sum_clusters
from components.evaluation.config import MAIN_METRIC, EvaluationConfig
from components.evaluation.data import View, read_gold, read_matched, select_view
from components.evaluation.reference import Reference
from components.evaluation.tasks import TASKS, ScoredTask
from components.examples import read_labels, read_task
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
    """Score predictions against gold, on all test items and on those never leaked into any training text.

    A pure function of files: no model is loaded. The costs are copied from the manifest of the predictions, so that
    one run shows what a score was paid with; they are in the metrics only, never in the files.

    Args:
        config: Settings.
        predictions: Published fine-tuning artifact with ``predictions.jsonl``.
        dataset: Dataset artifact with ``task.json``, ``test.jsonl`` and, for tasks with labels, ``labels.json``.
        out_dir: Receives ``scores.json`` and the task's picture.
        log_metrics: Receives ``progress``.

    Returns:
        The task's metrics, each with ``_low`` and ``_high``, the same with ``_clean`` before the bound for the
        never-leaked items (absent when there are none, as is a metric without anything to score), counts, and costs.

    Raises:
        InputError: Predictions and gold items do not match one to one, one does not fit its item, a predicted label is
            unknown, or there is nothing to score.
        ArtifactError: ``dataset`` has no task, ``predictions`` has no manifest, or its manifest lacks a cost.
    """
    costs = _read_costs(predictions)
    task = read_task(dataset)
    scored = TASKS[task]
    items = read_gold(dataset / "test.jsonl", task)
    predicted = read_matched(predictions / "predictions.jsonl", items, task)
    reference, counts = _read_reference(config, scored, items, predicted, dataset, predictions)
    counts |= scored.facts(items, predicted)
    metrics: dict[str, float] = {}
    views: dict[str, Any] = {}
    for view, suffix in SUFFIXES.items():
        kept = select_view(items, view)
        counts[f"num{suffix or '_test'}_items"] = len(kept)
        if len(kept):
            chosen = [items[n] for n in kept], [predicted[n] for n in kept]
            estimates, views[view] = _score_view(config, scored, *chosen, reference)
            metrics |= _flatten(estimates, suffix)
    main = MAIN_METRIC[task]
    title = f"{main} {metrics[main]:.3f}, {len(items):,} test items"
    written = scored.draw(views["all"], reference, title, out_dir / scored.picture)
    names = {"labels": list(reference.labels), "labels_in_picture": "names" if written else "numbers"}
    write_json(out_dir / "scores.json", {"task": task, **names, **config.model_dump(), "views": views})
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


def _read_reference(
    config: EvaluationConfig,
    scored: ScoredTask,
    items: Sequence[Any],
    predicted: Sequence[Any],
    dataset: Path,
    predictions: Path,
) -> tuple[Reference, dict[str, float]]:
    """What the scores refer to, and how many gold labels training could not know."""
    found = scored.gold_names(items)
    known = read_labels(dataset) if (dataset / "labels.json").is_file() else []
    if unknown := sorted({*scored.predicted_names(predicted)} - {*known}):
        raise InputError(
            f"predicted labels {', '.join(map(repr, unknown[:5]))} are not in labels.json",
            file=predictions / "predictions.jsonl",
            remedy="evaluate on the dataset that the model was fine-tuned on",
        )
    # A gold label that train lacks gets columns of its own; no prediction can be right about it.
    labels = known + sorted({*found} - {*known})
    seen = scored.read_seen(dataset) if scored.read_seen else frozenset()
    counts: dict[str, float] = {"num_unseen_labels": sum(name not in known for name in found)} if known else {}
    return Reference(tuple(labels), config.language, seen), counts


def _score_view(
    config: EvaluationConfig, scored: ScoredTask, items: Sequence[Any], predicted: Sequence[Any], reference: Reference
) -> tuple[dict[str, Estimate], dict[str, Any]]:
    counts = scored.count(items, predicted, reference)
    facts: dict[str, Any] = {"num_items": len(items), **scored.describe(items, predicted, reference, counts)}
    if scored.cluster:
        counts = sum_clusters(counts, [scored.cluster(item) for item in items])
        facts["num_clusters"] = len(counts)
    sums = counts.sum(axis=0)
    defined = {name: metric for name, metric in scored.metrics.items() if not math.isnan(metric(sums))}
    estimates = bootstrap_all(
        counts,
        defined,
        num_resamples=config.num_resamples,
        confidence_level=config.confidence_level,
        seed=config.seed,
    )
    scoring = scored.scoring(reference.language)
    stated = {name: {"scoring": scoring[name]} if name in scoring else {} for name in estimates}
    scores = {name: {**asdict(estimate), **stated[name]} for name, estimate in estimates.items()}
    return estimates, {**facts, "metrics": scores}


def _flatten(estimates: dict[str, Estimate], suffix: str) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, estimate in estimates.items():
        flat |= {
            f"{name}{suffix}": estimate.value,
            f"{name}{suffix}_low": estimate.low,
            f"{name}{suffix}_high": estimate.high,
        }
    return flat
