"""The report as Markdown with pictures beside it: the same sections, sentences and tables as the page."""

from __future__ import annotations

import re
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from components.report.content import Cell, Name, Piece, Pieces, Report
from components.report.numbers import ReportLanguage
from components.report.sentences import WORDS

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def render_markdown(report: Report, language: ReportLanguage) -> str:
    """Markdown; numbers come without their places, which the page and ``verdict.json`` have.

    Args:
        report: Content.
        language: Language of the words.
    """
    # HTML's escape is not Markdown's: here every text passes ``plain_text``.
    environment = Environment(autoescape=False, loader=PackageLoader("components.report"), undefined=StrictUndefined)  # noqa: S701
    environment.filters.update(plain=plain_text, say=_say, say_cell=_say_cell, url=quote)
    template = environment.get_template("report.md")
    return template.render(report=report, between=WORDS[language]["between"]).rstrip() + "\n"


def plain_text(text: str) -> str:
    """Text in which nothing is markup, on one line."""
    return _SPECIAL.sub(r"\\\1", re.sub(r"[\r\n]", " ", text)).replace("&", "&amp;")


def _say(pieces: Pieces, bold: bool = False) -> str:
    return "".join(_say_piece(piece, bold) for piece in pieces)


def _say_piece(piece: Piece, bold: bool) -> str:
    """A name stands out in bold, unless everything around it is bold."""
    text = plain_text(piece if isinstance(piece, str) else piece.text)
    return f"**{text}**" if isinstance(piece, Name) and text.strip() and not bold else text


def _say_cell(cell: Cell) -> str:
    return " ".join((_say(cell.pieces), *(f"({plain_text(badge)})" for badge in cell.badges)))
