"""The predictions of every rung, seed and labelled budget on one task, as counts on the same test items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.errors import ConfigError
from components.evaluation.bootstrap import resampled_metrics, sum_clusters
from components.evaluation.comparison_config import ComparisonConfig, Entry
from components.evaluation.config import MAIN_METRIC
from components.evaluation.data import View, read_gold, read_matched, select_view
from components.evaluation.reference import Reference
from components.evaluation.tasks import TASKS, Metric
from components.examples import AnyExample, TaskName, read_task


@dataclass(frozen=True)
class Compared:
    """Every set of predictions of a task, counted on all test items."""

    task: TaskName
    metric: str
    function: Metric
    """Summed counts, shape [..., K], to metric values, shape [...]."""
    items: list[AnyExample]
    clusters: list[str] | None
    """What each item shares with the items it is not independent of; None where items are independent."""
    counts: list[NDArray[Any]]
    """For each entry the counts of each of N items, shape [N, K]."""
    num_train: int
    """Examples in the training split."""


@dataclass(frozen=True)
class Resampled:
    """Metric values of some entries in one view; entries share each resample's items."""

    num_items: int
    num_clusters: int
    values: NDArray[np.float64]
    """Metric on the view's items, shape [E]."""
    resampled: NDArray[np.float64]
    """Metric on resampled items, shape [E, R]."""
    counts: tuple[NDArray[Any], ...] = ()
    """Counts of the view's items, shape [N, K] for each of E entries; not summed over clusters."""


def read_compared(config: ComparisonConfig, predictions: Sequence[Path], dataset: Path) -> Compared:
    """Read and count all predictions of one task.

    Raises:
        ConfigError: Entries and predictions differ in number.
        InputError: Predictions do not match the gold items one to one.
        ArtifactError: The dataset has no task.
    """
    if len(predictions) != len(config.entries):
        raise ConfigError(f"{len(predictions)} sets of predictions for {len(config.entries)} entries; give one each")
    task = read_task(dataset)
    scored, metric = TASKS[task], MAIN_METRIC[task]
    items = read_gold(dataset / "test.jsonl", task)
    predicted = [read_matched(_file(path), items, task) for path in predictions]
    names = {*scored.gold_names(items), *(name for values in predicted for name in scored.predicted_names(values))}
    reference = replace(Reference(language=config.language), labels=tuple(sorted(names)))
    counts = [scored.count(items, values, reference) for values in predicted]
    clusters = None if scored.cluster is None else [scored.cluster(item) for item in items]
    return Compared(task, metric, scored.metrics[metric], items, clusters, counts, _count_lines(dataset))


def resample(
    compared: Compared, entries: Sequence[int], view: View, *, num_resamples: int, seed: int
) -> Resampled | None:
    """The metric of some entries on the items of a view and on resamples of them; None where the view is empty.

    Questions on one passage are drawn together, as in ``evaluate``.

    Args:
        compared: All predictions.
        entries: Positions of E entries.
        view: All items, or the never-leaked ones.
        num_resamples: R.
        seed: Seed of the draws.
    """
    kept = select_view(compared.items, view)
    if not len(kept):
        return None
    counts = tuple(compared.counts[number][kept] for number in entries)
    summed = counts
    if compared.clusters is not None:
        clusters = [compared.clusters[number] for number in kept]
        summed = tuple(sum_clusters(one, clusters) for one in counts)
    values = np.array([float(compared.function(one.sum(axis=0))) for one in summed])
    drawn = resampled_metrics(summed, [compared.function], num_resamples, seed)[0]
    return Resampled(len(kept), len(summed[0]), values, drawn, counts)


def budget_of(entry: Entry, num_train: int) -> int:
    """Labelled examples that a run really had: what it asked for, at most the training split."""
    return min(entry.num_train_examples or num_train, num_train)


def verdict_entries(config: ComparisonConfig, num_train: int) -> tuple[int, list[int]]:
    """The entries that the verdict compares: those of the largest labelled budget at which every rung was run.

    Returns:
        The budget, and the entries' positions.

    Raises:
        ConfigError: There is no such budget.
    """
    rungs = {entry.rung for entry in config.entries}
    budgets = [budget_of(entry, num_train) for entry in config.entries]
    for budget in sorted(set(budgets), reverse=True):
        chosen = [number for number, found in enumerate(budgets) if found == budget]
        if {config.entries[number].rung for number in chosen} == rungs:
            return budget, chosen
    raise ConfigError("no number of labels was run for every rung, so that none can be compared; add one to all rungs")


def _file(path: Path) -> Path:
    return path / "predictions.jsonl" if path.is_dir() else path


def _count_lines(dataset: Path) -> int:
    with (dataset / "train.jsonl").open("rb") as stream:
        return sum(1 for _ in stream)
