"""Intervals by resampling (Efron 1979), without a loop over resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 22
"""Largest number of drawn items in memory at a time."""

Metric = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class Estimate:
    """A metric and its interval."""

    value: float
    low: float
    high: float


def draw_weights(num_items: int, num_resamples: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """How often each item is drawn in each resample of ``num_items`` draws with replacement.

    Yields:
        Blocks of shape [R, num_items] whose rows sum to ``num_items``; ``num_resamples`` rows in all.
    """
    generator = np.random.default_rng(seed)
    block = max(1, CHUNK // num_items)
    for start in range(0, num_resamples, block):
        size = min(block, num_resamples - start)
        drawn = generator.integers(0, num_items, size=(size, num_items))
        drawn += np.arange(size)[:, None] * num_items
        counts = np.bincount(drawn.ravel(), minlength=size * num_items)
        yield counts.reshape(size, num_items).astype(np.float32)


def resampled_metrics(
    counts: Sequence[NDArray[Any]], metrics: Sequence[Metric], num_resamples: int, seed: int
) -> NDArray[np.float64]:
    """Every metric of every set of predictions on every resample; all sets share each resample's items.

    Args:
        counts: For each of S sets of predictions on the same items, counts of shape [N, K].
        metrics: M metrics of summed counts.
        num_resamples: R.
        seed: Seed of the draws.

    Returns:
        Shape [M, S, R].
    """
    blocks = []
    for weights in draw_weights(len(counts[0]), num_resamples, seed):
        # Sums of small whole numbers: float32 is exact below 2**24. Counts of fractions come in float64.
        sums = [weights @ one for one in counts]
        blocks.append([[metric(one) for one in sums] for metric in metrics])
    return np.concatenate([np.array(block) for block in blocks], axis=-1)


def sum_clusters(counts: NDArray[Any], clusters: Sequence[str]) -> NDArray[Any]:
    """Counts of whole clusters, so that resampling draws clusters: the cluster bootstrap (Field & Welsh 2007).

    Questions on one passage are right and wrong together; drawing them one by one would give an interval too narrow.

    Args:
        counts: Counts of items, shape [N, K].
        clusters: Name of the cluster of each of N items.

    Returns:
        Shape [C, K] for C clusters, in order of first occurrence.
    """
    index: dict[str, int] = {}
    rows = np.array([index.setdefault(name, len(index)) for name in clusters], dtype=np.intp)
    sums = np.zeros((len(index), counts.shape[1]), dtype=counts.dtype)
    np.add.at(sums, rows, counts)
    return sums


def percentile_interval(values: NDArray[np.float64], confidence_level: float) -> tuple[float, float]:
    """The percentile bootstrap interval (Efron & Tibshirani 1993, section 13.3): the central part of the values.

    Resamples in which a metric is undefined (NaN) say nothing and are left out.
    """
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(values[~np.isnan(values)], [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_all(
    counts: NDArray[Any], metrics: Mapping[str, Metric], *, num_resamples: int, confidence_level: float, seed: int
) -> dict[str, Estimate]:
    """Every metric on N items with the percentile interval over resampled items; all share the resamples.

    Args:
        counts: Shape [N, K].
        metrics: Metrics of summed counts, each defined on these counts.
        num_resamples: Resamples to draw.
        confidence_level: Probability to cover, such as 0.95.
        seed: Seed of the draws.
    """
    values = resampled_metrics([counts], list(metrics.values()), num_resamples, seed)[:, 0]
    sums = counts.sum(axis=0)
    return {
        name: Estimate(float(metric(sums)), *percentile_interval(row, confidence_level))
        for (name, metric), row in zip(metrics.items(), values, strict=True)
    }


def bootstrap(
    counts: NDArray[Any], metric: Metric, *, num_resamples: int, confidence_level: float, seed: int
) -> Estimate:
    """One metric with its interval; see ``bootstrap_all``."""
    return bootstrap_all(
        counts, {"metric": metric}, num_resamples=num_resamples, confidence_level=confidence_level, seed=seed
    )["metric"]
