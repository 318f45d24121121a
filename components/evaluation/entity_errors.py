"""What is wrong with predicted entities: each gold and each predicted entity falls into exactly one kind.

Within a sentence entities are paired one to one, in rounds, and a pair takes its two entities out of later rounds:

1. ``correct``: same span, same type.
2. ``wrong_type``: same span, another type.
3. ``wrong_boundary``: overlapping spans, same type.
4. ``wrong_both``: overlapping spans, another type.

A gold entity that is left is ``missed``, a predicted one ``spurious``. In rounds 3 and 4 gold entities choose in their
order the prediction they share most tokens with, the first one of several. The kinds are those of the MUC-5 scorer
(Chinchor & Sundheim 1993) with its "incorrect" split in three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from components.evaluation.data import Tags
from components.examples import TaggedText
from components.scoring.entities import Span, entities_of

KINDS = ("correct", "wrong_type", "wrong_boundary", "wrong_both", "missed", "spurious")
MAX_EXAMPLES = 20
"""Examples kept of each kind of error."""
CONTEXT_CHARS = 15
"""Text shown before and after an example."""

Pair = tuple[str, Span | None, Span | None]
"""Kind, gold entity, predicted entity."""


def _overlap(one: Span, other: Span) -> int:
    """Number of shared tokens; not positive when there is none."""
    return min(one[2], other[2]) - max(one[1], other[1])


_ROUNDS: tuple[tuple[str, Callable[[Span, Span], bool]], ...] = (
    ("correct", lambda gold, found: gold == found),
    ("wrong_type", lambda gold, found: gold[1:] == found[1:]),
    ("wrong_boundary", lambda gold, found: gold[0] == found[0] and _overlap(gold, found) > 0),
    ("wrong_both", lambda gold, found: _overlap(gold, found) > 0),
)


def pair_entities(gold: Sequence[Span], predicted: Sequence[Span]) -> list[Pair]:
    """Every gold and every predicted entity of a sentence in exactly one pair or alone, with its kind."""
    pairs: list[Pair] = []
    open_gold, open_predicted = list(gold), list(predicted)
    for kind, fits in _ROUNDS:
        for wanted in list(open_gold):
            fitting = [found for found in open_predicted if fits(wanted, found)]
            if fitting:
                best = max(fitting, key=lambda found: _overlap(wanted, found))
                pairs.append((kind, wanted, best))
                open_gold.remove(wanted)
                open_predicted.remove(best)
    missed: list[Pair] = [("missed", wanted, None) for wanted in open_gold]
    return [*pairs, *missed, *(("spurious", None, found) for found in open_predicted)]


def describe_errors(items: Sequence[TaggedText], predicted: Sequence[Tags]) -> dict[str, dict[str, Any]]:
    """By kind: how often, and the first examples in the order of the test set (none of what is correct)."""
    kinds: dict[str, dict[str, Any]] = {kind: {"count": 0, "examples": []} for kind in KINDS}
    for item, (kind, wanted, found) in _pairs(items, predicted):
        entry = kinds[kind]
        entry["count"] += 1
        if kind != "correct" and len(entry["examples"]) < MAX_EXAMPLES:
            entry["examples"].append(_example(item, wanted, found))
    return kinds


def _pairs(items: Sequence[TaggedText], predicted: Sequence[Tags]) -> Iterator[tuple[TaggedText, Pair]]:
    for item, tags in zip(items, predicted, strict=True):
        for pair in pair_entities(entities_of(item.tags), entities_of(tags)):
            yield item, pair


def _example(item: TaggedText, wanted: Span | None, found: Span | None) -> dict[str, Any]:
    spans = [span for span in (wanted, found) if span]
    start = item.tokens[min(span[1] for span in spans)][0]
    end = item.tokens[max(span[2] for span in spans) - 1][1]
    return {
        "id": item.id,
        "gold": _entity(item, wanted),
        "predicted": _entity(item, found),
        "text": item.text[max(start - CONTEXT_CHARS, 0) : end + CONTEXT_CHARS],
    }


def _entity(item: TaggedText, span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    start, end = item.tokens[span[1]][0], item.tokens[span[2] - 1][1]
    return {"type": span[0], "text": item.text[start:end], "start": start, "end": end}
