"""Intervals beside every accuracy of a probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class Share:
    """A share of right answers with its 95 % interval."""

    value: float
    low: float
    high: float
    num_items: int


def binomial_share(num_right: float, num_items: int) -> Share:
    """A share of independent items with Wilson's interval (Wilson 1927), which stays honest at 0 and 1.

    Args:
        num_right: Right answers in [0, num_items]; a tie may count one half.
        num_items: Items, at least one.
    """
    found = binomtest(round(num_right), num_items).proportion_ci(CONFIDENCE_LEVEL, method="wilson")
    value = num_right / num_items
    return Share(value, min(float(found.low), value), max(float(found.high), value), num_items)


def clustered_share(right_N: NDArray[np.bool_], clusters: Sequence[str], *, num_resamples: int, seed: int) -> Share:
    """A share whose items come in clusters, such as documents: whole clusters are resampled (Field & Welsh 2007).

    Where resampling cannot see any spread (all items right, or all wrong) Wilson's interval over clusters is given.

    Args:
        right_N: Which of N items are right.
        clusters: Name of each item's cluster.
        num_resamples: Bootstrap resamples.
        seed: Seed of the draws.
    """
    names, rows_N = np.unique(np.asarray(clusters), return_inverse=True)
    sizes_C = np.bincount(rows_N, minlength=len(names))
    right_C = np.bincount(rows_N, weights=right_N.astype(np.float64), minlength=len(names))
    value = float(right_N.mean())
    if value in (0.0, 1.0):
        bound = binomial_share(value * len(names), len(names))
        return Share(value, bound.low, bound.high, len(right_N))
    drawn = np.random.default_rng(seed).integers(len(names), size=(num_resamples, len(names)))
    low, high = percentiles(right_C[drawn].sum(axis=1) / sizes_C[drawn].sum(axis=1))
    return Share(value, low, high, len(right_N))


def percentiles(values: NDArray[np.float64]) -> tuple[float, float]:
    """The central 95 % of resampled values."""
    tail = (1 - CONFIDENCE_LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def resample_seeds(
    right_SKN: NDArray[np.bool_],
    statistic: Callable[[NDArray[np.float64]], float],
    *,
    num_resamples: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Resample trainings, and within each the test items: both kinds of luck are in the interval.

    Args:
        right_SKN: Right answers of S trainings at K settings on N items each.
        statistic: Number computed from K accuracies.
        num_resamples: R.
        seed: Seed of the draws.

    Returns:
        Accuracies of shape [R, K], and the statistic of each resample, shape [R].
    """
    generator = np.random.default_rng(seed)
    num_seeds, _, num_items = right_SKN.shape
    drawn = generator.integers(num_seeds, size=(num_resamples, num_seeds))
    accuracy_RSK = right_SKN.mean(axis=2)[drawn]
    # A resample of N right-or-wrong items with replacement is a binomial draw at their share.
    accuracy_RK = (generator.binomial(num_items, accuracy_RSK) / num_items).mean(axis=1)
    return accuracy_RK, np.array([statistic(row) for row in accuracy_RK])
