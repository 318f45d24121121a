"""The report as content, before it is a page or Markdown: sections of sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Number:
    """A number as readers see it, and where it comes from."""

    text: str
    value: Any
    """The value in the file; of a list its length is shown, of a truth value a word."""
    source: str
    """Short name of the file and JSON pointer into it, such as ``S1#/views/all/rungs/0/mean``."""


@dataclass(frozen=True)
class Name:
    """A name that the user gave, such as a rung's; set apart from the words around it."""

    text: str


Piece = str | Number | Name
Pieces = tuple[Piece, ...]


@dataclass(frozen=True)
class Bar:
    """An interval and its mean as shares of the width of a table's column, 0 to 1."""

    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    pieces: Pieces = ()
    bar: Bar | None = None
    badges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """Heading of a column; numbers stand on the right, bars are for the page only."""

    title: str
    kind: Literal["text", "number", "bar"] = "number"


@dataclass(frozen=True)
class Table:
    """A table, and the sentence that says how to read it."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Paragraph:
    """Sentences in one paragraph; a headline is the answer, a note is smaller print."""

    sentences: tuple[Pieces, ...]
    role: Literal["text", "headline", "note", "warning"] = "text"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """Sentences one below the other."""

    sentences: tuple[Pieces, ...]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Heading:
    """Begins a part of a section: a task or a probe."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class Picture:
    """A picture: drawn for the page as SVG, wide and narrow, or a file of a probe; always a file for Markdown."""

    file: str
    """Name in ``figures/``."""
    png: bytes
    caption: str
    svg: tuple[str, str] | None = None
    """Drawings for wide and for narrow pages; without them the page shows the PNG on a light card."""
    on_page: bool = True
    """Whether the page holds it, or only names the file beside it, so that the page stays small."""
    kind: Literal["picture"] = "picture"


@dataclass(frozen=True)
class Fold:
    """Blocks that the page shows on request only."""

    title: str
    blocks: tuple[Block, ...]
    kind: Literal["fold"] = "fold"


Block = Table | Paragraph | Bullets | Heading | Picture | Fold


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class SourceFile:
    """A file that numbers come from."""

    name: str
    """Short name, such as ``S1``."""
    label: str
    """Stage, key and file, as in the artifact store."""
    sha256: str


@dataclass(frozen=True)
class Report:
    """The whole report."""

    title: str
    subtitle: Pieces
    sections: tuple[Section, ...]
    files: tuple[SourceFile, ...]


def text_cell(*pieces: Piece, badges: Sequence[str] = ()) -> Cell:
    """A cell of words, names and numbers."""
    return Cell(tuple(pieces), badges=tuple(badges))
