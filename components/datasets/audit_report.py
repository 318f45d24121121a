"""The audit's report: counts of copies and contradictions, and pairs to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from components.datasets.audit_groups import TextGroup
from components.datasets.audit_views import gold, shown_gold
from components.examples import SPLITS, AnyExample
from components.formats import Split

EXCERPT_CHARS = 80
Kind = Literal["exact", "near"]


def count_findings(groups: Sequence[TextGroup]) -> dict[str, int]:
    """Count rows by what they have: copies and near copies per split, contradictory labels, leaks into test."""
    counts: Counter[str] = Counter()
    for left in SPLITS:
        counts[f"num_{left}_in"] = sum(len(group.rows.get(left, ())) for group in groups)
        counts[f"num_{left}_exact_inside"] = sum(max(0, len(group.rows.get(left, ())) - 1) for group in groups)
        counts[f"num_{left}_near_inside"] = _count_near(groups, left, left)
        for right in SPLITS[: SPLITS.index(left)]:
            exact = sum(len(group.rows[left]) for group in groups if group.rows.get(left) and group.rows.get(right))
            counts[f"num_{left}_exact_in_{right}"] = exact
            counts[f"num_{left}_near_in_{right}"] = _count_near(groups, left, right)
    counts["num_test_leaked_exact"] = sum(
        len(group.rows.get("test", ())) for group in groups if group.rows.get("train") or group.rows.get("validation")
    )
    contradictory = [group for group in groups if len(group.labels()) > 1]
    counts["num_texts_contradictory"] = len(contradictory)
    counts["num_rows_contradictory"] = sum(len(rows) for group in contradictory for rows in group.rows.values())
    counts["num_texts_near_contradictory"] = sum(_contradicts_near(group, groups) for group in groups)
    return dict(counts)


def _count_near(groups: Sequence[TextGroup], left: Split, right: Split) -> int:
    """Rows of ``left`` with a near copy in ``right`` that have no exact copy there."""
    return sum(
        len(group.rows.get(left, ()))
        for group in groups
        if right in group.near and (left == right or not group.rows.get(right))
    )


def _contradicts_near(group: TextGroup, groups: Sequence[TextGroup]) -> bool:
    return any(group.labels() != groups[other].labels() for other, _ in group.near.values())


def count_passages(groups: Sequence[TextGroup]) -> dict[str, int]:
    """Count questions whose passage, on its own, has a copy or near copy in an earlier split; and passages."""
    counts = {f"num_{split}_passages": sum(bool(group.rows.get(split)) for group in groups) for split in SPLITS}
    for left in SPLITS:
        for right in SPLITS[: SPLITS.index(left)]:
            exact = sum(len(group.rows[left]) for group in groups if group.rows.get(left) and group.rows.get(right))
            counts[f"num_{left}_passage_exact_in_{right}"] = exact
            counts[f"num_{left}_passage_near_in_{right}"] = _count_near(groups, left, right)
    return counts


# --- pairs -----------------------------------------------------------------------------------------------------------


def example_pairs(groups: Sequence[TextGroup], num_pairs: int) -> list[dict[str, Any]]:
    """Up to ``num_pairs`` pairs per kind and pair of splits, those across splits first."""
    found: dict[tuple[Split, Split, Kind], list[dict[str, Any]]] = {}
    for left, right in _split_pairs():
        for kind in ("exact", "near"):
            found[left, right, kind] = []
    for index, group in enumerate(groups):
        for left, right in _split_pairs():
            _add_exact(found[left, right, "exact"], group, left, right, num_pairs)
            _add_near(found[left, right, "near"], index, groups, left, right, num_pairs)
    return [pair for pairs in found.values() for pair in pairs]


def _split_pairs() -> list[tuple[Split, Split]]:
    across: list[tuple[Split, Split]] = [("test", "train"), ("test", "validation"), ("validation", "train")]
    return across + [(split, split) for split in SPLITS]


def _add_exact(pairs: list[dict[str, Any]], group: TextGroup, left: Split, right: Split, limit: int) -> None:
    lefts, rights = group.rows.get(left, []), group.rows.get(right, [])[left == right :]
    if lefts and rights and len(pairs) < limit:
        pairs.append(_pair("exact", 1.0, (left, lefts[0]), (right, rights[0])))


def _add_near(
    pairs: list[dict[str, Any]], index: int, groups: Sequence[TextGroup], left: Split, right: Split, limit: int
) -> None:
    group = groups[index]
    if right not in group.near or not group.rows.get(left) or len(pairs) >= limit:
        return
    other, similarity = group.near[right]
    if left != right or index < other:
        pairs.append(_pair("near", similarity, (left, group.rows[left][0]), (right, groups[other].rows[right][0])))


def _pair(
    kind: Kind, similarity: float, left: tuple[Split, AnyExample], right: tuple[Split, AnyExample]
) -> dict[str, Any]:
    sides = {
        side: {"id": row.id, "split": split, "label": shown_gold(row), "excerpt": row.text[:EXCERPT_CHARS]}
        for side, (split, row) in (("left", left), ("right", right))
    }
    return {
        "kind": kind,
        "similarity": round(similarity, 4),
        "contradictory": gold(left[1]) != gold(right[1]),
        **sides,
    }
