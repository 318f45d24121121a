"""From rows of tagged text to splits: documents or texts go where their content's hash says, ids and types checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.datasets.labels import show
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import DroppedRow, NerFacts, NerRow
from components.datasets.rows import LabelledText
from components.datasets.splits import Dropped, limit_texts, refuse_empty, remove_duplicates, split_texts
from components.errors import InputError
from components.examples import SPLITS
from components.formats import Split


@dataclass(frozen=True)
class NamedRow:
    """A row with its final id."""

    id: str
    row: NerRow

    def labelled(self) -> LabelledText:
        """The row as the split functions know it; its label is the sequence of its tags."""
        return LabelledText(self.id, self.row.text, " ".join(self.row.tags()), self.row.place)


def make_splits(
    rows: Mapping[Split, Sequence[NamedRow]], config: NerDatasetConfig, facts: NerFacts
) -> dict[Split, list[NamedRow]]:
    """Split what is missing off the training rows, then apply the limits.

    Rows of one document stay together and are placed by the hash of the document's text. Rows without a document are
    placed by their own text; of equal texts the first is kept, and none when their tags differ.

    Raises:
        InputError: A split is empty.
    """
    fractions = config.fractions(rows)
    train = list(rows["train"])
    if any(fractions.values()):
        train = _distinct_texts(train, facts)
    units = _units(train)
    placed = split_texts(
        (LabelledText(key, text, "", "") for key, text in units.items()), **fractions, seed=config.seed
    )
    split_of = {unit.id: split for split, members in placed.items() for unit in members}
    splits = {split: [row for row in train if split_of[_unit_key(row)] == split] for split in SPLITS}
    splits.update({split: list(given) for split, given in rows.items() if split != "train"})
    for split, limit in config.limits.items():
        kept, dropped = limit_texts([row.labelled() for row in splits[split]], limit, config.seed)
        splits[split] = _chosen(splits[split], kept)
        facts.drop(_dropped(dropped))
    refuse_empty(splits, len(rows["train"]))
    return splits


def _unit_key(named: NamedRow) -> str:
    return f"document {named.row.document}" if named.row.document is not None else f"row {named.id}"


def _units(rows: Iterable[NamedRow]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for named in rows:
        texts.setdefault(_unit_key(named), []).append(named.row.text)
    return {key: "\n".join(parts) for key, parts in texts.items()}


def _distinct_texts(rows: Sequence[NamedRow], facts: NerFacts) -> list[NamedRow]:
    alone = [named.labelled() for named in rows if named.row.document is None]
    kept, dropped, facts.counts["num_texts_contradictory"] = remove_duplicates(alone)
    facts.drop(_dropped(dropped))
    chosen = {text.id for text in kept}
    return [named for named in rows if named.row.document is not None or named.id in chosen]


def _chosen(rows: Iterable[NamedRow], kept: Iterable[LabelledText]) -> list[NamedRow]:
    chosen = {text.id for text in kept}
    return [named for named in rows if named.id in chosen]


def _dropped(rows: Iterable[Dropped]) -> Iterator[DroppedRow]:
    for row in rows:
        reason = "contradictory_tags" if row.reason == "contradictory_label" else row.reason
        yield DroppedRow(row.id, reason, row.other)


# --- entity types ----------------------------------------------------------------------------------------------------


def entity_types(
    splits: Mapping[Split, Sequence[NamedRow]], allowed: Collection[str] | None, *, stop_on_unseen: bool
) -> tuple[list[str], int]:
    """The one set of entity types of all splits, sorted, and how many held-out entities are of a type outside train.

    Args:
        splits: Rows of every split.
        allowed: The configured types, or None to take those of the training split.
        stop_on_unseen: Refuse a validation or test entity of a type that no training entity has; otherwise such
            entities stay in the gold and count as wrong, since no model can predict them.

    Raises:
        InputError: No entity in train, a type that is not allowed, or an unseen type; with file and line.
    """
    in_train = {entity.type for named in splits["train"] for entity in named.row.entities}
    if not in_train:
        raise InputError(
            f"no entity among {len(splits['train'])} training rows", remedy="check tag_column, scheme and the file"
        )
    if allowed is not None:
        _refuse_types(splits, SPLITS, set(allowed), "is not among the allowed", "correct it, or add it to labels")
    unseen = sum(1 for split in SPLITS[1:] for row in splits[split] for e in row.row.entities if e.type not in in_train)
    if unseen and stop_on_unseen:
        remedy = f"{unseen} such entities: correct them, add training rows, or set unseen_label: count_as_wrong"
        _refuse_types(splits, SPLITS[1:], in_train, "is not in the training split, which has", remedy)
    return sorted(allowed if allowed is not None else in_train), unseen


def _refuse_types(
    splits: Mapping[Split, Sequence[NamedRow]], names: Iterable[Split], known: Collection[str], why: str, remedy: str
) -> None:
    for split in names:
        for row in (named.row for named in splits[split]):
            for entity in row.entities:
                if entity.type not in known:
                    raise InputError(
                        f"entity type {entity.type!r} of the {split} split {why} {show(known)}",
                        file=row.file,
                        line=row.token_line(entity.start),
                        remedy=remedy,
                    )
