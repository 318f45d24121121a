"""Tag schemes of named entities: which one a file uses, and every one of them as IOB2.

A tag is ``O`` or a prefix and a type, ``B-PER``. The schemes (Ramshaw & Marcus 1995; Tjong Kim Sang & Veenstra 1999):

- iob2 (BIO): B begins every entity, I goes on.
- iob1: I everywhere; B only where an entity follows another of the same type at once.
- bioes (BMES, BILOU): B begins, I or M goes on, E or L ends; S or U is an entity of one token.
- io: I-TYPE or the bare TYPE; adjacent entities of one type cannot be told apart.

Whatever the scheme, entities are read by the rule of conlleval (CoNLL-2000): one begins at B or S; and at I, M or E
when the token before is outside, of another type, or ends its entity (E, S). Tags that the scheme does not allow there
are read by the same rule and listed as repairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from components.examples import OUTSIDE

TagScheme = Literal["iob2", "iob1", "bioes", "io"]
_ALIASES = {"M": "I", "L": "E", "U": "S"}
_PREFIXED = re.compile(r"([BIESMLU])-(.+)", re.DOTALL)
_ODD_TYPE = re.compile(r"\A[A-Za-z]?[-_]|[-_][A-Za-z]?\Z")
"""What a bare type never looks like, as it would be a misspelt prefix: b-PER, B_PER, PER-B, -PER."""


@dataclass(frozen=True)
class Tag:
    """A tag taken apart."""

    prefix: str
    """O, B, I, E or S; M, L and U are spellings of I, E and S. Empty for a bare type."""
    type: str
    """Entity type; empty outside."""


@dataclass(frozen=True)
class EntitySpan:
    """An entity over tokens ``start`` to ``end`` (exclusive)."""

    start: int
    end: int
    type: str


_OUTSIDE = Tag("O", "")


def parse_tag(tag: str) -> Tag | None:
    """The prefix and type of a tag; None when it is neither O, nor prefix and type, nor a bare type."""
    if tag == OUTSIDE:
        return _OUTSIDE
    match = _PREFIXED.fullmatch(tag)
    if match is not None:
        return Tag(_ALIASES.get(match[1], match[1]), match[2].strip()) if match[2].strip() else None
    bare = len(tag.strip()) > 1 and _ODD_TYPE.search(tag) is None
    return Tag("", tag.strip()) if bare else None


def detect_scheme(sequences: Iterable[Sequence[Tag]]) -> TagScheme:
    """The scheme of a whole file.

    E or S make it bioes, the lack of B io. B and I occur in both iob1 and iob2: it is iob1 when more entities begin
    with an I than with a B that follows no token of its type (iob1 allows none of the latter, iob2 none of the former).

    Args:
        sequences: The tags of every sentence.
    """
    prefixes: set[str] = set()
    num_inside_first = num_begin_first = 0
    for tags in sequences:
        for before, tag in _with_previous(tags):
            prefixes.add(tag.prefix)
            num_inside_first += tag.prefix == "I" and before.type != tag.type
            num_begin_first += tag.prefix == "B" and before.type != tag.type
    if prefixes & {"E", "S"}:
        return "bioes"
    if "B" not in prefixes and prefixes & {"I", ""}:
        return "io"
    return "iob1" if num_inside_first > num_begin_first else "iob2"


def find_repairs(tags: Sequence[Tag], scheme: TagScheme) -> list[int]:
    """Positions of the tags that the scheme does not allow there, in order.

    iob2: I that goes on from nothing. iob1: B that follows no entity of its type. bioes: I or E that goes on from
    nothing, and B or I whose entity never ends. io: any B. A prefix of another scheme counts in all of them.
    """
    allowed = {"iob2": "OBI", "iob1": "OBI", "bioes": "OBIES", "io": "OI"}[scheme]
    illegal = set()
    for position, (before, tag) in enumerate(_with_previous(tags)):
        foreign = tag.prefix not in allowed if tag.prefix else scheme != "io"
        continues = before.type == tag.type and not (scheme == "bioes" and before.prefix in "ES")
        lost = tag.prefix in {"I", "E"} and not continues and scheme in {"iob2", "bioes"}
        needless = tag.prefix == "B" and before.type != tag.type and scheme == "iob1"
        if foreign or lost or needless:
            illegal.add(position)
    return sorted(illegal | set(_unclosed(tags))) if scheme == "bioes" else sorted(illegal)


def _unclosed(tags: Sequence[Tag]) -> Iterator[int]:
    """Positions of B and I that neither go on nor end."""
    for position, tag in enumerate(tags):
        after = tags[position + 1] if position + 1 < len(tags) else _OUTSIDE
        if tag.prefix in {"B", "I"} and not (after.prefix in {"I", "E"} and after.type == tag.type):
            yield position


def entity_spans(tags: Sequence[Tag]) -> list[EntitySpan]:
    """The entities by conlleval's rule, in order; they never overlap.

    Args:
        tags: The tags of a sentence, of any scheme.
    """
    spans: list[EntitySpan] = []
    start = 0
    before = _OUTSIDE
    for position, tag in enumerate([*tags, _OUTSIDE]):
        begins = tag.prefix in {"B", "S"} or before.prefix in {"E", "S"} or tag.type != before.type
        if begins:
            if before.type:
                spans.append(EntitySpan(start, position, before.type))
            start = position
        before = tag
    return spans


def iob2_tags(spans: Iterable[EntitySpan], num_tokens: int) -> list[str]:
    """IOB2 tags of entities that do not overlap."""
    tags = [OUTSIDE] * num_tokens
    for span in spans:
        tags[span.start : span.end] = [f"I-{span.type}"] * (span.end - span.start)
        tags[span.start] = f"B-{span.type}"
    return tags


def tags_in_scheme(spans: Sequence[EntitySpan], num_tokens: int, scheme: TagScheme) -> list[str]:
    """Tags of entities in any scheme: the way back from IOB2.

    Args:
        spans: Entities in order, without overlaps.
        num_tokens: Tokens of the sentence.
        scheme: The scheme to write; io loses the border between adjacent entities of one type.
    """
    tags = iob2_tags(spans, num_tokens)
    before: EntitySpan | None = None
    for span in spans:
        adjacent = before is not None and before.end == span.start and before.type == span.type
        if scheme == "io" or (scheme == "iob1" and not adjacent):
            tags[span.start] = f"I-{span.type}"
        if scheme == "bioes":
            tags[span.end - 1] = f"E-{span.type}" if span.end - span.start > 1 else f"S-{span.type}"
        before = span
    return tags


def _with_previous(tags: Sequence[Tag]) -> Iterator[tuple[Tag, Tag]]:
    return zip([_OUTSIDE, *tags], tags, strict=False)
