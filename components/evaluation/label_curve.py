"""Scores against the number of labels, and where one rung starts to pay over another."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.evaluation.aggregate import seed_weights
from components.evaluation.bootstrap import percentile_interval
from components.evaluation.comparison import Compared, budget_of, resample
from components.evaluation.comparison_config import ComparisonConfig


@dataclass(frozen=True)
class Curve:
    """One rung's mean over seeds at each of its label counts."""

    rung: str
    num_labels: tuple[int, ...]
    means: NDArray[np.float64]
    """Shape [L]."""
    drawn: NDArray[np.float64]
    """The same on resampled seeds and items, shape [L, R]."""
    num_seeds: tuple[int, ...]


def build_label_curve(config: ComparisonConfig, compared: Compared) -> dict[str, Any] | None:
    """Curves and crossings of the primary view; None where fewer than two label counts were run or nothing is scored.

    Of two rungs the one that takes longer to train is asked from where on it pays over the other, over the label counts
    that both have. Bands and intervals resample seeds and items as
    ``aggregate`` does: a seed draws the same labels for every rung, and subsets are nested, so a resampled seed is the
    same seed at every label count and for every rung.
    """
    if len({budget_of(entry, compared.num_train) for entry in config.entries}) < 2:
        return None
    curves = _read_curves(config, compared)
    if not curves:
        return None
    seconds = _train_seconds(config)
    return {
        "view": config.primary_view,
        "metric": compared.metric,
        "num_train": compared.num_train,
        "alpha": config.alpha,
        "curves": [_curve_rows(curve, config.alpha) for curve in curves],
        "crossings": [
            found
            for later, early in permutations(curves, 2)
            if (seconds[later.rung], later.rung) > (seconds[early.rung], early.rung)
            if (found := find_crossing(later, early, config.alpha))
        ],
    }


def find_crossing(later: Curve, early: Curve, alpha: float) -> dict[str, Any] | None:
    """From how many labels on ``later`` is ahead of ``early`` and stays so, with an interval.

    Between two label counts the difference is interpolated on the logarithm of the count. The crossing is the last
    change from behind to ahead. Each resample gives one too: below the first count where it is ahead throughout, beyond
    the last where it does not end ahead. A bound that lies outside the counts that were run is None; ``low_is`` and
    ``high_is`` say on which side: ``below``, ``within`` or ``beyond``.

    Returns:
        ``kind``: ``crosses`` at ``num_labels``, ``ahead_throughout``, or ``not_within_data``; None where fewer than
        two label counts are shared. ``share_ahead_at_end``: share of resamples in which ``later`` ends ahead.
    """
    shared = sorted({*later.num_labels} & {*early.num_labels})
    if len(shared) < 2:
        return None
    at = [[curve.num_labels.index(count) for count in shared] for curve in (later, early)]
    difference = later.means[at[0]] - early.means[at[1]]
    drawn = later.drawn[at[0]] - early.drawn[at[1]]
    # A resample in which a metric is undefined says nothing about who is ahead.
    drawn = drawn[:, ~np.isnan(drawn).any(axis=0)]
    logs = np.log(np.array(shared, dtype=np.float64))
    crossings = np.array([_crossing(logs, drawn[:, column]) for column in range(drawn.shape[1])])
    point = _crossing(logs, difference)
    kind = "ahead_throughout" if point == -math.inf else "not_within_data" if point == math.inf else "crosses"
    ordered = np.sort(crossings)
    # No interpolation between resamples: some are infinite.
    low, high = (float(ordered[round((len(ordered) - 1) * share)]) for share in (alpha / 2, 1 - alpha / 2))
    return {
        "rung": later.rung,
        "over": early.rung,
        "kind": kind,
        "num_labels": _count(point),
        "low": _count(low),
        "high": _count(high),
        "low_is": _side(low),
        "high_is": _side(high),
        "first_count": shared[0],
        "last_count": shared[-1],
        "difference_at_first": float(difference[0]),
        "difference_at_last": float(difference[-1]),
        "share_ahead_at_end": float((drawn[-1] > 0).mean()),
        "share_crossing_within": float(np.isfinite(crossings).mean()),
        "interval_within_data": math.isfinite(low) and math.isfinite(high),
    }


def _read_curves(config: ComparisonConfig, compared: Compared) -> list[Curve]:
    """Curves of the rungs in order of first appearance; all values share the resamples of items and of seeds."""
    numbers = range(len(config.entries))
    found = resample(compared, numbers, config.primary_view, num_resamples=config.num_resamples, seed=config.seed)
    if found is None or np.isnan(found.values).any():
        return []
    groups: dict[str, dict[int, dict[int, int]]] = {}
    for number, entry in enumerate(config.entries):
        budget = budget_of(entry, compared.num_train)
        groups.setdefault(entry.rung, {}).setdefault(budget, {})[entry.seed] = number
    weights = _weights_by_seeds(config, groups)
    curves = []
    for rung, budgets in groups.items():
        counts = sorted(budgets)
        runs = [[budgets[count][seed] for seed in sorted(budgets[count])] for count in counts]
        shares = [weights[tuple(sorted(budgets[count]))] for count in counts]
        drawn = [(found.resampled[at] * share).sum(axis=0) for at, share in zip(runs, shares, strict=True)]
        means = np.array([found.values[at].mean() for at in runs])
        curves.append(Curve(rung, tuple(counts), means, np.array(drawn), tuple(map(len, runs))))
    return curves


def _weights_by_seeds(
    config: ComparisonConfig, groups: Mapping[str, Mapping[int, Mapping[int, int]]]
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Resampling weights of each set of seeds that occurs: equal sets share them, so that seeds stay paired."""
    sets = {tuple(sorted(runs)) for budgets in groups.values() for runs in budgets.values()}
    return {seeds: seed_weights(len(seeds), config.num_resamples, config.seed) for seeds in sorted(sets)}


def _train_seconds(config: ComparisonConfig) -> dict[str, float]:
    """Mean training time of each rung over its runs."""
    rungs = dict.fromkeys(entry.rung for entry in config.entries)
    return {
        rung: statistics.fmean(entry.train_seconds for entry in config.entries if entry.rung == rung) for rung in rungs
    }


def _crossing(logs: NDArray[np.float64], difference: NDArray[np.float64]) -> float:
    """Logarithm of the label count of the last change from behind to ahead; -inf or inf where it is outside."""
    behind = np.flatnonzero(difference <= 0)
    if not len(behind):
        return -math.inf
    last = int(behind[-1])
    if last == len(difference) - 1:
        return math.inf
    below, above = difference[last], difference[last + 1]
    return float(logs[last] + (logs[last + 1] - logs[last]) * -below / (above - below))


def _count(log: float) -> int | None:
    return round(math.exp(log)) if math.isfinite(log) else None


def _side(log: float) -> str:
    """Where a crossing lies, seen from the label counts that were run."""
    return "within" if math.isfinite(log) else "below" if log < 0 else "beyond"


def _curve_rows(curve: Curve, alpha: float) -> dict[str, Any]:
    bands = [percentile_interval(row, 1 - alpha) for row in curve.drawn]
    rows: Sequence[dict[str, Any]] = [
        {"num_labels": count, "mean": float(mean), "low": low, "high": high, "num_seeds": seeds}
        for count, mean, (low, high), seeds in zip(curve.num_labels, curve.means, bands, curve.num_seeds, strict=True)
    ]
    return {"rung": curve.rung, "points": rows}
