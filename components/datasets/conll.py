"""Files of columns, one token a line, as the CoNLL shared tasks use them; and lists of tokens with tags in general."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.datasets.encodings import read_text
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import NerFacts, NerRow, join_tokens
from components.datasets.readers import split_lines
from components.datasets.tag_schemes import Tag, TagScheme, detect_scheme, entity_spans, find_repairs, parse_tag
from components.errors import InputError

DOCUMENT_START = "-DOCSTART-"
_SPACES = re.compile(" +")
_TAG_REMEDY = "tags are O or B-TYPE, I-TYPE (IOB), B/M/E/S-TYPE (BMES), or a bare TYPE; check separator and tag_column"


@dataclass
class TokenSentence:
    """Tokens and their tags as they were read."""

    file: str
    line: int
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    lines: list[int] | None = None
    """Line of every token in a file of columns."""
    id: str | None = None
    document: str | None = None

    def token_line(self, token: int) -> int:
        """The line of one token."""
        return self.lines[token] if self.lines is not None else self.line


def read_conll(path: Path, config: NerDatasetConfig, name: str, facts: NerFacts) -> list[NerRow]:
    """Read a file of columns.

    A line is a token: its columns are parted by one tab or by a run of spaces, one rule for the whole file, and their
    number is that of the first token line. An empty line ends a sentence; a line of only white space too, unless
    ``blank_separators`` is off. A line that begins with ``-DOCSTART-`` begins a document.

    Args:
        path: The file.
        config: Separator, columns, scheme and the other rules.
        name: Short name of the file, for the card.
        facts: Receives counts, places and the form of the file.

    Raises:
        InputError: Another number of columns, an unknown tag, or a file that cannot be decoded; with the line.
    """
    decoded = read_text(path, config.encoding)
    facts.counts["num_boms_removed"] += decoded.num_boms
    lines = split_lines(decoded.text)
    separator = _separator(lines, config)
    sentences = list(_sentences(lines, path, separator, config, facts))
    facts.forms[name] = {"format": "conll", "separator": separator}
    return rows_from_sentences(sentences, config, name, facts)


def _separator(lines: Sequence[str], config: NerDatasetConfig) -> str:
    """Auto: a tab when the first token line holds one, else spaces; the check of every line's columns confirms it."""
    if config.separator != "auto":
        return config.separator
    tokens = (line for line in lines if line.strip() and not line.startswith(DOCUMENT_START))
    first = next((line for line in tokens if not _is_comment(line, config)), "")
    return "tab" if "\t" in first else "space"


def _is_comment(line: str, config: NerDatasetConfig) -> bool:
    return config.comment_prefix is not None and line.startswith(config.comment_prefix)


def _sentences(
    lines: Sequence[str], path: Path, separator: str, config: NerDatasetConfig, facts: NerFacts
) -> Iterator[TokenSentence]:
    num_columns: int | None = None
    sentence = TokenSentence(str(path), 0, lines=[])
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        if _is_comment(line, config):
            facts.counts["num_comment_lines"] += 1
            continue
        opens_document = line.startswith(DOCUMENT_START)
        if not opens_document and not _ends_sentence(line, config, facts):
            columns = line.split("\t") if separator == "tab" else _SPACES.split(line)
            num_columns = _check_columns(columns, num_columns, separator, path, number)
            _add_token(sentence, columns, number, config)
            continue
        if sentence.words:
            yield sentence
            sentence = TokenSentence(str(path), 0, lines=[], document=sentence.document)
        if opens_document:
            facts.counts["num_document_lines"] += 1
            sentence.document = f"{path}:{number}"
    if sentence.words:
        yield sentence


def _ends_sentence(line: str, config: NerDatasetConfig, facts: NerFacts) -> bool:
    if not line:
        return True
    blank = config.blank_separators and not line.strip(" \t")
    facts.counts["num_blank_separator_lines"] += blank
    return blank


def _check_columns(columns: list[str], expected: int | None, separator: str, path: Path, line: int) -> int:
    if len(columns) < 2 or (expected is not None and len(columns) != expected):
        wanted = f"{expected} as before" if expected is not None else "at least 2"
        raise InputError(
            f"{len(columns)} column(s) parted by {separator}, expected {wanted}: {chr(9).join(columns)[:60]!r}",
            file=path,
            line=line,
            remedy="fix the line, set separator: tab or space, or set comment_prefix if it is a comment",
        )
    return len(columns)


def _add_token(sentence: TokenSentence, columns: list[str], line: int, config: NerDatasetConfig) -> None:
    try:
        word, tag = columns[config.token_column], columns[config.tag_column]
    except IndexError as error:
        raise InputError(
            f"no column {config.token_column} or {config.tag_column} among {len(columns)}",
            file=sentence.file,
            line=line,
            remedy="set token_column and tag_column; they count from 0, negative ones from the last",
        ) from error
    assert sentence.lines is not None
    sentence.line = sentence.line or line
    sentence.lines.append(line)
    # A separator swallowed the token: all that is left of a blank token is that it was one.
    sentence.words.append(word or " ")
    sentence.tags.append(tag)


# --- tokens with tags of any source ----------------------------------------------------------------------------------


def rows_from_sentences(
    sentences: Sequence[TokenSentence], config: NerDatasetConfig, name: str, facts: NerFacts
) -> list[NerRow]:
    """Turn tokens with tags of one file into rows: detect the scheme, read the entities, note what was repaired.

    Args:
        sentences: All sentences of the file, since the scheme is that of the whole file.
        config: Scheme and token unit.
        name: Short name of the file, for the card.
        facts: Receives repairs and the scheme.

    Raises:
        InputError: A tag that no scheme has, or bare types among prefixed tags; with the line.
    """
    known: dict[str, Tag] = {}
    parsed = [_parse_tags(sentence, known) for sentence in sentences]
    _refuse_mixed(sentences, parsed, known)
    scheme = _scheme(config, parsed)
    detected = "declared" if config.scheme != "auto" else "detected"
    facts.forms.setdefault(name, {}).update(scheme=scheme, scheme_is=detected)
    return [_row(sentence, tags, scheme, config, name, facts) for sentence, tags in zip(sentences, parsed, strict=True)]


def _parse_tags(sentence: TokenSentence, known: dict[str, Tag]) -> list[Tag]:
    tags = []
    for position, text in enumerate(sentence.tags):
        tag = known.get(text) or parse_tag(text)
        if tag is None:
            raise InputError(
                f"unknown tag {text[:60]!r}",
                file=sentence.file,
                line=sentence.token_line(position),
                remedy=_TAG_REMEDY,
            )
        tags.append(known.setdefault(text, tag))
    return tags


def _refuse_mixed(
    sentences: Iterable[TokenSentence], parsed: Iterable[Sequence[Tag]], known: Mapping[str, Tag]
) -> None:
    prefixes = {tag.prefix for tag in known.values()} - {"O"}
    if "" not in prefixes or len(prefixes) == 1:
        return
    for sentence, tags in zip(sentences, parsed, strict=True):
        for position, tag in enumerate(tags):
            if not tag.prefix:
                raise InputError(
                    f"tag {tag.type!r} has no prefix, while other tags of the file have one",
                    file=sentence.file,
                    line=sentence.token_line(position),
                    remedy=_TAG_REMEDY,
                )


def _scheme(config: NerDatasetConfig, parsed: Sequence[Sequence[Tag]]) -> TagScheme:
    if config.scheme == "auto":
        return detect_scheme(parsed)
    return "bioes" if config.scheme == "bmes" else config.scheme


def _row(
    sentence: TokenSentence,
    tags: Sequence[Tag],
    scheme: TagScheme,
    config: NerDatasetConfig,
    name: str,
    facts: NerFacts,
) -> NerRow:
    for position in find_repairs(tags, scheme):
        place = f"{name}:{sentence.token_line(position)} {sentence.words[position]} {sentence.tags[position]}"
        facts.note("tags_repaired", place)
    text, tokens = join_tokens(sentence.words, config.unit)
    return NerRow(
        file=sentence.file,
        line=sentence.line,
        text=text,
        tokens=tokens,
        entities=tuple(entity_spans(tags)),
        lines=tuple(sentence.lines) if sentence.lines is not None else None,
        id=sentence.id,
        document=sentence.document,
    )
