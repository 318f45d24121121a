"""The leak audit: who has a copy or near copy where, which labels contradict, and what a policy removes.

For every task examples are compared by their whole text. Questions are compared in two ways: copies are questions with
the same passage and wording, and the passages are compared on their own, because a reader that has trained on a passage
knows it when another question about it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.datasets.audit_groups import TextGroup, find_near_copies, group_texts
from components.datasets.audit_report import count_findings, count_passages, example_pairs
from components.datasets.audit_views import audit_text, gold
from components.datasets.config import AuditConfig
from components.examples import SPLITS, AnyExample, Question
from components.formats import Split


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

    examples: dict[Split, list[AnyExample]]
    removed: list[Removed]
    counts: dict[str, int]
    pairs: list[dict[str, Any]]


@dataclass(frozen=True)
class _Grouping:
    """Rows grouped by a text, and each row's group."""

    groups: list[TextGroup]
    group_of: dict[int, TextGroup]
    """By the identity of the row."""
    reason: str
    """What a row is removed as when its group is in a held-out split."""


def audit_splits(
    examples: Mapping[Split, Sequence[AnyExample]],
    config: AuditConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> AuditResult:
    """Audit three splits of any task and apply the policies.

    Args:
        examples: Rows by split.
        config: Similarity settings and policies.
        on_progress: Receives the share of work done, 0 to 1.
    """
    asks = any(isinstance(row, Question) for row in examples["train"])
    whole = _group(examples, audit_text, "duplicate")
    passages = _group(examples, lambda row: row.text, "passage") if asks else None
    if config.near_duplicates:
        # Questions about one passage are near copies of each other by their length alone.
        find_near_copies((passages or whole).groups, config, on_progress)
    groupings = [whole] if passages is None else [whole, passages]
    counts = count_findings(whole.groups) | ({} if passages is None else count_passages(passages.groups))
    kept, removed = _apply_policies(examples, groupings, config)
    counts.update(_removal_counts(removed, kept, asks=asks))
    pairs = [pair for grouping in groupings for pair in example_pairs(grouping.groups, config.num_pairs)]
    return AuditResult(kept, removed, counts, pairs)


def _apply_policies(
    examples: Mapping[Split, Sequence[AnyExample]], groupings: Sequence[_Grouping], config: AuditConfig
) -> tuple[dict[Split, list[AnyExample]], list[Removed]]:
    kept: dict[Split, list[AnyExample]] = {split: [] for split in SPLITS}
    removed: list[Removed] = []
    for split in SPLITS:
        for row in examples[split]:
            seen = [grouping.group_of[id(row)] for grouping in groupings]
            cause = _held_out_copy(row, split, groupings, config) or _removal_in_train(row, split, seen[0], config)
            if cause is not None:
                removed.append(cause)
            elif split == "test" and any(group.seen_in("train") or group.seen_in("validation") for group in seen):
                kept[split].append(replace(row, leaked=True))
            else:
                kept[split].append(row)
    return kept, removed


def _group(
    examples: Mapping[Split, Sequence[AnyExample]], text_of: Callable[[AnyExample], str], reason: str
) -> _Grouping:
    groups = group_texts(examples, text_of)
    return _Grouping(groups, {id(row): g for g in groups for rows in g.rows.values() for row in rows}, reason)


def _held_out_copy(
    row: AnyExample, split: Split, groupings: Sequence[_Grouping], config: AuditConfig
) -> Removed | None:
    """The removal of a row that a later split has a copy of, if the policy of that split asks for it."""
    policies: list[tuple[Split, str]] = [
        ("test", config.duplicates_of_test),
        ("validation", config.duplicates_of_validation),
    ]
    for held_out, policy in policies:
        if policy != "remove" or SPLITS.index(split) >= SPLITS.index(held_out):
            continue
        for grouping in groupings:
            if (group := grouping.group_of[id(row)]).seen_in(held_out):
                other = _copy_in(held_out, group, grouping.groups)
                return Removed(row.id, split, f"{grouping.reason}_of_{held_out}", other.id)
    return None


def _removal_in_train(row: AnyExample, split: Split, group: TextGroup, config: AuditConfig) -> Removed | None:
    if split != "train":
        return None
    rows = group.rows["train"]
    if config.contradictions_in_train == "remove" and len(group.labels("train")) > 1:
        other = next(other for other in rows if gold(other) != gold(row))
        return Removed(row.id, split, "contradictory_label", other.id)
    first = next(other for other in rows if gold(other) == gold(row))
    if config.duplicates_in_train == "remove" and first is not row:
        return Removed(row.id, split, "duplicate", first.id)
    return None


def _copy_in(split: Split, group: TextGroup, groups: Sequence[TextGroup]) -> AnyExample:
    rows = group.rows.get(split) or groups[group.near[split][0]].rows[split]
    return rows[0]


def _removal_counts(
    removed: Sequence[Removed], kept: Mapping[Split, Sequence[AnyExample]], *, asks: bool
) -> dict[str, int]:
    kinds = ("duplicate", "passage") if asks else ("duplicate",)
    reasons = [f"{kind}_of_{split}" for kind in kinds for split in ("test", "validation")]
    counts = {f"num_train_removed_{reason}": 0 for reason in (*reasons, "contradictory_label", "duplicate")}
    counts |= {f"num_validation_removed_{kind}_of_test": 0 for kind in kinds}
    for row in removed:
        counts[f"num_{row.split}_removed_{row.reason}"] += 1
    for split in SPLITS:
        counts[f"num_{split}"] = len(kept[split])
    counts["num_test_leaked"] = sum(row.leaked for row in kept["test"])
    return counts
