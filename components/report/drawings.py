"""Pictures of the verdict for both kinds of pages: SVG that takes the page's colours, and PNG beside the Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from components.evaluation.verdict_labels import spread_labels
from components.evaluation.verdict_pictures import GRID, INK, draw_costs, draw_label_curve
from components.report.content import Picture
from components.report.writing import TaskFiles, Writing

NARROW_INCHES = 3.6
"""Width of the drawing for a phone: 346 CSS pixels, so that its words are as large as on a wide page."""


def draw_cost_picture(writing: Writing, files: TaskFiles) -> Picture:
    """Score against seconds to train."""
    caption = writing.word("costs_caption", task=writing.word(files.task))
    content = files.verdict.content
    return _picture(f"costs_{files.task}", lambda: draw_costs(content, writing.language), caption)


def draw_curve_picture(writing: Writing, files: TaskFiles) -> Picture:
    """Score against the number of labelled examples."""
    assert files.curve is not None
    content: dict[str, Any] = files.curve.content
    caption = writing.word("labels_caption", task=writing.word(files.task))
    return _picture(f"label_curve_{files.task}", lambda: draw_label_curve(content, writing.language), caption)


def _picture(name: str, draw: Callable[[], Figure], caption: str) -> Picture:
    wide, narrow = draw(), draw()
    narrow.set_size_inches(NARROW_INCHES, narrow.get_figheight())
    for figure in (wide, narrow):
        # Once names are placed the layout stands: saving need not work it out again.
        spread_labels(figure).set_layout_engine("none")
    svg = _svg(wide, f"{name}-wide"), _svg(narrow, f"{name}-narrow")
    buffer = io.BytesIO()
    wide.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return Picture(f"{name}.png", buffer.getvalue(), caption, svg)


def _svg(figure: Figure, name: str) -> str:
    """The drawing as an SVG element for a page: themed, without fixed size, fonts, metadata or network names.

    Identifiers get the name in front, as several drawings on one page would otherwise share them.
    """
    buffer = io.StringIO()
    # Fixed salt and no date: the same drawing gives the same bytes.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text, count=2)
    text = re.sub(r'(<svg\b[^>]*?) (?:width|height)="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?) (?:width|height)="[^"]*"', r"\1", text, count=1)
    for attribute in (' id="', 'href="#', "url(#"):
        text = text.replace(attribute, f"{attribute}{name}-")
    return text.replace(INK, "var(--ink)").replace(GRID, "var(--line)").strip()
