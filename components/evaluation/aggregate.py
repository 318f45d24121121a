"""One number and one interval for several seeds of a rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.errors import ConfigError, InputError
from components.evaluation.bootstrap import percentile_interval, resampled_metrics, sum_clusters
from components.evaluation.data import View, read_gold, read_matched, select_view
from components.evaluation.reference import Reference
from components.evaluation.tasks import TASKS, ScoredTask
from components.examples import TaskName, read_task
from components.text.sentences import Language


@dataclass(frozen=True)
class Aggregate:
    """A metric over seeds."""

    mean: float
    low: float
    high: float
    num_seeds: int
    num_items: int


def aggregate(
    predictions_by_seed: Sequence[Path],
    gold: Path,
    metric: str,
    *,
    num_resamples: int,
    seed: int,
    view: View = "all",
    task: TaskName | None = None,
    language: Language = "zh",
    confidence_level: float = 0.95,
) -> Aggregate:
    """Mean of a metric over seeds, with an interval for both sources of chance: the seeds and the test items.

    Seeds and items are crossed, as every seed predicts the same items, so both are resampled independently: the
    pigeonhole bootstrap (Owen 2007), which errs on the wide side. Of S seeds S - 1 are drawn, which makes the
    variance between seeds unbiased (Rao & Wu 1988); drawing S would make it (S - 1) / S of what it is, a third too
    small at three seeds. One seed leaves the items alone. Questions on one passage are resampled together.

    Args:
        predictions_by_seed: For each seed a ``predictions.jsonl`` or the artifact that holds it.
        gold: The dataset artifact, or its ``test.jsonl``.
        metric: A metric of the task, such as ``accuracy``, ``entity_f1`` or ``f1``.
        num_resamples: Resamples to draw.
        seed: Seed of the draws.
        view: ``all`` items or the ``never_leaked`` ones.
        task: Task that was predicted; the one in the dataset's ``task.json`` unless given.
        language: Whose definition scores an answer.
        confidence_level: Probability to cover.

    Raises:
        ConfigError: No such metric, or no predictions.
        InputError: Predictions do not match the gold items one to one, or nothing in the view has this metric.
        ArtifactError: No task is given and there is no ``task.json``.
    """
    folder, gold_path = (gold, gold / "test.jsonl") if gold.is_dir() else (gold.parent, gold)
    task = task or read_task(folder)
    scored = TASKS[task]
    if metric not in scored.metrics:
        raise ConfigError(f"metric {metric!r} is not one of {', '.join(scored.metrics)}")
    if not predictions_by_seed:
        raise ConfigError("no predictions to aggregate; give one predictions.jsonl per seed")
    items = read_gold(gold_path, task)
    kept = select_view(items, view)
    if not len(kept):
        raise InputError(f"none of the {len(items)} test items is in the view {view!r}", file=gold_path)
    matched = [read_matched(_inside(path, "predictions.jsonl"), items, task) for path in predictions_by_seed]
    predicted = [[values[number] for number in kept] for values in matched]
    seen = scored.read_seen(folder) if scored.read_seen and metric in scored.seen_metrics else frozenset()
    counts = _count_seeds(scored, [items[number] for number in kept], predicted, Reference((), language, seen))
    function = scored.metrics[metric]
    mean = float(np.mean([function(one.sum(axis=0)) for one in counts]))
    if np.isnan(mean):
        raise InputError(f"nothing in the view {view!r} of the test items has a {metric}", file=gold_path)
    values = resampled_metrics(counts, [function], num_resamples, seed)[0]
    averaged = (values * seed_weights(len(counts), num_resamples, seed)).sum(axis=0)
    return Aggregate(mean, *percentile_interval(averaged, confidence_level), len(counts), len(kept))


def _count_seeds(
    scored: ScoredTask, items: Sequence[Any], predicted: Sequence[Sequence[Any]], reference: Reference
) -> list[NDArray[Any]]:
    """Counts of every seed's predictions, with the same columns: shape [N or number of clusters, K] each."""
    names = {*scored.gold_names(items), *(name for values in predicted for name in scored.predicted_names(values))}
    reference = replace(reference, labels=tuple(sorted(names)))
    counts = [scored.count(items, values, reference) for values in predicted]
    if scored.cluster is None:
        return counts
    clusters = [scored.cluster(item) for item in items]
    return [sum_clusters(one, clusters) for one in counts]


def seed_weights(num_seeds: int, num_resamples: int, seed: int) -> NDArray[np.float64]:
    """Share of each seed in each resample, shape [S, R]; columns sum to 1."""
    num_draws = max(num_seeds - 1, 1)
    generator = np.random.default_rng([seed, num_seeds])
    drawn = generator.multinomial(num_draws, [1 / num_seeds] * num_seeds, size=num_resamples)
    return np.asarray(drawn.T / num_draws, dtype=np.float64)


def _inside(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path
