"""What all rungs together say about the variance between seeds, and what it does to the tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import special

from components.evaluation.paired import Spread, difference_test
from components.evaluation.paired_power import difference_power
from components.evaluation.seed_variance import (
    MAX_PRIOR_DEGREES,
    SeedVariance,
    _inverse_trigamma,
    difference_variance,
    moderated_variances,
)

ALPHA, SIMULATIONS = 0.05, 600
NUM_RUNGS, NUM_SEEDS, NUM_ITEMS = 9, 3, 2000


def simulated_p(generator, spreads, *, lead: float, items: float, moderate: bool) -> np.ndarray:
    """P values of all pairs; the first rung is ahead by ``lead``, a seed moves all rungs, items err by ``items``."""
    seed_effects = 0.005 * generator.standard_normal(NUM_SEEDS)
    scores = seed_effects + spreads[:, None] * generator.standard_normal((NUM_RUNGS, NUM_SEEDS))
    scores += items / np.sqrt(2) * generator.standard_normal((NUM_RUNGS, 1))
    scores[0] += lead
    variances, gained = difference_variance(scores)
    # Resamples of the items move all seeds of a pair alike, with exactly the variance that they have.
    drawn = np.tile(np.array([-1.0, 1.0]) * items / np.sqrt(2), (NUM_SEEDS, 1))
    p_values = []
    for first, second in combinations(range(NUM_RUNGS), 2):
        shared = SeedVariance(float(variances[first, second]), gained) if moderate else None
        test, _ = difference_test(scores[first] - scores[second], drawn, NUM_ITEMS, ALPHA, shared)
        p_values.append(test.p)
    return np.array(p_values)


def alike(generator) -> np.ndarray:
    return np.full(NUM_RUNGS, 0.012)


def unlike(generator) -> np.ndarray:
    return np.sort(np.exp(generator.uniform(np.log(0.003), np.log(0.03), NUM_RUNGS)))


def two_noisy(generator) -> np.ndarray:
    return np.array([0.004] * (NUM_RUNGS - 2) + [0.03] * 2)


@pytest.mark.parametrize("spreads", [alike, unlike, two_noisy])
@pytest.mark.parametrize("items", [0.003, 0.01])
def test_rungs_that_do_not_differ_are_rarely_told_apart(spreads, items):
    generator = np.random.default_rng(1)
    found = [
        simulated_p(generator, spreads(generator), lead=0.0, items=items, moderate=True) for _ in range(SIMULATIONS)
    ]
    rejected = np.array(found) < ALPHA
    assert 0.01 < rejected.mean() <= 0.05
    # The last pair is that of the noisiest rungs, whose variance the others make look smaller.
    assert rejected[:, -1].mean() <= 0.06


def test_eight_points_are_found_much_more_often_than_by_each_pair_alone():
    found = {}
    for moderate in (False, True):
        generator, with_best = np.random.default_rng(2), []
        for _ in range(300):
            p_values = simulated_p(generator, unlike(generator), lead=0.08, items=0.011, moderate=moderate)
            with_best.append((p_values[: NUM_RUNGS - 1] < ALPHA / (NUM_RUNGS - 1)).mean())
        found[moderate] = np.mean(with_best)
    assert found[True] > found[False] + 0.05


def test_two_rungs_are_tested_as_if_they_were_alone():
    scores = np.random.default_rng(3).normal(0.7, 0.02, (2, 3))
    variances, gained = moderated_variances(scores)
    assert gained == 0
    assert variances.sum() == pytest.approx(np.var(scores[0] - scores[1], ddof=1))
    drawn = np.random.default_rng(4).normal(0.0, 0.01, (3, 200))
    alone = difference_test(scores[0] - scores[1], drawn, 500, ALPHA)
    together = difference_test(scores[0] - scores[1], drawn, 500, ALPHA, SeedVariance(float(variances.sum()), gained))
    assert together[0].p == pytest.approx(alone[0].p)


def test_variances_are_drawn_together_as_far_as_they_look_alike():
    scores = np.random.default_rng(5).normal(0.7, 0.02, (9, 3))
    variances, gained = moderated_variances(scores)
    residuals = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    own = (residuals**2).sum(axis=1) / 2 * 9 / 8
    assert gained == MAX_PRIOR_DEGREES
    assert np.ptp(variances) < np.ptp(own)
    assert list(np.argsort(variances)) == list(np.argsort(own))


def test_the_order_of_rungs_does_not_matter_and_a_common_shift_of_a_seed_neither():
    scores = np.random.default_rng(6).normal(0.7, 0.02, (6, 4))
    variances, gained = moderated_variances(scores)
    turned, same = moderated_variances(scores[::-1] + np.array([0.1, 0.0, -0.2, 0.05]))
    assert turned[::-1] == pytest.approx(variances)
    assert same == pytest.approx(gained)


def test_seeds_that_change_nothing_are_no_division_by_zero():
    same = np.repeat(np.linspace(0.5, 0.9, 5)[:, None], 3, axis=1)
    variances, gained = moderated_variances(same)
    assert not variances.any()
    assert gained == 0
    one_varies = same + np.array([[0.0, 0.01, -0.01], *[[0.0] * 3] * 4])
    variances, gained = moderated_variances(one_varies)
    assert np.isfinite(variances).all()
    assert variances[0] == variances.max()


def test_power_follows_the_degrees_of_freedom():
    few = Spread(seeds=2e-4, items=5e-5, interaction=1e-5, num_seeds=3, num_clusters=2000)
    more = Spread(2e-4, 5e-5, 1e-5, 3, 2000, additional_degrees=2.0)
    assert more.degrees_of_freedom > few.degrees_of_freedom
    assert difference_power(0.05, more, ALPHA) > difference_power(0.05, few, ALPHA)


@pytest.mark.parametrize("value", [1e-3, 0.5, 1.6, 20.0])
def test_inverse_trigamma(value):
    assert special.polygamma(1, _inverse_trigamma(value)) == pytest.approx(value, rel=1e-6)
