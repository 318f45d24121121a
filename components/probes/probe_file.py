"""``probe.json``: what a probe of structure found, as tables, pictures and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.contract import Metrics
from components.formats import write_json
from components.probes.intervals import Share
from components.probes.structure_config import Language

PROBE_FILE = "probe.json"


@dataclass(frozen=True)
class Findings:
    """What a probe found; numbers in ``metrics`` and tables come from the same computation."""

    metrics: Metrics
    tables: list[dict[str, Any]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    sentences: list[dict[str, str]] = field(default_factory=list)


def say(language: Language, en: str, zh: str) -> str:
    """The text in the language."""
    return zh if language == "zh" else en


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> dict[str, Any]:
    """A table of ``probe.json``."""
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}


def percent(share: Share) -> str:
    """A share with its interval, such as "81.0 % [78.2, 83.5]"."""
    return f"{rate(share.value)} [{rate(share.low)}, {rate(share.high)}]"


def rate(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %"


def write_findings(out_dir: Path, probe: str, family: str, title: str, findings: Findings) -> Metrics:
    """Write ``probe.json`` of a probe that makes sense for the encoder; returns its metrics."""
    write_json(
        out_dir / PROBE_FILE,
        {
            "probe": probe,
            "family": family,
            "meaningful": True,
            "reason": "",
            "title": title,
            "tables": findings.tables,
            "pictures": findings.pictures,
            "sentences": findings.sentences,
        },
    )
    return findings.metrics


def write_not_meaningful(out_dir: Path, probe: str, family: str, title: str, *, en: str, zh: str, **more: Any) -> None:
    """Write ``probe.json`` that says why there is no number, in both languages.

    Args:
        out_dir: Where to write.
        probe: Name of the probe.
        family: Family of the encoder.
        title: Heading.
        en: The reason in English.
        zh: The reason in Chinese.
        more: ``language``, which decides the language of ``reason``.
    """
    reason = say(more.get("language", "en"), en, zh)
    write_json(
        out_dir / PROBE_FILE,
        {
            "probe": probe,
            "family": family,
            "meaningful": False,
            "reason": reason,
            "title": title,
            "tables": [],
            "pictures": [],
            "sentences": [{"en": en, "zh": zh}],
        },
    )
