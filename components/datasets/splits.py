"""Content-hashed splits: where a text goes depends on the text and the seed, never on the rows around it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from components.datasets.rows import LabelledText
from components.errors import InputError
from components.examples import SPLITS
from components.formats import Split

DropReason = Literal[
    "empty_text", "duplicate", "contradictory_label", "over_limit", "inconsistent_answers", "no_valid_answer"
]


class Keyed(Protocol):
    """Anything with an id and a text that decides its place."""

    @property
    def id(self) -> str:
        """The example's id."""

    @property
    def key(self) -> str:
        """The text, without white space, that is hashed."""


K = TypeVar("K", bound=Keyed)


@dataclass(frozen=True)
class Dropped:
    """A row that did not become an example, and why."""

    id: str
    reason: DropReason
    other: str | None = None
    """Id of the row it duplicates or contradicts."""


def position(key: str, seed: int) -> float:
    """A number in [0, 1) from the first 53 bits of SHA-256(seed, text without white space)."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def remove_duplicates(texts: Iterable[LabelledText]) -> tuple[list[LabelledText], list[Dropped], int]:
    """Keep the first of equal texts, and none of a text that carries several labels.

    Returns:
        The kept rows in their order, the dropped ones, and the number of distinct contradictory texts.
    """
    groups: dict[str, list[LabelledText]] = defaultdict(list)
    for text in texts:
        groups[text.key].append(text)
    kept, dropped, num_contradictory = [], [], 0
    for first, *others in groups.values():
        contradiction = next((other for other in others if other.label != first.label), None)
        if contradiction is None:
            kept.append(first)
            dropped += [Dropped(other.id, "duplicate", first.id) for other in others]
            continue
        num_contradictory += 1
        dropped += [
            Dropped(row.id, "contradictory_label", _opponent(row, first, contradiction)) for row in (first, *others)
        ]
    return kept, dropped, num_contradictory


def _opponent(row: LabelledText, first: LabelledText, contradiction: LabelledText) -> str:
    return first.id if row.label != first.label else contradiction.id


def split_texts(
    texts: Iterable[LabelledText], *, test_fraction: float, validation_fraction: float, seed: int
) -> dict[Split, list[LabelledText]]:
    """Assign every text to a split by its hash: equal texts stay together, added rows move no other row.

    Args:
        texts: Rows in source order.
        test_fraction: Share for test, 0 to 1.
        validation_fraction: Share for validation, 0 to 1; the sum of both is below 1.
        seed: Another seed gives another split.

    Returns:
        Rows by split, each in source order.
    """
    splits: dict[Split, list[LabelledText]] = {"train": [], "validation": [], "test": []}
    for text in texts:
        name = split_of(text.key, test_fraction=test_fraction, validation_fraction=validation_fraction, seed=seed)
        splits[name].append(text)
    return splits


def split_of(key: str, *, test_fraction: float, validation_fraction: float, seed: int) -> Split:
    """The split of a text by its hash; see ``split_texts``."""
    place = position(key, seed)
    if place < test_fraction:
        return "test"
    return "validation" if place < test_fraction + validation_fraction else "train"


def limit_texts(texts: Sequence[K], num_examples: int | None, seed: int) -> tuple[list[K], list[Dropped]]:
    """At most ``num_examples`` rows: those first in hash order, returned in source order; and the rest."""
    if num_examples is None or len(texts) <= num_examples:
        return list(texts), []
    ranked = sorted(range(len(texts)), key=lambda index: (position(texts[index].key, seed), index))
    chosen = set(ranked[:num_examples])
    kept = [text for index, text in enumerate(texts) if index in chosen]
    return kept, [Dropped(text.id, "over_limit") for index, text in enumerate(texts) if index not in chosen]


def refuse_empty(splits: Mapping[Split, Sequence[object]], num_rows: int) -> None:
    """Refuse a data set with an empty split.

    Args:
        splits: Rows of every split.
        num_rows: Training rows that were read.

    Raises:
        InputError: Naming the split.
    """
    for split in SPLITS:
        if not splits[split]:
            raise InputError(
                f"the {split} split is empty ({num_rows} training rows read)",
                remedy=f"add rows, or name a {split} file, or raise {split}_fraction",
            )
