"""Scoring of entities: every metric is a ratio of entity counts, summed over sentences.

Columns of a sentence's counts: tokens, right tokens; entities in gold, predicted, right by the conll reading of the
tags; the same three for entities seen in training; then the same three for each of T types, strict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.evaluation.classification import macro_f1
from components.evaluation.data import Tags
from components.evaluation.entity_errors import describe_errors
from components.evaluation.reference import Reference
from components.examples import TaggedText
from components.scoring.entities import EntityCounts, Span, entities_of

Sums = NDArray[Any]
Values = NDArray[np.float64]
_TOKENS, _RIGHT_TOKENS, _CONLL, _SEEN, _TYPES = 0, 1, 2, 5, 8
"""First columns of each group."""


def surface_of(item: TaggedText, entity: Span) -> str:
    """The text of an entity, with whatever stands between its tokens."""
    _, start, end = entity
    return item.text[item.tokens[start][0] : item.tokens[end - 1][1]]


def entity_counts(items: Sequence[TaggedText], predicted: Sequence[Tags], reference: Reference) -> NDArray[np.float32]:
    """Counts of N sentences, shape [N, 8 + 3 · T] for T types; an entity is seen if train has its surface and type."""
    index = {name: position for position, name in enumerate(reference.labels)}
    num_types = len(index)
    counts = np.zeros((len(items), _TYPES + 3 * num_types), dtype=np.float32)
    for row, item, tags in zip(counts, items, predicted, strict=True):
        row[_TOKENS] = len(tags)
        row[_RIGHT_TOKENS] = sum(map(str.__eq__, item.tags, tags))
        _add_entities(row[_CONLL:_SEEN], entities_of(item.tags, "conll"), entities_of(tags, "conll"))
        wanted, found = entities_of(item.tags), entities_of(tags)
        known = {one: (surface_of(item, one), one[0]) in reference.seen for one in {*wanted, *found}}
        _add_entities(row[_SEEN:_TYPES], [one for one in wanted if known[one]], [one for one in found if known[one]])
        for group, entities in enumerate((wanted, found, set(wanted) & set(found))):
            for name, _, _ in entities:
                row[_TYPES + group * num_types + index[name]] += 1
    return counts


def _add_entities(row: NDArray[np.float32], gold: list[Span], predicted: list[Span]) -> None:
    row += (len(gold), len(predicted), len({*gold} & {*predicted}))


def _divide(part: Any, whole: Any, empty: float = 0.0) -> Values:
    quotient = np.divide(part, whole, out=np.full(np.shape(whole), empty), where=np.asarray(whole) > 0)
    return np.asarray(quotient, dtype=np.float64)


def _totals(sums: Sums) -> Values:
    """Entities in gold, predicted and right, all types together, shape [3, ...]."""
    return np.array([part.sum(axis=-1) for part in np.split(np.asarray(sums, dtype=np.float64)[..., _TYPES:], 3, -1)])


def _group(sums: Sums, first: int) -> Values:
    """Three neighbouring columns, shape [3, ...]."""
    return np.moveaxis(np.asarray(sums, dtype=np.float64)[..., first : first + 3], -1, 0)


def _f1(counts: Values, empty: float = 0.0) -> Values:
    gold, predicted, right = counts
    return _divide(2 * right, gold + predicted, empty)


def entity_f1(sums: Sums) -> Values:
    """Micro F1: all types together, strict IOB2."""
    return _f1(_totals(sums))


def entity_precision(sums: Sums) -> Values:
    """Share of the predicted entities that are right; 0 when nothing is predicted."""
    _, predicted, right = _totals(sums)
    return _divide(right, predicted)


def entity_recall(sums: Sums) -> Values:
    """Share of the gold entities that are found."""
    gold, _, right = _totals(sums)
    return _divide(right, gold)


def macro_entity_f1(sums: Sums) -> Values:
    """Unweighted mean of F1 over the types that occur in gold or predictions."""
    return macro_f1(sums[..., _TYPES:])


def entity_f1_conll(sums: Sums) -> Values:
    """Micro F1 where an I-tag without a beginning begins an entity."""
    return _f1(_group(sums, _CONLL))


def entity_f1_seen(sums: Sums, *, seen: bool = True) -> Values:
    """Micro F1 over the gold and the predicted entities whose surface and type train has; undefined without any.

    A right prediction has the surface and type of its gold entity, so no right one lies in another part than its gold
    entity: precision is as well defined as recall. Seen and unseen are those of Augenstein et al. 2017, with the type.

    Args:
        sums: Summed counts.
        seen: False for the other part, the entities that train does not have.
    """
    known = _group(sums, _SEEN)
    return _f1(known if seen else _totals(sums) - known, empty=np.nan)


def token_accuracy(sums: Sums) -> Values:
    """Share of tokens whose tag is right; most tokens are O, which makes it high for any tagger."""
    return _divide(np.asarray(sums, dtype=np.float64)[..., _RIGHT_TOKENS], sums[..., _TOKENS])


METRICS: dict[str, Callable[[Sums], Values]] = {
    "entity_f1": entity_f1,
    "entity_precision": entity_precision,
    "entity_recall": entity_recall,
    "macro_entity_f1": macro_entity_f1,
    "entity_f1_conll": entity_f1_conll,
    "entity_f1_seen": entity_f1_seen,
    "entity_f1_unseen": partial(entity_f1_seen, seen=False),
    "token_accuracy": token_accuracy,
}
SCORING = {
    "entity_f1": "IOB2, strict, micro",
    "entity_precision": "IOB2, strict, micro",
    "entity_recall": "IOB2, strict, micro",
    "macro_entity_f1": "IOB2, strict, macro over types",
    "entity_f1_conll": "IOB2, conll mode, micro",
    "entity_f1_seen": "IOB2, strict, micro, entities whose surface and type are in train",
    "entity_f1_unseen": "IOB2, strict, micro, entities whose surface and type are not in train",
    "token_accuracy": "tags of tokens",
}


def gold_types(items: Sequence[TaggedText]) -> list[str]:
    """The type of every gold entity."""
    return [name for item in items for name, _, _ in entities_of(item.tags)]


def predicted_types(predicted: Sequence[Tags]) -> list[str]:
    """Every type that occurs in predicted tags."""
    return sorted({tag[2:] for tags in predicted for tag in set(tags) if tag[1:2] == "-"})


def entity_facts(items: Sequence[TaggedText], predicted: Sequence[Tags]) -> dict[str, float]:
    """Coverage: tokens in gold and scored, which are equal, and entities in both."""
    return {
        "num_gold_tokens": sum(len(item.tokens) for item in items),
        "num_scored_tokens": sum(map(len, predicted)),
        "num_gold_entities": len(gold_types(items)),
        "num_predicted_entities": sum(len(entities_of(tags)) for tags in predicted),
    }


def describe_entities(
    items: Sequence[TaggedText], predicted: Sequence[Tags], reference: Reference, counts: NDArray[Any]
) -> dict[str, Any]:
    """Scores per type and for seen and unseen entities, and every kind of error with examples."""
    sums = counts.sum(axis=0, dtype=np.float64)
    gold, found, right = np.split(sums[_TYPES:], 3)
    per_type = [
        {"type": name, **_table_row(gold[n], found[n], right[n])}
        for n, name in enumerate(reference.labels)
        if gold[n] + found[n]
    ]
    seen = _group(sums, _SEEN)
    parts = {"seen": _table_row(*seen), "unseen": _table_row(*(_totals(sums) - seen))}
    return {"per_type": per_type, **parts, "errors": describe_errors(items, predicted)}


def _table_row(gold: float, predicted: float, right: float) -> dict[str, float]:
    counts = EntityCounts(int(gold), int(predicted), int(right))
    scores = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
    return {**scores, "support": counts.num_gold, "num_predicted": counts.num_predicted}
