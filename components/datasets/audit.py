"""The leak audit: who has a copy or near copy where, which labels contradict, and what a policy removes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from components.datasets.config import AuditConfig
from components.datasets.rows import text_key
from components.examples import SPLITS, Example
from components.formats import Split

EXCERPT_CHARS = 80
Kind = Literal["exact", "near"]


@dataclass
class TextGroup:
    """All rows with one text, white space aside, and its near copies."""

    rows: dict[Split, list[Example]] = field(default_factory=lambda: defaultdict(list))
    near: dict[Split, tuple[int, float]] = field(default_factory=dict)
    """Per split one near copy there: index of its group, and the Jaccard similarity."""

    def labels(self, *splits: Split) -> set[str]:
        """The labels of the rows in the given splits, or in all."""
        return {row.label for split in splits or SPLITS for row in self.rows.get(split, ())}

    def seen_in(self, split: Split) -> bool:
        """Whether the text has a copy or near copy in a split, its own rows there included."""
        return bool(self.rows.get(split)) or split in self.near


@dataclass(frozen=True)
class Removed:
    """A row that the audit took out, why, and because of which row."""

    id: str
    split: Split
    reason: str
    other: str


@dataclass(frozen=True)
class AuditResult:
    """The cleaned splits, what left them, and the report."""

    examples: dict[Split, list[Example]]
    removed: list[Removed]
    counts: dict[str, int]
    pairs: list[dict[str, Any]]


def audit_splits(
    examples: Mapping[Split, Sequence[Example]],
    config: AuditConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> AuditResult:
    """Audit three splits and apply the policies.

    Args:
        examples: Rows by split.
        config: Similarity settings and policies.
        on_progress: Receives the share of work done, 0 to 1.
    """
    groups = group_texts(examples)
    if config.near_duplicates:
        find_near_copies(groups, config, on_progress)
    counts = count_findings(groups)
    kept: dict[Split, list[Example]] = {split: [] for split in SPLITS}
    removed: list[Removed] = []
    group_of = {id(row): group for group in groups for rows in group.rows.values() for row in rows}
    for split in SPLITS:
        for row in examples[split]:
            group = group_of[id(row)]
            cause = _removal(row, split, group, groups, config)
            if cause is not None:
                removed.append(cause)
            elif split == "test" and (group.seen_in("train") or group.seen_in("validation")):
                kept[split].append(replace(row, leaked=True))
            else:
                kept[split].append(row)
    counts.update(_removal_counts(removed, kept))
    return AuditResult(kept, removed, counts, example_pairs(groups, config.num_pairs))


def group_texts(examples: Mapping[Split, Sequence[Example]]) -> list[TextGroup]:
    """Group rows by their text without white space, in the order of first occurrence."""
    groups: dict[str, TextGroup] = {}
    for split in SPLITS:
        for row in examples[split]:
            groups.setdefault(text_key(row.text), TextGroup()).rows[split].append(row)
    return list(groups.values())


def _first_row(group: TextGroup) -> Example:
    return next(rows[0] for split in SPLITS if (rows := group.rows.get(split)))


def find_near_copies(groups: list[TextGroup], config: AuditConfig, on_progress: Callable[[float], None]) -> None:
    """Fill ``near`` of every group: per split, the first candidate whose exact similarity reaches the threshold.

    Every group asks for itself, so a relation is seen from both sides although each side stops at its first find;
    a cluster of k copies therefore costs about k comparisons, not k squared.
    """
    from components.datasets.shingles import candidates, jaccard, shingle_hashes

    shingles = [shingle_hashes(_first_row(group).text, config.shingle_unit, config.shingle_size) for group in groups]
    on_progress(0.2)
    for index, others in candidates(shingles, threshold=config.threshold, num_perm=config.num_perm):
        near = groups[index].near
        for other in others:
            missing = [split for split in groups[other].rows if split not in near]
            if missing and (similarity := jaccard(shingles[index], shingles[other])) >= config.threshold:
                near.update(dict.fromkeys(missing, (other, similarity)))
        if index % 2000 == 0:
            on_progress(0.6 + 0.4 * index / len(groups))
    on_progress(1.0)


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


def _removal(
    row: Example, split: Split, group: TextGroup, groups: Sequence[TextGroup], config: AuditConfig
) -> Removed | None:
    policies: list[tuple[Split, str]] = [
        ("test", config.duplicates_of_test),
        ("validation", config.duplicates_of_validation),
    ]
    for held_out, policy in policies:
        if policy == "remove" and SPLITS.index(split) < SPLITS.index(held_out) and group.seen_in(held_out):
            return Removed(row.id, split, f"duplicate_of_{held_out}", _copy_in(held_out, group, groups).id)
    if split != "train":
        return None
    rows = group.rows["train"]
    if config.contradictions_in_train == "remove" and len(group.labels("train")) > 1:
        other = next(other for other in rows if other.label != row.label)
        return Removed(row.id, split, "contradictory_label", other.id)
    first = next(other for other in rows if other.label == row.label)
    if config.duplicates_in_train == "remove" and first is not row:
        return Removed(row.id, split, "duplicate", first.id)
    return None


def _copy_in(split: Split, group: TextGroup, groups: Sequence[TextGroup]) -> Example:
    rows = group.rows.get(split) or groups[group.near[split][0]].rows[split]
    return rows[0]


def _removal_counts(removed: Sequence[Removed], kept: Mapping[Split, Sequence[Example]]) -> dict[str, int]:
    reasons = ("duplicate_of_test", "duplicate_of_validation", "contradictory_label", "duplicate")
    counts = {f"num_train_removed_{reason}": 0 for reason in reasons} | {"num_validation_removed_duplicate_of_test": 0}
    for row in removed:
        counts[f"num_{row.split}_removed_{row.reason}"] += 1
    for split in SPLITS:
        counts[f"num_{split}"] = len(kept[split])
    counts["num_test_leaked"] = sum(row.leaked for row in kept["test"])
    return counts


# --- examples for the report -----------------------------------------------------------------------------------------


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


def _pair(kind: Kind, similarity: float, left: tuple[Split, Example], right: tuple[Split, Example]) -> dict[str, Any]:
    sides = {
        side: {"id": row.id, "split": split, "label": row.label, "excerpt": row.text[:EXCERPT_CHARS]}
        for side, (split, row) in (("left", left), ("right", right))
    }
    return {
        "kind": kind,
        "similarity": round(similarity, 4),
        "contradictory": left[1].label != right[1].label,
        **sides,
    }
