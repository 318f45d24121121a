"""JSON lines with named entities, in three shapes that the first row of a file decides.

- CLUENER: ``{"text": ..., "label": {type: {surface: [[start, end inclusive], ...]}}}`` (Xu et al. 2020)
- spans: ``{"text": ..., "entities": [{"start": 0, "end": 2, "label": "PER"}]}``, end exclusive
- tokens: ``{"tokens": [...], "ner_tags": [...]}``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.datasets.conll import TokenSentence, rows_from_sentences
from components.datasets.encodings import read_text
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import (
    CharacterSpan,
    DroppedRow,
    NerFacts,
    NerRow,
    entities_on_tokens,
    tokenise,
    without_overlaps,
)
from components.datasets.readers import json_object, split_lines
from components.datasets.rows import text_value
from components.errors import InputError


@dataclass(frozen=True)
class _GivenSpan:
    """A span as the file states it; ``surface`` is what it should read, if the file says so."""

    start: int
    end: int
    type: str
    surface: str | None


@dataclass(frozen=True)
class _Place:
    """Where a record stands, for messages."""

    file: Path
    line: int

    def error(self, message: str, remedy: str) -> InputError:
        return InputError(message, file=self.file, line=self.line, remedy=remedy)


def read_json_entities(path: Path, config: NerDatasetConfig, name: str, facts: NerFacts) -> list[NerRow]:
    """Read a file of JSON lines.

    Args:
        path: The file.
        config: Field names, token unit and policies.
        name: Short name of the file, for the card.
        facts: Receives counts, dropped rows and the form of the file.

    Raises:
        InputError: No JSON, a missing field, or a span that does not fit its text under ``stop``; with the line.
    """
    decoded = read_text(path, config.encoding)
    facts.counts["num_boms_removed"] += decoded.num_boms
    records = []
    for number, line in enumerate(split_lines(decoded.text), 1):
        if line.strip():
            records.append((_Place(path, number), json_object(line, path, number)))
        else:
            facts.drop([DroppedRow(f"{name}:{number}", "empty_text")])
    if not records:
        return []
    shape = _shape(records[0][1], records[0][0], config)
    facts.forms[name] = {"format": f"jsonl, {shape}"}
    if shape == "tokens":
        sentences = [_token_sentence(record, place, config) for place, record in records]
        return rows_from_sentences(sentences, config, name, facts)
    rows = (_span_row(record, place, _SHAPES[shape], config, name, facts) for place, record in records)
    return [row for row in rows if row is not None]


def _shape(record: Mapping[str, Any], place: _Place, config: NerDatasetConfig) -> str:
    if isinstance(record.get("label"), dict):
        return "cluener"
    if "entities" in record:
        return "spans"
    if config.tokens_column in record:
        return "tokens"
    raise place.error(
        f"no field label (an object), entities or {config.tokens_column}; fields are {', '.join(record)}",
        "use one of the three shapes; set tokens_column and tags_column for lists of tokens",
    )


def _field(record: Mapping[str, Any], name: str, place: _Place) -> Any:
    if name not in record:
        raise place.error(f"no field {name!r}; fields are {', '.join(record)}", "give every row the same fields")
    return record[name]


def identifier(record: Mapping[str, Any], column: str | None, file: Path | str, line: int) -> str | None:
    """The value of an id or document field as a string; None when no such field is configured.

    Raises:
        InputError: The field is missing or empty.
    """
    if column is None:
        return None
    value = record.get(column)
    if value is None or not str(value).strip():
        raise InputError(f"field {column!r} is missing or empty", file=file, line=line, remedy="give every row its own")
    return str(value).strip()


# --- tokens with tags ------------------------------------------------------------------------------------------------


def _token_sentence(record: Mapping[str, Any], place: _Place, config: NerDatasetConfig) -> TokenSentence:
    return token_sentence(
        _field(record, config.tokens_column, place), _field(record, config.tags_column, place), record, place, config
    )


def token_sentence(
    words: Any, tags: Any, record: Mapping[str, Any], place: _Place, config: NerDatasetConfig
) -> TokenSentence:
    """Check two lists of strings of one length.

    Raises:
        InputError: Other types, or lengths that differ.
    """
    for name, values in ((config.tokens_column, words), (config.tags_column, tags)):
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise place.error(f"{name!r} is {values!r:.60}, expected a list of strings", "write tokens and tag names")
    if len(words) != len(tags):
        raise place.error(f"{len(words)} tokens, {len(tags)} tags", "give every token one tag")
    return TokenSentence(
        file=str(place.file),
        line=place.line,
        words=[word or " " for word in words],
        tags=tags,
        id=identifier(record, config.id_column, place.file, place.line),
        document=identifier(record, config.document_column, place.file, place.line),
    )


# --- texts with spans ------------------------------------------------------------------------------------------------


def _span_row(
    record: Mapping[str, Any],
    place: _Place,
    read_spans: Callable[[Mapping[str, Any], _Place], Iterator[_GivenSpan]],
    config: NerDatasetConfig,
    name: str,
    facts: NerFacts,
) -> NerRow | None:
    text = text_value(_field(record, config.text_column, place), place.file, place.line)
    given = list(read_spans(record, place))
    mismatch = next((found for span in given if (found := _mismatch(text, span))), None)
    if mismatch and config.span_mismatch == "stop":
        raise place.error(mismatch, "correct the offsets (code points, from 0), or set span_mismatch: skip")
    row_id = identifier(record, config.id_column, place.file, place.line)
    if mismatch:
        facts.drop([DroppedRow(row_id or f"{name}:{place.line}", "span_mismatch", mismatch)])
        return None
    distinct = list(dict.fromkeys(CharacterSpan(span.start, span.end, span.type) for span in given))
    facts.counts["num_entities_repeated"] += len(given) - len(distinct)
    tokens = tokenise(text, config.unit)
    entities, overlapping = without_overlaps(entities_on_tokens(distinct, tokens, facts, f"{name}:{place.line}"))
    for entity in overlapping:
        surface = text[tokens[entity.start][0] : tokens[entity.end - 1][1]]
        if config.overlapping_entities == "stop":
            raise place.error(
                f"{entity.type} {surface!r} shares characters with another entity",
                "tags hold one entity a token: correct the row, or set overlapping_entities: longest",
            )
        facts.note("entities_overlapping", f"{name}:{place.line} {entity.type} {surface}")
    return NerRow(
        file=str(place.file),
        line=place.line,
        text=text,
        tokens=tuple(tokens),
        entities=tuple(entities),
        id=row_id,
        document=identifier(record, config.document_column, place.file, place.line),
    )


def _mismatch(text: str, span: _GivenSpan) -> str | None:
    """What is wrong with a span, with the nearest place where its surface is; None when it fits."""
    found = text[span.start : span.end]
    if 0 <= span.start < span.end <= len(text) and (span.surface is None or found == span.surface):
        return None
    message = f"{span.type} at {span.start}-{span.end} reads {found!r:.60} in a text of {len(text)} characters"
    if span.surface is None:
        return message
    starts = [start for start in range(len(text)) if span.surface and text.startswith(span.surface, start)]
    nearest = min(starts, key=lambda start: abs(start - span.start), default=None)
    hint = "it is nowhere in the text" if nearest is None else f"the nearest is at {nearest}"
    return f"{message}, expected {span.surface!r:.60}; {hint}"


def _cluener_spans(record: Mapping[str, Any], place: _Place) -> Iterator[_GivenSpan]:
    types = _field(record, "label", place)
    try:
        for name, surfaces in types.items():
            for surface, positions in surfaces.items():
                for start, end in positions:
                    yield _GivenSpan(_offset(start), _offset(end) + 1, _type(name), surface)
    except (AttributeError, TypeError, ValueError) as error:
        raise place.error(
            f"label is not {{type: {{surface: [[start, end]]}}}} ({error})", "write it in CLUENER's shape"
        ) from error


def _listed_spans(record: Mapping[str, Any], place: _Place) -> Iterator[_GivenSpan]:
    try:
        for entity in _field(record, "entities", place):
            surface = entity.get("text")
            yield _GivenSpan(_offset(entity["start"]), _offset(entity["end"]), _type(entity["label"]), surface)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise place.error(
            f"entities is not a list of {{start, end, label}} ({type(error).__name__}: {error})",
            'write {"entities": [{"start": 0, "end": 2, "label": "PER"}]}',
        ) from error


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"offset {value!r} is no whole number")
    return value


def _type(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"entity type {value!r} is no name")
    return value.strip()


_SHAPES = {"cluener": _cluener_spans, "spans": _listed_spans}
