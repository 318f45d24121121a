"""Rows of labelled text: what a record of any format looks like, and the checks every format shares."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.artifacts import digest_file
from components.datasets.source_config import SourceConfig
from components.errors import InputError


@dataclass(frozen=True)
class Row:
    """One record as it was read: nothing is converted yet."""

    file: str
    """File as the user named it, or ``split`` of a hub data set."""
    line: int
    """1-based line of the record's first character; 1-based row for Parquet and hub data."""
    text: Any
    label: Any
    id: str | None = None
    """Value of the id column, if one is configured."""
    text_pair: Any = None
    """Value of the column with the second text, if one is configured."""


@dataclass(frozen=True)
class Columns:
    """The columns a row is taken from."""

    text: str
    label: str
    id: str | None = None
    text_pair: str | None = None

    def names(self) -> list[str]:
        """The configured column names."""
        return [self.text, self.label, *(name for name in (self.id, self.text_pair) if name is not None)]

    def row(self, record: dict[str, Any], file: str | Path, line: int) -> Row:
        """Pick the columns out of a record that has them."""
        identifier = None if self.id is None else record[self.id]
        if self.id is not None and (identifier is None or not str(identifier).strip()):
            raise InputError(f"column {self.id!r} is empty", file=file, line=line, remedy="give every row its own id")
        text_id = None if identifier is None else str(identifier).strip()
        pair = None if self.text_pair is None else record[self.text_pair]
        return Row(str(file), line, record[self.text], record[self.label], text_id, pair)


@dataclass(frozen=True)
class Rows:
    """The rows of one source file or split, and what reading it removed."""

    file: str
    rows: list[Row]
    num_boms: int = 0
    blank_lines: tuple[int, ...] = ()
    """1-based lines without any content."""


@dataclass(frozen=True)
class LabelledText:
    """A checked row: normalised text, label name, and where it comes from."""

    id: str
    text: str
    label: str
    place: str
    """``file:line`` for messages, also when the id comes from a column."""
    text_pair: str | None = None
    """Second text of a pair, normalised."""

    @property
    def key(self) -> str:
        """What makes two rows exact duplicates: the text without white space, of a pair both texts."""
        return text_key(self.text) if self.text_pair is None else f"{text_key(self.text)}\0{text_key(self.text_pair)}"


def text_key(text: str) -> str:
    """The text without any white space; texts with equal keys are exact duplicates."""
    return "".join(text.split())


def require_columns(wanted: Iterable[str], found: Sequence[str], file: str | Path, line: int | None) -> None:
    """Refuse a table or record without a wanted column, proposing the closest name there is.

    Raises:
        InputError: A column is missing, or a name occurs twice.
    """
    for name in wanted:
        if found.count(name) > 1:
            raise InputError(f"column {name!r} occurs twice", file=file, line=line, remedy="rename one of them")
        if name not in found:
            close = difflib.get_close_matches(name, found, n=1, cutoff=0.5)
            remedy = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(
                f"no column {name!r}; columns are {', '.join(map(repr, found)) or 'none'}",
                file=file,
                line=line,
                remedy=remedy + "set the column settings, such as text_column (headerless CSV/TSV: columns)",
            )


def check_length(value: str, limit: int, file: str | Path, line: int) -> None:
    """Refuse a field longer than ``limit`` characters.

    Raises:
        InputError: The field is longer.
    """
    if len(value) > limit:
        raise InputError(
            f"field of {len(value):,} characters, the limit is {limit:,}",
            file=file,
            line=line,
            remedy="look for an unbalanced quote, or raise max_text_chars",
        )


def text_value(value: Any, file: str | Path, line: int) -> str:
    """The text of a row; "" for a missing value.

    Raises:
        InputError: Not a string.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"text is {value!r}, a {type(value).__name__}", file=file, line=line, remedy="write texts as strings"
        )
    return value


def source_names(files: Sequence[Path]) -> dict[str, str]:
    """A short name per file for ids: its base name, with as many parent folders as it takes to tell files apart.

    Raises:
        InputError: One file is given twice.
    """
    resolved = [path.resolve() for path in files]
    for path in files:
        if resolved.count(path.resolve()) > 1:
            raise InputError("the same file is used for two splits", file=path, remedy="give each split its own file")
    names = {}
    for path, full in zip(files, resolved, strict=True):
        parts = 1
        while sum(other.parts[-parts:] == full.parts[-parts:] for other in resolved) > 1:
            parts += 1
        names[str(path)] = "/".join(full.parts[-parts:])
    return names


def file_digests(config: SourceConfig) -> dict[str, str]:
    """SHA-256 of every file that a data set is read from, by its short name; of hub folders by its path within."""
    files = config.external_files()
    if config.source == "hub":
        root = Path(config.hub_id or "")
        return {path.relative_to(root).as_posix(): digest_file(path) for path in files}
    names = source_names(files)
    return {names[str(path)]: digest_file(path) for path in files}


def refuse_repeated_ids(rows: Iterable[tuple[str, str]]) -> None:
    """Refuse an id that two rows have: one prediction would overwrite the other.

    Args:
        rows: Id and place (``file:line``) of every row of every split.

    Raises:
        InputError: With the places of both.
    """
    places: dict[str, str] = {}
    for name, place in rows:
        if name in places:
            raise InputError(
                f"{place}: id {name!r} was used at {places[name]} already",
                remedy="give every row of every split its own id, or leave id_column out",
            )
        places[name] = place
