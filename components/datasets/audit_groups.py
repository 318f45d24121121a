"""Groups of examples with one text, and their near copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from components.datasets.audit_views import audit_text, gold
from components.datasets.config import AuditConfig
from components.datasets.rows import text_key
from components.examples import SPLITS, AnyExample
from components.formats import Split


@dataclass
class TextGroup:
    """All rows with one text, white space aside, and its near copies."""

    text: str
    """The text of the first row."""
    rows: dict[Split, list[AnyExample]] = field(default_factory=lambda: defaultdict(list))
    near: dict[Split, tuple[int, float]] = field(default_factory=dict)
    """Per split one near copy there: index of its group, and the Jaccard similarity."""

    def labels(self, *splits: Split) -> set[Hashable]:
        """The labels, tags or answers of the rows in the given splits, or in all."""
        return {gold(row) for split in splits or SPLITS for row in self.rows.get(split, ())}

    def seen_in(self, split: Split) -> bool:
        """Whether the text has a copy or near copy in a split, its own rows there included."""
        return bool(self.rows.get(split)) or split in self.near


def group_texts(
    examples: Mapping[Split, Sequence[AnyExample]], text_of: Callable[[AnyExample], str] = audit_text
) -> list[TextGroup]:
    """Group rows by a text without white space, in the order of first occurrence."""
    groups: dict[str, TextGroup] = {}
    for split in SPLITS:
        for row in examples[split]:
            text = text_of(row)
            groups.setdefault(text_key(text), TextGroup(text)).rows[split].append(row)
    return list(groups.values())


def find_near_copies(groups: list[TextGroup], config: AuditConfig, on_progress: Callable[[float], None]) -> None:
    """Fill ``near`` of every group: per split, the first candidate whose exact similarity reaches the threshold.

    Every group asks for itself, so a relation is seen from both sides although each side stops at its first find;
    a cluster of k copies therefore costs about k comparisons, not k squared.
    """
    from components.datasets.shingles import candidates, jaccard, shingle_hashes

    shingles = [shingle_hashes(group.text, config.shingle_unit, config.shingle_size) for group in groups]
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
