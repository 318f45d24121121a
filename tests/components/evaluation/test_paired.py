from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from components.evaluation.bootstrap import resampled_metrics, sum_clusters
from components.evaluation.paired import PairedTest, Spread, difference_test, holm, mcnemar_test
from components.evaluation.paired_power import (
    detectable_difference,
    difference_power,
    items_needed,
    mcnemar_power,
)

ALPHA, SIMULATIONS, RESAMPLES = 0.05, 1000, 200
Counts = NDArray[np.float64]
Simulated = tuple[PairedTest, float]
"""A test, and the power for three points that would be stated beside it."""


def chances(generator: np.random.Generator, size: int, mean: float) -> Counts:
    """Probability of each item to be right; items differ widely, and two models find the same ones hard."""
    return generator.random(size) ** ((1 - mean) / mean)


def both(generator: np.random.Generator, size: int, first: float, second: float) -> tuple[Counts, Counts]:
    shared = generator.random(size)
    return tuple(shared ** ((1 - mean) / mean) for mean in (first, second))


def mean_of(sums: Counts) -> Counts:
    return sums[..., 1] / sums[..., 0]


def entity_f1(sums: Counts) -> Counts:
    return 2 * sums[..., 2] / (sums[..., 0] + sums[..., 1])


def paired(generator: np.random.Generator, counts: list[Counts], metric: Callable[[Counts], Counts]) -> Simulated:
    """The test of the first half of the runs against the second half."""
    half = len(counts) // 2
    drawn = resampled_metrics(counts, [metric], RESAMPLES, int(generator.integers(2**31)))[0]
    values = np.array([float(metric(one.sum(axis=0))) for one in counts])
    test, spread = difference_test(values[:half] - values[half:], drawn[:half] - drawn[half:], len(counts[0]), ALPHA)
    return test, difference_power(0.03, spread, ALPHA)


def simulate_accuracy(generator: np.random.Generator, lead: float) -> Simulated:
    size = 1000
    right = [generator.random(size) < chance for chance in both(generator, size, 0.8 + lead, 0.8)]
    first, second = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    return mcnemar_test(first, second, size, ALPHA), mcnemar_power(0.03, (first + second + 1) / (size + 1), size, ALPHA)


def simulate_entities(generator: np.random.Generator, lead: float) -> Simulated:
    size, spurious = 500, 0.2
    gold = generator.poisson(1.5, size)
    counts = []
    # F1 = 2 · p / (1 + p + spurious / 1.5) where p is the share of gold entities found.
    wanted = [f1 * (1 + spurious / 1.5) / (2 - f1) for f1 in (0.75 + lead, 0.75)]
    for chance in both(generator, size, *wanted):
        found = generator.binomial(gold, chance)
        counts.append(np.stack([gold, found + generator.poisson(spurious, size), found], axis=1).astype(float))
    return paired(generator, counts, entity_f1)


def answers(generator: np.random.Generator, lead: float) -> tuple[list[Counts], list[str]]:
    """Two models on 1,000 passages of 4 questions; in half of the passages a model has all right or all wrong."""
    passages, questions = 1000, 4
    counts = []
    for chance in both(generator, passages, 0.6 + lead, 0.6):
        luck = generator.random((passages, questions))
        together = generator.random(passages) < 0.5
        luck[together] = luck[together, :1]
        f1 = (luck < chance[:, None]).astype(float).ravel()
        counts.append(np.stack([np.ones_like(f1), f1], axis=1))
    return counts, [str(number // questions) for number in range(passages * questions)]


def simulate_answers(generator: np.random.Generator, lead: float) -> Simulated:
    counts, clusters = answers(generator, lead)
    return paired(generator, [sum_clusters(one, clusters) for one in counts], mean_of)


def simulate_seeds(generator: np.random.Generator, lead: float, *, num_seeds: int = 3, sd: float = 0.01) -> Simulated:
    size = 600
    shared = generator.random(size)
    counts = []
    for mean in [0.8 + lead] * num_seeds + [0.8] * num_seeds:
        mean = float(np.clip(mean + sd * generator.standard_normal(), 0.5, 0.99))
        right = generator.random(size) < shared ** ((1 - mean) / mean)
        counts.append(np.stack([np.ones(size), right], axis=1))
    return paired(generator, counts, mean_of)


def rejections(simulate: Callable[..., Simulated], lead: float, seed: int, **settings: float) -> tuple[float, float]:
    """Share of simulations that are significant, and the mean of the stated power."""
    generator = np.random.default_rng(seed)
    found = [simulate(generator, lead, **settings) for _ in range(SIMULATIONS)]
    return float(np.mean([test.p < ALPHA for test, _ in found])), float(np.mean([power for _, power in found]))


SIMULATED = [simulate_accuracy, simulate_entities, simulate_answers]


@pytest.mark.parametrize("simulate", SIMULATED)
def test_two_models_of_one_kind_are_rarely_told_apart(simulate: Callable[..., Simulated]) -> None:
    rate, _ = rejections(simulate, 0.0, 1)
    assert 0.01 < rate <= 0.06


@pytest.mark.parametrize(("num_seeds", "sd"), [(2, 0.0), (3, 0.01), (3, 0.04), (5, 0.02)])
def test_seeds_of_one_rung_are_rarely_told_apart(num_seeds: int, sd: float) -> None:
    rate, _ = rejections(simulate_seeds, 0.0, 2, num_seeds=num_seeds, sd=sd)
    assert rate <= 0.06


@pytest.mark.parametrize(
    ("num_seeds", "seeds", "common"), [(2, 1000, 10), (2, 300, 0), (3, 200, 20), (3, 20, 0.3), (4, 6, 0.3), (5, 10, 0)]
)
def test_few_seeds_that_differ_widely_are_rarely_told_apart(num_seeds: int, seeds: float, common: float) -> None:
    # Normal differences; variances in units of the interaction. These are the worst cases of a grid over both.
    generator, simulations = np.random.default_rng(6), 20_000
    differences = math.sqrt(seeds + 1 + common) * generator.standard_normal(simulations)
    measured = (seeds + 1) * generator.chisquare(num_seeds - 1, simulations) / (num_seeds - 1)
    spreads = [Spread(max(one - 1, 0.0), common + 1, 1.0, num_seeds, 1000) for one in measured]
    errors = np.array([one.standard_error for one in spreads])
    free = np.array([one.degrees_of_freedom for one in spreads])
    rate = np.mean(2 * stats.t.sf(np.abs(differences) / errors, free) < ALPHA)
    assert 0.02 < rate <= 0.06


def test_questions_counted_as_independent_would_be_told_apart_too_often() -> None:
    generator = np.random.default_rng(3)
    found = [paired(generator, answers(generator, 0.0)[0], mean_of)[0].p < ALPHA for _ in range(300)]
    assert np.mean(found) > 0.09


@pytest.mark.parametrize("simulate", SIMULATED)
def test_three_points_are_found_as_often_as_stated(simulate: Callable[..., Simulated]) -> None:
    rate, stated = rejections(simulate, 0.03, 4)
    assert 0.2 < rate < 0.95
    assert stated == pytest.approx(rate, abs=3 * math.sqrt(rate * (1 - rate) / SIMULATIONS))


def test_power_over_seeds_is_not_overstated() -> None:
    rate, stated = rejections(simulate_seeds, 0.03, 5)
    error = 3 * math.sqrt(rate * (1 - rate) / SIMULATIONS)
    assert rate - 0.12 < stated < rate + error


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("first", "second"), [(8, 2), (2, 8), (30, 12), (1, 0)])
def test_mcnemar_is_the_sign_test_of_the_differing_items(first: int, second: int) -> None:
    total, least = first + second, min(first, second)
    by_hand = min(1.0, 2 * sum(math.comb(total, number) for number in range(least + 1)) / 2**total)
    test = mcnemar_test(first, second, 100, ALPHA)
    assert test.p == pytest.approx(by_hand)
    assert test.difference == pytest.approx((first - second) / 100)
    assert test.low <= test.difference <= test.high


def test_mcnemar_interval_by_hand() -> None:
    test = mcnemar_test(8, 2, 100, ALPHA)
    first, second = 9 / 102, 3 / 102
    half = stats.norm.ppf(0.975) * math.sqrt((first + second - (first - second) ** 2) / 102)
    assert (test.low, test.high) == pytest.approx((first - second - half, first - second + half))


def test_equal_predictions_are_no_evidence() -> None:
    assert mcnemar_test(0, 0, 50, ALPHA).p == 1
    test, _ = difference_test(np.zeros(3), np.zeros((3, 100)), 50, ALPHA)
    assert test.p == 1
    assert test.low < 0 < test.high


def test_no_p_value_is_zero() -> None:
    assert mcnemar_test(3000, 0, 3000, ALPHA).p > 0
    drawn = np.random.default_rng(0).normal(0.9, 1e-3, (1, 500))
    assert difference_test(np.array([0.9]), drawn, 5000, ALPHA)[0].p > 0


def test_undefined_resamples_are_left_out() -> None:
    drawn = np.random.default_rng(0).normal(0.1, 0.02, (3, 500))
    with_gaps = np.concatenate([drawn, np.full((3, 20), np.nan)], axis=1)
    values = np.array([0.1, 0.12, 0.09])
    assert difference_test(values, with_gaps, 200, ALPHA) == difference_test(values, drawn, 200, ALPHA)


def test_mcnemar_power_by_enumeration() -> None:
    size, differing, difference = 30, 0.4, 0.3
    share, expected = (1 + difference / differing) / 2, 0.0
    for total in range(size + 1):
        for first in range(total + 1):
            chance = stats.binom.pmf(total, size, differing) * stats.binom.pmf(first, total, share)
            expected += chance * (mcnemar_test(first, total - first, size, ALPHA).p <= ALPHA)
    assert mcnemar_power(difference, differing, size, ALPHA) == pytest.approx(expected, abs=1e-4)


def test_what_is_detectable_and_needed_has_the_power_asked_for() -> None:
    def power(difference: float, factor: float = 1.0) -> float:
        return mcnemar_power(difference, 0.1, round(500 * factor), ALPHA)

    smallest = detectable_difference(power, 0.8)
    assert smallest is not None
    assert power(smallest) >= 0.8 > power(smallest - 2e-3)
    needed = items_needed(lambda factor: power(0.02, factor), 0.8, 500)
    assert needed is not None
    assert power(0.02, 1.02 * needed / 500) >= 0.8 > power(0.02, 0.9 * needed / 500)
    assert items_needed(lambda factor: 0.05, 0.8, 500) is None
    assert detectable_difference(lambda difference: 0.5, 0.8) is None
