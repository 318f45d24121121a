"""Rows of tagged text: tokens of a text, entities on tokens, and everything noted on the way."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.datasets.ner_config import TokenUnit
from components.datasets.tag_schemes import EntitySpan, iob2_tags

MAX_NAMED = 100
"""At most this many places of each kind are named in the card; the count is always complete."""
_WORD = re.compile(r"\w+|[^\w\s]")
_VISIBLE = re.compile(r"\S")


@dataclass(frozen=True)
class NerRow:
    """A text with its entities, and where it comes from."""

    file: str
    """File as the user named it, or split of a hub data set."""
    line: int
    """1-based line of the text, or of its first token."""
    text: str
    tokens: tuple[tuple[int, int], ...]
    entities: tuple[EntitySpan, ...]
    """Spans of tokens, in order, none overlapping."""
    lines: tuple[int, ...] | None = None
    """Line of every token in a file of columns."""
    id: str | None = None
    document: str | None = None
    """What keeps rows together when they are split; None: the text alone decides."""

    @property
    def place(self) -> str:
        """``file:line`` for messages."""
        return f"{self.file}:{self.line}"

    def token_line(self, token: int) -> int:
        """The line of one token."""
        return self.lines[token] if self.lines is not None else self.line

    def tags(self) -> list[str]:
        """The IOB2 tags of the tokens."""
        return iob2_tags(self.entities, len(self.tokens))


@dataclass(frozen=True)
class DroppedRow:
    """A row that did not become an example, and why."""

    id: str
    reason: str
    """empty_text, span_mismatch, duplicate, contradictory_tags or over_limit."""
    other: str | None = None
    """Id of the row it duplicates or contradicts, or what was found."""


@dataclass
class NerFacts:
    """What reading and checking has counted, named and dropped so far."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    """Kind -> the first places of that kind, as ``file:line`` and what is there."""
    forms: dict[str, dict[str, Any]] = field(default_factory=dict)
    """File -> its format, separator and tag scheme."""
    dropped: list[DroppedRow] = field(default_factory=list)

    def note(self, kind: str, place: str) -> None:
        """Count one thing of a kind, and name its place while there is room."""
        self.counts[f"num_{kind}"] += 1
        named = self.places.setdefault(kind, [])
        if len(named) < MAX_NAMED:
            named.append(place)

    def drop(self, rows: Iterable[DroppedRow]) -> None:
        """Count dropped rows by reason."""
        for row in rows:
            self.dropped.append(row)
            self.counts[f"num_rows_{row.reason}"] += 1


@dataclass(frozen=True)
class CharacterSpan:
    """An entity over characters ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int
    type: str


def tokenise(text: str, unit: TokenUnit) -> list[tuple[int, int]]:
    """The tokens of a text: every character that is no white space; or words and single punctuation marks.

    A word is a run of letters, digits and underscores; ``don't`` is three tokens.
    """
    pattern = _VISIBLE if unit == "characters" else _WORD
    return [match.span() for match in pattern.finditer(text)]


def join_tokens(words: Sequence[str], unit: TokenUnit) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text of given tokens, joined without (characters) or with a space (words), and where each token lies."""
    gap = "" if unit == "characters" else " "
    offsets = []
    position = 0
    for word in words:
        offsets.append((position, position + len(word)))
        position += len(word) + len(gap)
    return gap.join(words), tuple(offsets)


def entities_on_tokens(
    spans: Iterable[CharacterSpan], tokens: Sequence[tuple[int, int]], facts: NerFacts, place: str
) -> list[EntitySpan]:
    """Entities over characters as entities over tokens; may overlap.

    An entity gets every token it touches: one that cuts a word is widened to the whole word and noted, and one that
    touches no token (white space) is noted and left out.

    Args:
        spans: Entities over characters.
        tokens: Tokens of the text, in order.
        facts: Receives what is noted.
        place: ``file:line`` for it.
    """
    starts, ends = [start for start, _ in tokens], [end for _, end in tokens]
    entities = []
    for span in spans:
        first, last = bisect.bisect_right(ends, span.start), bisect.bisect_left(starts, span.end)
        if first >= last:
            facts.note("entities_without_token", f"{place} {span.type} at {span.start}-{span.end}")
            continue
        if starts[first] < span.start or ends[last - 1] > span.end:
            facts.note("entities_cutting_words", f"{place} {span.type} at {span.start}-{span.end}")
        entities.append(EntitySpan(first, last, span.type))
    return entities


def without_overlaps(entities: Iterable[EntitySpan]) -> tuple[list[EntitySpan], list[EntitySpan]]:
    """Keep the longest of entities that share tokens; of equally long ones the first, then by type.

    Returns:
        The kept entities in text order, and the others.
    """
    kept: list[EntitySpan] = []
    others: list[EntitySpan] = []
    for entity in sorted(entities, key=lambda entity: (entity.start - entity.end, entity.start, entity.type)):
        clash = any(entity.start < other.end and other.start < entity.end for other in kept)
        (others if clash else kept).append(entity)
    return sorted(kept, key=lambda entity: entity.start), others
