"""Every pair of rungs in one view: difference, interval, test, and what the test could have found."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.evaluation.comparison import Resampled
from components.evaluation.comparison_config import ComparisonConfig, Control
from components.evaluation.paired import PairedTest, Spread, difference_test, holm, mcnemar_test
from components.evaluation.paired_power import (
    MAX_FACTOR,
    detectable_difference,
    difference_power,
    items_needed,
    mcnemar_power,
)
from components.evaluation.seed_variance import SeedVariance, difference_variance
from components.evaluation.tasks import Metric

STATED_DIFFERENCE = 0.03
"""The true difference whose power every pair states: three points."""
Pair = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A test, the power of a true difference at a factor on the items, and whether the seeds limit it."""

    test: PairedTest
    power: Callable[[float, float], float]
    """Power by true difference and factor on the present number of items."""
    steady_power: Callable[[float], float]
    """Power by true difference with very many items, if the seeds were all alike."""


def all_pairs(
    config: ComparisonConfig, resampled: Resampled, runs: Mapping[str, Mapping[int, int]], metric: str, function: Metric
) -> list[Pair]:
    """Tests of all pairs of rungs, the one with the higher mean first.

    P values are adjusted (Holm 1979) within their family: comparisons with the best rung, which is what a verdict
    claims something about (a conservative form of Hsu's 1984 multiple comparisons with the best, which allow for the
    best one having been picked by the same data), and all pairs for the others.

    Args:
        config: Settings.
        resampled: Metric values of all entries in this view.
        runs: For each rung, best first, the position of each seed's values in ``resampled``.
        metric: Name of the metric.
        function: The metric.
    """
    names, shared = list(runs), shared_variances(resampled, runs)
    found = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            outcome = _test(config, resampled, runs[first], runs[second], shared.get((first, second)), metric, function)
            found.append({"first": first, "second": second, **_describe(config, resampled.num_items, outcome)})
    _adjust(found, found, "all_pairs", config.alpha)
    with_best = [pair for pair in found if pair["first"] == names[0]]
    _adjust(with_best, with_best, "with_best", config.alpha)
    return found


def _adjust(rows: Sequence[dict[str, Any]], tests: Sequence[Pair], family: str, alpha: float) -> None:
    """Give rows the p values of their tests, adjusted for the number of tests in the family."""
    for row, adjusted in zip(rows, holm([test["p"] for test in tests]), strict=True):
        row |= {"family": family, "p_holm": adjusted, "significant": adjusted < alpha}


def shared_variances(
    resampled: Resampled, runs: Mapping[str, Mapping[int, int]]
) -> dict[tuple[str, str], SeedVariance]:  # fmt: skip
    """What all rungs suggest for each pair's variance between seeds; nothing where rungs were run with other seeds."""
    seeds = sorted(next(iter(runs.values())))
    if len(seeds) < 2 or len(runs) < 3 or any(sorted(positions) != seeds for positions in runs.values()):
        return {}
    scores_RS = np.array([[resampled.values[positions[seed]] for seed in seeds] for positions in runs.values()])
    variances_RR, gained = difference_variance(scores_RS)
    return {
        (first, second): SeedVariance(float(variances_RR[row, column]), gained)
        for row, first in enumerate(runs)
        for column, second in enumerate(runs)
    }


def common_seeds(first: Mapping[int, int], second: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Positions of the runs of two rungs, seed by seed: equal seeds saw the same labels and are compared.

    Rungs that share no seed are paired in order, which is right too, only less sharp.
    """
    shared = sorted(set(first) & set(second))
    if shared:
        return [first[seed] for seed in shared], [second[seed] for seed in shared]
    ordered = [[runs[seed] for seed in sorted(runs)] for runs in (first, second)]
    size = min(map(len, ordered))
    return ordered[0][:size], ordered[1][:size]


def find_pair(pairs: Sequence[Pair], first: str, second: str) -> Pair:
    """The pair of two rungs, turned so that positive differences favour ``first``."""
    for pair in pairs:
        if (pair["first"], pair["second"]) == (first, second):
            return pair
        if (pair["second"], pair["first"]) == (first, second):
            turned = {"difference": -pair["difference"], "low": -pair["high"], "high": -pair["low"]}
            return {**pair, "first": first, "second": second, **turned}
    raise KeyError((first, second))


def control_rows(controls: Sequence[Control], pairs: Sequence[Pair], alpha: float) -> list[dict[str, Any]]:
    """What each ingredient adds: the difference of the rung that has it and the one that lacks it.

    Controls are named before the results are known: they are a family of their own.
    """
    rows: list[dict[str, Any]] = []
    for control in controls:
        pair = find_pair(pairs, control.with_, control.without)
        names = {"ingredient": control.ingredient, "without": control.without, "with": control.with_}
        rows.append({**names, **{name: pair[name] for name in ("difference", "low", "high", "p")}})
    _adjust(rows, rows, "controls", alpha)
    for row in rows:
        effect = "unclear" if not row["significant"] else "adds" if row["difference"] > 0 else "costs"
        row["effect"] = effect
    return rows


def typical_detectable(pairs: Sequence[Pair]) -> float | None:
    """Median of the minimum detectable differences; None where most pairs have none."""
    found = [pair["minimum_detectable_difference"] for pair in pairs]
    median = statistics.median_high([2.0 if value is None else value for value in found]) if found else 2.0
    return None if median > 1 else median


def _test(
    config: ComparisonConfig,
    resampled: Resampled,
    one: Mapping[int, int],
    other: Mapping[int, int],
    shared: SeedVariance | None,
    metric: str,
    function: Metric,
) -> Outcome:
    first, second = common_seeds(one, other)
    if len(first) == 1 and metric == "accuracy":
        return _exact(config, *(function(resampled.counts[runs[0]]) > 0.5 for runs in (first, second)))
    values = resampled.values[first] - resampled.values[second]
    drawn = resampled.resampled[first] - resampled.resampled[second]
    test, spread = difference_test(values, drawn, resampled.num_clusters, config.alpha, shared)

    def power(difference: float, factor: float = 1.0) -> float:
        return difference_power(difference, spread.with_items(factor) if factor != 1 else spread, config.alpha)

    return Outcome(test, power, lambda difference: difference_power(difference, _steady(spread), config.alpha))


def _steady(spread: Spread) -> Spread:
    return replace(spread.with_items(MAX_FACTOR), seeds=0.0)


def _exact(config: ComparisonConfig, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Outcome:
    alone = int((first & ~second).sum()), int((second & ~first).sum())
    size = len(first)
    test = mcnemar_test(*alone, size, config.alpha)
    # One item more than was seen: two models that never differed might differ on the next item.
    differing = (sum(alone) + 1) / (size + 1)

    def power(difference: float, factor: float = 1.0) -> float:
        return mcnemar_power(difference, differing, max(round(size * factor), 1), config.alpha)

    return Outcome(test, power, lambda difference: power(difference, MAX_FACTOR))


def _describe(config: ComparisonConfig, num_items: int, outcome: Outcome) -> dict[str, Any]:
    size = abs(outcome.test.difference)
    needed = items_needed(lambda factor: outcome.power(size, factor), config.power, num_items) if size else None
    limit = None
    if needed is None:
        limit = "seeds" if size and outcome.steady_power(size) >= config.power else "no_difference"
    return {
        **asdict(outcome.test),
        "minimum_detectable_difference": detectable_difference(lambda value: outcome.power(value, 1.0), config.power),
        "power_at_3_points": outcome.power(STATED_DIFFERENCE, 1.0),
        "items_would_reach_margin": outcome.power(config.margin, MAX_FACTOR) >= config.power,
        "items_to_separate": needed,
        "not_separable_because": limit,
    }
