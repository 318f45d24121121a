"""``probe.json``: what a probe found, in one shape for all probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.contract import Metrics
from components.formats import write_json
from components.probes.intervals import Share
from components.text.sentences import Language

PROBE_FILE = "probe.json"
NO_ENCODER = "none"
"""Stands for the encoder where a probe trains networks of its own."""
Table = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A picture beside ``probe.json``."""

    file: str
    caption: str
    """What it shows, in the probe's language."""


@dataclass(frozen=True)
class Findings:
    """What a probe found; numbers in ``metrics`` and tables come from the same computation."""

    metrics: Metrics
    headline: tuple[str, ...] = ()
    """The metrics to read first; one that the encoder cannot have may be absent from ``metrics``."""
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    sentences: list[dict[str, str]] = field(default_factory=list)


def say(language: Language, en: str, zh: str) -> str:
    """The text in the language."""
    return zh if language == "zh" else en


def table(title: str, columns: Iterable[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of ``probe.json``; its cells are strings and numbers."""
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}


def percent(share: Share) -> str:
    """A share with its interval, such as "81.0 % [78.2, 83.5]"."""
    return f"{rate(share.value)} [{rate(share.low)}, {rate(share.high)}]"


def rate(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %"


def write_findings(
    out_dir: Path, probe: str, encoder: str, title: str, findings: Findings, *, language: Language
) -> Metrics:
    """Write ``probe.json`` of a probe that makes sense for the encoder; returns its metrics.

    Args:
        out_dir: Where to write.
        probe: Name of the probe.
        encoder: Family of the encoder, or ``NO_ENCODER``.
        title: Heading.
        findings: What was found.
        language: Language of the title, the tables and the captions; sentences are in both.
    """
    headline = {name: findings.metrics[name] for name in findings.headline if name in findings.metrics}
    head = _head(probe, encoder, language, title, meaningful=True, reason="")
    write_json(out_dir / PROBE_FILE, head | _body(findings, headline))
    return findings.metrics


def write_not_meaningful(
    out_dir: Path, probe: str, encoder: str, title: str, *, language: Language, en: str, zh: str
) -> None:
    """Write ``probe.json`` that says why there is no number, in the language and, as its sentence, in both.

    Args:
        out_dir: Where to write.
        probe: Name of the probe.
        encoder: Family of the encoder.
        title: Heading.
        language: Language of the title and the reason.
        en: The reason in English.
        zh: The reason in Chinese.
    """
    head = _head(probe, encoder, language, title, meaningful=False, reason=say(language, en, zh))
    write_json(out_dir / PROBE_FILE, head | _body(Findings({}, sentences=[{"en": en, "zh": zh}]), {}))


def _head(probe: str, encoder: str, language: Language, title: str, *, meaningful: bool, reason: str) -> dict[str, Any]:
    return {
        "probe": probe, "encoder": encoder, "language": language, "meaningful": meaningful, "reason": reason,
        "title": title,
    }  # fmt: skip


def _body(findings: Findings, headline: Metrics) -> dict[str, Any]:
    return {
        "headline": headline,
        "metrics": findings.metrics,
        "tables": findings.tables,
        "figures": [asdict(figure) for figure in findings.figures],
        "pictures": [figure.file for figure in findings.figures],
        "sentences": findings.sentences,
    }
