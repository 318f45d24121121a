"""Edits: what a rule changed, and how positions in its output lead back to its input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Edit = tuple[int, int, int]
"""Characters ``start`` to ``end`` of a rule's input became ``length`` characters of its output."""

Edits = list[Edit]


def apply_edits(starts: Sequence[int], ends: Sequence[int], edits: Edits) -> tuple[Sequence[int], Sequence[int]]:
    """Carry original positions through one rule.

    Args:
        starts: For each character of the rule's input, where its original characters start.
        ends: The same for their ends.
        edits: What the rule changed, in order.

    Returns:
        Starts and ends for each character of the rule's output.
    """
    new_starts: list[int] = []
    new_ends: list[int] = []
    position = 0
    for start, end, length in edits:
        new_starts.extend(starts[position:start])
        new_ends.extend(ends[position:start])
        if length == end - start:
            new_starts.extend(starts[start:end])
            new_ends.extend(ends[start:end])
        elif length:
            # An insertion maps to the place it was made at; a composed character covers all its parts.
            new_starts.extend([starts[start]] * length)
            new_ends.extend([ends[end - 1]] * length)
        position = end
    new_starts.extend(starts[position:])
    new_ends.extend(ends[position:])
    return new_starts, new_ends


def substitute(text: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> tuple[str, Edits]:
    """Replace every match, keeping the edits; matches whose replacement is equal are no edit."""
    parts: list[str] = []
    edits: Edits = []
    position = 0
    for match in pattern.finditer(text):
        new = replacement(match)
        if new == match.group():
            continue
        parts.append(text[position : match.start()])
        parts.append(new)
        position = match.end()
        edits.append((match.start(), match.end(), len(new)))
    if not edits:
        return text, edits
    parts.append(text[position:])
    return "".join(parts), edits
