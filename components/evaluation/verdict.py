"""The verdict on one task: means and costs per rung, all tests, the choice, and sentences as data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from components.errors import InputError
from components.evaluation.aggregate import seed_weights
from components.evaluation.bootstrap import percentile_interval
from components.evaluation.comparison import Compared, Resampled, resample, verdict_entries
from components.evaluation.comparison_config import ComparisonConfig, Entry
from components.evaluation.data import View
from components.evaluation.verdict_choice import cheapest, rank_rungs, tied_with_best, within_noise
from components.evaluation.verdict_pairs import all_pairs, control_rows, typical_detectable
from components.evaluation.verdict_sentences import across_sentences, view_sentences

VIEWS: tuple[View, ...] = ("all", "never_leaked")
COSTS = ("train_seconds", "items_per_second", "num_parameters", "model_bytes")


def build_verdict(config: ComparisonConfig, compared: Compared) -> dict[str, Any]:
    """Everything that ``verdict.json`` says about one task.

    The best rung, the choice and the sentences at the top are those of the primary view; every view has its own.

    Raises:
        ConfigError: There is no number of labels at which every rung was run.
        InputError: The primary view has no items, or none that its metric counts.
    """
    budget, chosen = verdict_entries(config, compared.num_train)
    views: dict[str, dict[str, Any]] = {
        view: found for view in VIEWS if (found := _build_view(config, compared, chosen, view))
    }
    if config.primary_view not in views:
        raise InputError(
            f"no test item with a {compared.metric} is in the primary view {config.primary_view!r}",
            remedy="choose the other primary_view, or a test set that is not all copies",
        )
    primary = views[config.primary_view]
    settings = config.model_dump(exclude={"entries", "controls"})
    return {
        "task": compared.task,
        "metric": compared.metric,
        "num_train_examples": budget,
        "settings": settings,
        **{name: settings[name] for name in ("primary_view", "alpha", "margin", "power")},
        **{name: primary[name] for name in ("best", "cheapest_within_noise", "controls")},
        "views": views,
        "sentences": primary["sentences"] + across_sentences(views, config.primary_view, len(compared.items)),
    }


def _build_view(
    config: ComparisonConfig, compared: Compared, chosen: Sequence[int], view: View
) -> dict[str, Any] | None:
    found = resample(compared, chosen, view, num_resamples=config.num_resamples, seed=config.seed)
    if found is None or np.isnan(found.values).any():
        return None
    entries = [config.entries[number] for number in chosen]
    positions: dict[str, dict[int, int]] = {}
    for position, entry in sorted(enumerate(entries), key=lambda item: item[1].seed):
        positions.setdefault(entry.rung, {})[entry.seed] = position
    rows = rank_rungs([_rung_row(config, found, entries, runs) for runs in positions.values()])
    runs = {row["rung"]: positions[row["rung"]] for row in rows}
    pairs = all_pairs(config, found, runs, compared.metric, compared.function)
    best = rows[0]["rung"]
    noise = within_noise(best, pairs, config.alpha, config.margin)
    result = {
        "num_items": found.num_items,
        "num_clusters": found.num_clusters,
        "metric": compared.metric,
        "best": best,
        "tied_with_best": tied_with_best(best, pairs),
        "not_worse_than_best": noise["not_worse"],
        "within_noise_of_best": noise["shown"],
        "cheapest_within_noise": cheapest([row for row in rows if row["rung"] in {best, *noise["shown"]}]),
        "minimum_detectable_difference": typical_detectable(pairs),
        "rungs": rows,
        "pairs": pairs,
        "controls": control_rows(config.controls, pairs, config.alpha),
    }
    return {**result, "sentences": view_sentences(result, view, config)}


def _rung_row(
    config: ComparisonConfig, found: Resampled, entries: Sequence[Entry], runs: dict[int, int]
) -> dict[str, Any]:
    """One rung: scores, mean and its interval as on the leaderboard (``aggregate``), spread over seeds, mean costs."""
    positions = list(runs.values())
    scores = found.values[positions]
    weights = seed_weights(len(positions), config.num_resamples, config.seed)
    low, high = percentile_interval((found.resampled[positions] * weights).sum(axis=0), 1 - config.alpha)
    costs = {name: statistics.fmean(getattr(entries[at], name) for at in positions) for name in COSTS}
    return {
        "rung": entries[positions[0]].rung,
        "mean": float(scores.mean()),
        "low": low,
        "high": high,
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else None,
        "num_seeds": len(scores),
        "scores": {str(seed): float(found.values[at]) for seed, at in runs.items()},
        **costs,
        "latency_seconds": 1 / costs["items_per_second"],
    }
