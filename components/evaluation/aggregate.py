"""One number and one interval for several seeds of a rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components.errors import ConfigError, InputError
from components.evaluation.bootstrap import percentile_interval, resampled_metrics
from components.evaluation.data import View, read_gold, read_matched, select_view
from components.evaluation.tasks import TASKS


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
    task: str = "classification",
    confidence_level: float = 0.95,
) -> Aggregate:
    """Mean of a metric over seeds, with an interval for both sources of chance: the seeds and the test items.

    Seeds and items are crossed, as every seed predicts the same items, so both are resampled independently: the
    pigeonhole bootstrap (Owen 2007), which errs on the wide side. Of S seeds S - 1 are drawn, which makes the
    variance between seeds unbiased (Rao & Wu 1988); drawing S would make it (S - 1) / S of what it is, a third too
    small at three seeds. One seed leaves the items alone.

    Args:
        predictions_by_seed: For each seed a ``predictions.jsonl`` or the artifact that holds it.
        gold: The ``test.jsonl`` or the dataset artifact that holds it.
        metric: ``accuracy`` or ``macro_f1``.
        num_resamples: Resamples to draw.
        seed: Seed of the draws.
        view: ``all`` items or the ``never_leaked`` ones.
        task: Task that was predicted.
        confidence_level: Probability to cover.

    Raises:
        ConfigError: No such metric, or no predictions.
        InputError: Predictions do not match the gold items one to one, or the view is empty.
    """
    scored = TASKS[task]
    if metric not in scored.metrics:
        raise ConfigError(f"metric {metric!r} is not one of {', '.join(scored.metrics)}")
    if not predictions_by_seed:
        raise ConfigError("no predictions to aggregate; give one predictions.jsonl per seed")
    gold_path = _inside(gold, "test.jsonl")
    items = read_gold(gold_path)
    kept = select_view(items, view)
    if not len(kept):
        raise InputError(f"none of the {len(items)} test items is in the view {view!r}", file=gold_path)
    gold_labels = [items[number].label for number in kept]
    matched = [read_matched(_inside(path, "predictions.jsonl"), items) for path in predictions_by_seed]
    predicted = [[labels[number] for number in kept] for labels in matched]
    names = sorted({*gold_labels, *(label for labels in predicted for label in labels)})
    counts = [scored.item_counts(gold_labels, labels, names) for labels in predicted]
    function = scored.metrics[metric]
    mean = float(np.mean([function(one.sum(axis=0)) for one in counts]))
    values = resampled_metrics(counts, [function], num_resamples, seed)[0]
    averaged = (values * _seed_weights(len(counts), num_resamples, seed)).sum(axis=0)
    return Aggregate(mean, *percentile_interval(averaged, confidence_level), len(counts), len(kept))


def _seed_weights(num_seeds: int, num_resamples: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Share of each seed in each resample, shape [S, R]; columns sum to 1."""
    num_draws = max(num_seeds - 1, 1)
    generator = np.random.default_rng([seed, num_seeds])
    drawn = generator.multinomial(num_draws, [1 / num_seeds] * num_seeds, size=num_resamples)
    return np.asarray(drawn.T / num_draws, dtype=np.float64)


def _inside(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path
