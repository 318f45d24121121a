"""What a paired test can find: its power, the smallest difference it would find, the items needed for a difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from components.evaluation.paired import Spread

MAX_FACTOR = 1e4
"""Most times the present number of items that is looked at; beyond, more items are no advice."""
NUM_QUANTILES = 40
"""Points at which the distribution of the variance between seeds is looked at."""


def difference_power(difference: float, spread: Spread, alpha: float) -> float:
    """Probability that ``difference_test`` finds a true difference, as this spread lets expect.

    The mean difference is normal; the variance between seeds, from which the test takes its width and its degrees of
    freedom, is a scaled chi-square with ``seed_degrees`` of them, over whose quantiles the power is averaged. What is
    measured of that variance is taken for its median, not its mean: of a few seeds most show too little of it, and
    the power would be overstated more often than not.
    """
    if spread.seeds > 0:
        measured = (spread.seeds + spread.interaction) * spread.seed_degrees
        likely = measured / float(stats.chi2.ppf(0.5, spread.seed_degrees))
        spread = replace(spread, seeds=max(likely - spread.interaction, 0.0))
    widths = _rejection_widths(spread, alpha)
    shift, scaled = abs(difference) / spread.standard_error, widths / spread.standard_error
    return float(np.mean(stats.norm.sf(scaled - shift) + stats.norm.cdf(-scaled - shift)))


def _rejection_widths(spread: Spread, alpha: float) -> NDArray[np.float64]:
    """How large a difference must be to be significant, at each quantile of the variance between seeds."""
    if spread.num_seeds == 1:
        return np.array([stats.t.ppf(1 - alpha / 2, spread.degrees_of_freedom) * spread.standard_error])
    quantiles = (np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES
    between = (spread.seeds + spread.interaction) * stats.chi2.ppf(quantiles, spread.seed_degrees)
    seen = [replace(spread, seeds=value) for value in np.maximum(between / spread.seed_degrees - spread.interaction, 0)]
    free = np.array([one.degrees_of_freedom for one in seen])
    return np.asarray(stats.t.ppf(1 - alpha / 2, free) * np.array([one.standard_error for one in seen]))


def mcnemar_power(difference: float, differing: float, num_items: int, alpha: float) -> float:
    """Probability that the exact McNemar test finds a true difference of accuracies.

    The sum runs over the possible numbers of differing items, each with its exact critical value.

    Args:
        difference: True difference of the accuracies.
        differing: Probability that exactly one of the two models is right; at least ``difference``.
        num_items: Test items.
        alpha: Error rate of the test.
    """
    differing = min(max(differing, abs(difference)), 1.0)
    if not differing:
        return 0.0
    low, high = stats.binom.ppf([1e-5, 1 - 1e-5], num_items, differing).astype(int)
    totals = np.unique(np.linspace(low, high, min(high - low + 1, 200)).astype(int))
    weights = stats.binom.pmf(totals, num_items, differing)
    limits = _critical(totals, alpha)
    share = (1 + abs(difference) / differing) / 2
    found = stats.binom.cdf(limits, totals, 1 - share) + stats.binom.sf(totals - limits - 1, totals, 1 - share)
    return float((weights * np.where(limits >= 0, found, 0.0)).sum() / weights.sum())


def detectable_difference(power_of: Callable[[float], float], power: float) -> float | None:
    """The smallest true difference that is found with the given power; None where even 1 is not.

    Args:
        power_of: Power by true difference, increasing.
        power: Power to reach.
    """
    if power_of(1.0) < power:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(middle) >= power else (middle, high)
    return high


def items_needed(power_of: Callable[[float], float], power: float, num_items: int) -> int | None:
    """Test items at which the observed difference would be found with the given power.

    Args:
        power_of: Power by factor on the present number of items, increasing.
        power: Power to reach.
        num_items: Items there are.

    Returns:
        Rounded up to two digits; None where no number of items below ``MAX_FACTOR`` times the present one is enough:
        the difference is practically zero, or the seeds differ too much.
    """
    low, high = math.log(2 / num_items), math.log(MAX_FACTOR)
    if power_of(math.exp(high)) < power:
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(math.exp(middle)) >= power else (middle, high)
    return _round_up(math.exp(high) * num_items)


def _critical(totals: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """The largest number of minority items at which the exact test rejects; -1 where it never does."""
    limits = stats.binom.ppf(alpha / 2, totals, 0.5).astype(int)
    return np.asarray(np.where(2 * stats.binom.cdf(limits, totals, 0.5) <= alpha, limits, limits - 1))


def _round_up(number: float) -> int:
    unit: int = 10 ** max(int(math.log10(max(number, 1))) - 1, 0)
    return math.ceil(number / unit) * unit
