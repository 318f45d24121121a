"""Answer spans: checked against the passage, repaired where they can mean only one place.

All positions are code points. An answer that is not at its offset is looked for in this order, and moved only when one
place is left: where its offset leads in another unit (UTF-16, UTF-8 bytes); the same text near the offset; the same
text anywhere; and the last two again with punctuation, white space and width set aside (１９９０年, and 1990年).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

NEAR_CHARS = 10
"""Within this distance a single occurrence is taken for the meant one, although the text occurs elsewhere too."""
_EXCERPT_CHARS = 40


@dataclass(frozen=True)
class Alignment:
    """Where an answer is."""

    outcome: Literal["exact", "repaired", "unplaced"]
    start: int | None
    text: str
    """The passage at ``start``; the answer as given where it is unplaced."""
    found: str = ""
    """What the passage holds at the given offset."""
    nearest: int | None = None
    """The occurrence nearest to the given offset, if there is any; for reports."""
    unit: str | None = None
    """The unit in which the given offset is right, if it is not code points."""


def align(passage: str, text: str, start: int) -> Alignment:
    """Check one answer and repair its place.

    Args:
        passage: The passage.
        text: The answer, not blank.
        start: The given offset; negative stands for unknown.
    """
    if start >= 0 and passage[start : start + len(text)] == text:
        return Alignment("exact", start, text)
    found = passage[start : start + len(text)][:_EXCERPT_CHARS] if start >= 0 else ""
    unit, place = _other_unit(passage, text, start)
    spans = _occurrences(passage, text)
    if place is not None:
        return Alignment("repaired", place, text, found, place, unit)
    spans = spans or _folded_occurrences(passage, text)
    nearest = min((span[0] for span in spans), key=lambda at: (abs(at - start), at), default=None)
    chosen = _unique(spans, start)
    if chosen is None:
        return Alignment("unplaced", None, text, found, nearest)
    return Alignment("repaired", chosen[0], passage[chosen[0] : chosen[1]], found, chosen[0])


def _unique(spans: list[tuple[int, int]], start: int) -> tuple[int, int] | None:
    near = [span for span in spans if start >= 0 and abs(span[0] - start) <= NEAR_CHARS]
    for group in (near, spans):
        if len(group) == 1:
            return group[0]
    return None


def _occurrences(passage: str, text: str) -> list[tuple[int, int]]:
    spans, start = [], passage.find(text)
    while start >= 0:
        spans.append((start, start + len(text)))
        start = passage.find(text, start + 1)
    return spans


def _folded_occurrences(passage: str, text: str) -> list[tuple[int, int]]:
    """Spans of the passage that equal the text but for punctuation, white space, width and case."""
    folded, origins = _fold(passage)
    wanted, _ = _fold(text)
    if not wanted:
        return []
    spans = ((origins[start], origins[end - 1] + 1) for start, end in _occurrences(folded, wanted))
    return sorted(set(spans))


@lru_cache(maxsize=64)
def _fold(text: str) -> tuple[str, list[int]]:
    """The letters, digits and symbols of a text in one width and case, and where each came from."""
    folded, origins = [], []
    for position, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).casefold():
            if unicodedata.category(part)[0] not in "PZC":
                folded.append(part)
                origins.append(position)
    return "".join(folded), origins


def _other_unit(passage: str, text: str, start: int) -> tuple[str | None, int | None]:
    """The unit in which the offset fits, and the offset in code points; only text beyond ASCII makes a difference."""
    if start < 0 or passage.isascii():
        return None, None
    for unit, encoding, width in (("UTF-16 code units", "utf-16-le", 2), ("UTF-8 bytes", "utf-8", 1)):
        before = passage.encode(encoding)[: start * width].decode(encoding, "ignore")
        place = len(before)
        exact = len(before.encode(encoding)) == start * width and place != start
        if exact and passage[place : place + len(text)] == text:
            return unit, place
    return None, None
