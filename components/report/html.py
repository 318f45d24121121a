"""The report as one page that needs nothing else: no network, no script, no font and no picture beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from components.report.content import Report
from components.report.numbers import ReportLanguage
from components.report.sentences import WORDS


def render_html(report: Report, language: ReportLanguage) -> str:
    """The page: light and dark by the reader's preference, readable from 390 pixels of width on.

    Every number is a ``data`` element whose ``data-source`` names file and place. Everything is escaped but the
    drawings and the style sheet, which are ours.

    Args:
        report: Content.
        language: Language of the page.
    """
    environment = Environment(
        loader=PackageLoader("components.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    filters: dict[str, Callable[..., str]] = {
        "json": _json,
        "share": lambda share: f"{100 * share:.1f}",
        "base64": _base64,
        "breaks": _breaks,
    }
    environment.filters.update(filters)
    assert environment.loader is not None
    css = Markup(environment.loader.get_source(environment, "report.css")[0])  # noqa: S704 - package data
    lang = {"zh": "zh-CN", "en": "en"}[language]
    template = environment.get_template("report.html")
    words = {name: WORDS[language][name] for name in ("between", "beside_page")}
    return template.render(report=report, css=css, lang=lang, **words) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _breaks(text: str) -> Markup:
    """A name that may break behind an underscore on a narrow page."""
    return escape(text).replace("_", Markup("_<wbr>"))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
