"""Entities in IOB2 tags and their F1: an entity counts when its first token, last token and type are all right.

Two modes read entities out of tags and differ on illegal sequences only, those where I-X follows neither B-X nor I-X:

* ``strict``: an entity begins at B-X and ends with the last I-X that follows without a gap; any other I-X belongs to
  no entity. This is seqeval's ``mode="strict", scheme=IOB2``.
* ``conll``: such an I-X begins an entity, as in the script of the CoNLL-2000 and 2003 tasks, conlleval (Tjong Kim Sang
  & De Meulder 2003). This is seqeval's default; it turns tags of no entity at all into right ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from components.examples import OUTSIDE

EntityMode = Literal["strict", "conll"]
Span = tuple[str, int, int]
"""Type, first token, one past the last token."""


@dataclass(frozen=True)
class EntityCounts:
    """How many entities are in gold, in the prediction, and in both; the scores are ratios of these."""

    num_gold: int
    num_predicted: int
    num_correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right; 0 when nothing is predicted."""
        return ratio(self.num_correct, self.num_predicted)

    @property
    def recall(self) -> float:
        """Share of the gold entities that are found; 0 when there is none."""
        return ratio(self.num_correct, self.num_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 when there is nothing to find and nothing is predicted."""
        return ratio(2 * self.num_correct, self.num_gold + self.num_predicted)


def entities_of(tags: Sequence[str], mode: EntityMode = "strict") -> list[Span]:
    """The entities that a sequence of IOB2 tags makes up, in order, never overlapping.

    Args:
        tags: ``O``, ``B-TYPE`` or ``I-TYPE`` for every token; a type may hold hyphens itself.
        mode: What an I-TYPE without a beginning is: no entity (``strict``) or the beginning of one (``conll``).
    """
    entities: list[Span] = []
    inside, start = "", 0
    for position, tag in enumerate(tags):
        if tag == inside:
            continue
        if inside:
            entities.append((inside[2:], start, position))
            inside = ""
        if tag != OUTSIDE and (tag.startswith("B-") or (mode == "conll" and tag.startswith("I-"))):
            inside, start = f"I-{tag[2:]}", position
    return [*entities, (inside[2:], start, len(tags))] if inside else entities


def count_entities(
    gold_sequences: Iterable[Sequence[str]], predicted_sequences: Iterable[Sequence[str]], mode: EntityMode = "strict"
) -> dict[str, EntityCounts]:
    """Counts of every type that occurs in gold or predictions, by type in order of name.

    Args:
        gold_sequences: IOB2 tags of N texts.
        predicted_sequences: As many tags for the same N texts.
        mode: As in ``entities_of``.

    Raises:
        ValueError: The sequences do not pair up, in number or in length.
    """
    gold, predicted, correct = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold_sequences, predicted_sequences, strict=True):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(f"{len(predicted_tags)} tags predicted for {len(gold_tags)} tokens")
        wanted, found = entities_of(gold_tags, mode), entities_of(predicted_tags, mode)
        gold.update(name for name, _, _ in wanted)
        predicted.update(name for name, _, _ in found)
        correct.update(name for name, _, _ in set(wanted) & set(found))
    return {name: EntityCounts(gold[name], predicted[name], correct[name]) for name in sorted({*gold, *predicted})}


def sum_counts(counts: Iterable[EntityCounts]) -> EntityCounts:
    """All types together: the counts behind micro scores."""
    rows = list(counts)
    return EntityCounts(
        sum(row.num_gold for row in rows), sum(row.num_predicted for row in rows), sum(row.num_correct for row in rows)
    )


def entity_f1(
    gold_sequences: Iterable[Sequence[str]], predicted_sequences: Iterable[Sequence[str]], mode: EntityMode = "strict"
) -> float:
    """Micro F1 over the entities of all texts, strict unless told otherwise; the main score of NER.

    Args:
        gold_sequences: IOB2 tags of N texts.
        predicted_sequences: As many tags for the same N texts.
        mode: As in ``entities_of``.
    """
    return sum_counts(count_entities(gold_sequences, predicted_sequences, mode).values()).f1


def macro_entity_f1(counts: dict[str, EntityCounts]) -> float:
    """Unweighted mean of F1 over the types that occur in gold or predictions (seqeval's ``average="macro"``)."""
    return ratio(sum(row.f1 for row in counts.values()), len(counts))


def ratio(part: float, whole: float) -> float:
    """``part / whole``, and 0 where there is no whole."""
    return part / whole if whole else 0.0
