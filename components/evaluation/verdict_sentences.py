"""What the numbers say, as data: each sentence is a kind and the numbers that it rests on, in no language yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.evaluation.comparison_config import ComparisonConfig
from components.evaluation.verdict_choice import SAME_COST
from components.evaluation.verdict_pairs import Pair, find_pair

Sentence = dict[str, Any]


def view_sentences(view: dict[str, Any], name: str, config: ComparisonConfig) -> list[Sentence]:
    """The best rung, the choice, what the test cannot tell, and what each ingredient adds, in one view."""
    sentences = [_best(view)]
    if len(view["rungs"]) > 1:
        sentences += [_choice(view, config), *_limits(view, config)]
    sentences += [{"kind": f"ingredient_{row['effect']}", **row} for row in view["controls"]]
    if min(row["num_seeds"] for row in view["rungs"]) == 1:
        sentences.append({"kind": "one_seed"})
    return [{**sentence, "view": name, "metric": view["metric"]} for sentence in sentences]


def across_sentences(views: Mapping[str, dict[str, Any]], primary: str, num_items: int) -> list[Sentence]:
    """Whether the verdict holds on the test items that training never saw a copy of."""
    whole, clean = views.get("all"), views.get("never_leaked")
    if whole is None or clean is None:
        return [{"kind": "none_clean", "num_items": num_items, "view": primary}]
    num_leaked = num_items - clean["num_items"]
    facts = {"num_items": num_items, "num_leaked": num_leaked, "num_clean": clean["num_items"], "view": primary}
    if not num_leaked:
        return [{"kind": "no_leaks", **facts}]
    return [{**_leak_effect(whole, clean), **facts, "metric": whole["metric"]}]


def _best(view: dict[str, Any]) -> Sentence:
    best = view["rungs"][0]
    facts = {name: best[name] for name in ("rung", "mean", "low", "high", "num_seeds")}
    if len(view["rungs"]) == 1:
        return {"kind": "only_rung", **facts}
    lead = _lead(view)
    facts |= {
        "runner_up": lead["second"],
        "difference": lead["difference"],
        "difference_low": lead["low"],
        "difference_high": lead["high"],
        "p_holm": lead["p_holm"],
        "tied": view["tied_with_best"],
        "num_rungs": len(view["rungs"]),
    }
    tied = len(view["tied_with_best"])
    kind = "best_clear" if not tied else "all_tied" if tied == len(view["rungs"]) - 1 else "best_leads"
    return {"kind": kind, **facts}


def _choice(view: dict[str, Any], config: ComparisonConfig) -> Sentence:
    """The cheapest rung within noise of the best, or why none is named but the best itself."""
    rows = {row["rung"]: row for row in view["rungs"]}
    best, chosen = view["best"], view["cheapest_within_noise"]
    facts = {"rung": chosen, "best": best, "margin": config.margin}
    if chosen != best:
        pair = find_pair(view["pairs"], best, chosen)
        facts |= {f"{cost}{end}": rows[name][cost] for end, name in (("", chosen), ("_best", best)) for cost in _COSTS}
        return {"kind": "cheaper_as_good", **facts, "loss": pair["difference"], "loss_high": pair["high"]}
    # Shown ones that were not chosen cost about the same: latency or size spoke for the best one.
    unshown = [name for name in view["not_worse_than_best"] if name not in view["within_noise_of_best"]]
    candidates = [name for name in unshown if rows[name]["train_seconds"] * SAME_COST < rows[best]["train_seconds"]]
    if not candidates:
        return {"kind": "best_is_cheapest", **facts, "train_seconds": rows[best]["train_seconds"]}
    nearest = min(candidates, key=lambda name: find_pair(view["pairs"], best, name)["high"])
    pair = find_pair(view["pairs"], best, nearest)
    unproven = {"candidate": nearest, "loss": pair["difference"], "loss_high": pair["high"]}
    return {"kind": "cheaper_unproven", **facts, **unproven}


_COSTS = ("train_seconds", "latency_seconds", "model_bytes")


def _limits(view: dict[str, Any], config: ComparisonConfig) -> list[Sentence]:
    """What would separate the best rung and its runner-up, and whether the test set is too small to tell much."""
    sentences = []
    lead, smallest = _lead(view), view["minimum_detectable_difference"]
    if not lead["significant"]:
        facts = {"first": lead["first"], "second": lead["second"], "difference": lead["difference"]}
        reason = lead["not_separable_because"] or "items"
        facts |= {"items_needed": lead["items_to_separate"], "num_items": view["num_items"], "power": config.power}
        sentences.append({"kind": f"not_separable_{reason}", **facts, "num_seeds": lead["num_seeds"]})
    sizes = {"num_items": view["num_items"], "minimum_detectable_difference": smallest, "margin": config.margin}
    facts = {**sizes, "power": config.power, "num_seeds": lead["num_seeds"]}
    return [*sentences, {"kind": _sensitivity(view, config.margin), **facts}]


def _sensitivity(view: dict[str, Any], margin: float) -> str:
    """Whether the test left a question open that it was too coarse for, and whether items or seeds would help.

    Where every rung is shown to be worse than the best one or about as good, the test was fine enough, whatever
    differences it might have missed: rungs far apart differ on many items, which makes small differences hard to see.
    """
    settled, smallest = {*view["within_noise_of_best"]}, view["minimum_detectable_difference"]
    if {*view["tied_with_best"]} <= settled or (smallest is not None and smallest <= margin):
        return "test_finds"
    coarse = [pair for pair in view["pairs"] if (pair["minimum_detectable_difference"] or 1.0) > margin]
    by_seeds = sum(not pair["items_would_reach_margin"] for pair in coarse)
    return "seeds_too_few" if 2 * by_seeds > len(coarse) else "test_too_small"


def _leak_effect(whole: dict[str, Any], clean: dict[str, Any]) -> Sentence:
    """How the lead on all items fares without the leaked ones.

    A lead that is significant on all items and is gone, or at most half as large, on never-leaked ones may come from
    copies. One that is about as large and no longer significant has lost items, not ground.
    """
    facts = {"rung": whole["best"], "clean_best": clean["best"]}
    if len(whole["rungs"]) == 1:
        means = {"mean": whole["rungs"][0]["mean"], "clean_mean": clean["rungs"][0]["mean"]}
        return {"kind": "views_agree", **facts, **means}
    rival = clean["best"] if clean["best"] != whole["best"] else _lead(whole)["second"]
    before, after = (find_pair(view["pairs"], whole["best"], rival) for view in (whole, clean))
    facts |= {"rival": rival, "difference": before["difference"], "clean_difference": after["difference"]}
    facts |= {"clean_low": after["low"], "clean_high": after["high"], "p_holm": before["p_holm"]}
    if before["significant"] and not (after["significant"] and after["difference"] > 0):
        shrunk = after["difference"] <= before["difference"] / 2
        return {"kind": "leak_only_winner" if shrunk else "lead_not_confirmed", **facts}
    return {"kind": "views_agree" if clean["best"] == whole["best"] else "views_differ", **facts}


def _lead(view: dict[str, Any]) -> Pair:
    """The pair of the best rung and its runner-up."""
    return find_pair(view["pairs"], view["rungs"][0]["rung"], view["rungs"][1]["rung"])
