"""Paired tests between two rungs, for both sources of chance: the seeds of training and the test items.

Seeds and items are crossed, as every seed predicts the same items. The difference of two rungs is then a mean over a
table of seeds and items, and its variance has a part for each and one for their interaction, as in the analysis of
several readers who read the same cases (Obuchowski & Rockette 1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from components.evaluation.seed_variance import SeedVariance

Method = Literal["mcnemar", "items", "seeds_and_items"]
SMALLEST_P = 1e-12
"""No p value below this is stated: no test set supports one, and far in the tail a p value would round to 0."""


@dataclass(frozen=True)
class Spread:
    """How much a difference varies, split by source, and the t distribution that it is held against."""

    seeds: float
    """Variance of the mean difference that more seeds would shrink and more items would not."""
    items: float
    """Variance that more items would shrink."""
    interaction: float
    """The part of ``items`` that more seeds would shrink as well: the items that one seed happens to get right."""
    num_seeds: int
    num_clusters: int
    """Test items, or groups of items that are not independent."""
    additional_degrees: float = 0.0
    """What other rungs add to the degrees of freedom of the variance between seeds; see ``SeedVariance``."""

    @property
    def seed_degrees(self) -> float:
        """Degrees of freedom of the variance between seeds."""
        return self.num_seeds - 1 + self.additional_degrees

    @property
    def standard_error(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(self.seeds + self.items)

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of the variance; see ``spread_of``."""
        if self.num_seeds == 1:
            return max(self.num_clusters - 1, 1)
        between = self.seeds + self.interaction
        if not between:
            return float(max(self.num_clusters - 1, 1))
        ratio = (self.seeds + self.items) / between
        known = 1 + (self.interaction / between) ** 4
        free = math.cbrt(ratio) if self.seed_degrees < 2 else self.seed_degrees * ratio * known
        return float(min(free, max(self.num_clusters - 1, 1)))

    def with_items(self, factor: float) -> Spread:
        """The spread with ``factor`` times the test items."""
        clusters = max(round(self.num_clusters * factor), 2)
        return replace(
            self, items=self.items / factor, interaction=self.interaction / factor, num_clusters=clusters
        )  # fmt: skip


@dataclass(frozen=True)
class PairedTest:
    """One test between two rungs; positive differences favour the first."""

    method: Method
    difference: float
    low: float
    high: float
    p: float
    standard_error: float
    degrees_of_freedom: float | None
    """None for the exact test."""
    num_seeds: int
    """Seeds that both rungs have; 1 means that the claim is about these two models, not about training them again."""


def spread_of(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    num_clusters: int,
    moderated: SeedVariance | None = None,
) -> Spread:
    """The spread of the mean of S paired differences.

    Resampling items gives a covariance between the differences of any two seeds. Its mean is what items contribute;
    what its diagonal has beyond the rest is the interaction, which the variance between seeds contains as well and
    which is counted once. A variance between seeds below the interaction is luck, and counts as none.

    Degrees of freedom: the share of the variance that is estimated from S seeds has only S - 1 of them, so the mean
    gets (S - 1) · variance / (variance between seeds). Satterthwaite's formula squares this ratio (Hillis 2007), which
    in simulations with normal differences raised false alarms to 13, 8 and 7 % at 5 % for 2, 3 and 4 seeds. The ratio
    itself stays within 6 % from 3 seeds on, even times 1 + (interaction / variance between seeds)⁴: up to twice, where
    seeds differ no more than the interaction makes them, which is known from the items. For 2 seeds its cube root
    does. docs/metrics.md has the figures.

    Args:
        values: Differences on the test items, shape [S].
        resampled: The same on resampled items, shape [S, R].
        num_clusters: Independent test items.
        moderated: What all rungs suggest for the variance between seeds; the larger of it and the differences' own
            counts, as a rung may be noisier than the others.
    """
    num_seeds = len(values)
    known = resampled[:, ~np.isnan(resampled).any(axis=0)]
    # Resampling n items with replacement underestimates a variance by (n - 1) / n.
    covariance = np.atleast_2d(np.cov(known)) * num_clusters / max(num_clusters - 1, 1)
    # Half an item: no resample can show less, and two predictions that never differ still have a width.
    items = max(float(covariance.mean()), (0.5 / num_clusters) ** 2)
    if num_seeds == 1:
        return Spread(0.0, items, 0.0, 1, num_clusters)
    average = float(np.trace(covariance)) / num_seeds
    interaction = min(max((average - items) / (num_seeds - 1), 0.0), items)
    own, shared = float(np.var(values, ddof=1)), moderated or SeedVariance(0.0, 0.0)
    seeds = max(max(own, shared.variance) / num_seeds - interaction, 0.0)
    return Spread(seeds, items, interaction, num_seeds, num_clusters, shared.additional_degrees)


def difference_test(
    values: NDArray[np.float64],
    resampled: NDArray[np.float64],
    num_clusters: int,
    alpha: float,
    moderated: SeedVariance | None = None,
) -> tuple[PairedTest, Spread]:
    """Test whether the mean of S paired differences is zero; arguments as for ``spread_of``."""
    spread = spread_of(values, resampled, num_clusters, moderated)
    difference, error, free = float(values.mean()), spread.standard_error, spread.degrees_of_freedom
    half = float(stats.t.ppf(1 - alpha / 2, free)) * error
    p = max(float(2 * stats.t.sf(abs(difference) / error, free)), SMALLEST_P)
    method: Method = "items" if spread.num_seeds == 1 else "seeds_and_items"
    test = PairedTest(method, difference, difference - half, difference + half, p, error, free, spread.num_seeds)
    return test, spread


def mcnemar_test(first_only: int, second_only: int, num_items: int, alpha: float) -> PairedTest:
    """The exact McNemar test of two models by the items that one of them alone has right (McNemar 1947).

    The interval is the adjusted Wald interval of Bonett & Price (2012); where it contradicts the exact test by a hair,
    the test decides what is significant.

    Args:
        first_only: Items that only the first model has right.
        second_only: Items that only the second has right.
        num_items: All items.
        alpha: Error rate of the interval.
    """
    differing = first_only + second_only
    p = max(float(stats.binomtest(first_only, differing).pvalue), SMALLEST_P) if differing else 1.0
    first, second = (first_only + 1) / (num_items + 2), (second_only + 1) / (num_items + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (num_items + 2))
    half = float(stats.norm.ppf(1 - alpha / 2)) * error
    low, high = max(first - second - half, -1.0), min(first - second + half, 1.0)
    difference = (first_only - second_only) / num_items
    return PairedTest("mcnemar", difference, min(low, difference), max(high, difference), p, error, None, 1)


def holm(p_values: list[float]) -> list[float]:
    """P values adjusted for their number, step by step from the smallest (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
