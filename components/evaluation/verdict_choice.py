"""Which rung is best, and which is the cheapest that is about as good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.evaluation.verdict_pairs import Pair, find_pair

SAME_COST = 1.1
"""Costs within this factor of the lowest count as equal: wall times repeat no better."""


def rank_rungs(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rungs by mean, highest first; equal means by cost, then by name."""
    return sorted(rows, key=lambda row: (-row["mean"], row["train_seconds"], row["rung"]))


def tied_with_best(best: str, pairs: Sequence[Pair]) -> list[str]:
    """Rungs that the corrected comparisons with the best do not show to be worse than the best one.

    Rungs that share a few seeds only are tested on those, where the difference can have another sign than that of the
    means; such a rung is not shown to be worse, however small its p value.
    """
    against = _against(best, pairs)
    return [name for name, pair in against.items() if not (pair["significant"] and pair["difference"] > 0)]


def within_noise(best: str, pairs: Sequence[Pair], alpha: float, margin: float) -> dict[str, list[str]]:
    """Rungs that may be as good as the best one, and those of them that are shown to be about as good.

    ``not_worse``: the test against the best one is not significant **before** correction for the number of tests.
    To call two rungs different, the corrected p value is the cautious one; to call a cheaper rung as good, the
    uncorrected one is, as it notices a loss sooner.
    ``shown``: besides, the interval of the difference excludes a loss of more than ``margin`` (non-inferiority;
    Piaggio et al. 2012). Without this a test set too small to show any difference would recommend the cheapest rung.
    """
    other = _against(best, pairs)
    not_worse = [name for name, pair in other.items() if pair["p"] >= alpha or pair["difference"] <= 0]
    return {"not_worse": not_worse, "shown": [name for name in not_worse if other[name]["high"] <= margin]}


def cheapest(rows: Sequence[dict[str, Any]]) -> str:
    """The cheapest of some rungs: train_seconds decide, then latency, then size.

    Kept are the rungs within 10 % of the lowest ``train_seconds``; of these, those within 10 % of the lowest
    ``latency_seconds`` for one item; of these, the one with the fewest ``model_bytes``, then the higher mean, then
    the name.
    """
    kept = list(rows)
    for cost in ("train_seconds", "latency_seconds"):
        limit = min(row[cost] for row in kept) * SAME_COST
        kept = [row for row in kept if row[cost] <= limit]
    return str(min(kept, key=lambda row: (row["model_bytes"], -row["mean"], row["rung"]))["rung"])


def _against(best: str, pairs: Sequence[Pair]) -> dict[str, Pair]:
    """The pair of the best rung and each other one, turned so that positive differences favour the best."""
    return {
        name: find_pair(pairs, best, name) for pair in pairs if best in _names(pair) for name in [_other(pair, best)]
    }


def _names(pair: Pair) -> tuple[str, str]:
    return pair["first"], pair["second"]


def _other(pair: Pair, name: str) -> str:
    first, second = _names(pair)
    return second if first == name else first
