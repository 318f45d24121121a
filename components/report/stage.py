"""``write_report``: stored artifacts in, the report as page, Markdown and data out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from components.formats import write_json
from components.report.content import Block, Fold, Number, Picture, Piece, Pieces, Report, Section
from components.report.html import render_html
from components.report.ledger_sections import coverage_section, leaks_section
from components.report.markdown import render_markdown
from components.report.numbers import ReportLanguage, moment
from components.report.other_sections import origin_section, run_section
from components.report.probe_sections import probes_section
from components.report.sources import ReportSources, check_sources
from components.report.verdict_sections import (
    controls_section,
    costs_section,
    labels_section,
    leaderboard_section,
    verdict_section,
)
from components.report.writing import Writing, open_writing

SECTIONS = (
    verdict_section,
    leaderboard_section,
    costs_section,
    labels_section,
    controls_section,
    leaks_section,
    coverage_section,
    probes_section,
    run_section,
)
"""In the order of the page; one that has nothing to say is left out."""


def write_report(sources: ReportSources, out_dir: Path, *, language: ReportLanguage = "en") -> None:
    """Write the report of a ladder from stored artifacts; nothing is computed anew.

    Args:
        sources: The run's facts and the artifacts of its tasks, corpus and probes.
        out_dir: Receives ``report.html`` (one file that needs no other), ``report.md`` with ``figures/``, and
            ``verdict.json`` (every task's verdict whole, and the run's facts).
        language: Language of the words; probes are in the language that they were run in.

    Raises:
        ConfigError: There is no task, or a probe is given twice.
        ArtifactError: An artifact lacks a file or a value, or one belongs to another task or data set.
    """
    check_sources(sources)
    writing = open_writing(sources, language)
    report = build_report(writing)
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / "report.html").write_text(render_html(report, language), encoding="utf-8", newline="\n")
    (out_dir / "report.md").write_text(render_markdown(report, language), encoding="utf-8", newline="\n")
    _write_figures(report, out_dir / "figures")
    write_json(out_dir / "verdict.json", verdict_data(writing))


def build_report(writing: Writing) -> Report:
    """The report's content; the list of files comes last, when every file has been opened."""
    sections: list[Section] = [section for build in SECTIONS if (section := build(writing)) is not None]
    return Report(
        writing.word("title"), _subtitle(writing), (*sections, origin_section(writing)), writing.library.files()
    )


def verdict_data(writing: Writing) -> dict[str, Any]:
    """What ``verdict.json`` holds: the verdicts as the comparisons wrote them."""
    run = writing.sources.run
    return {
        "run_id": run.get("run_id"),
        "run": run,
        "tasks": {files.task: files.verdict.content for files in writing.tasks},
        "sources": {file.name: {"file": file.label, "sha256": file.sha256} for file in writing.library.files()},
    }


def _subtitle(writing: Writing) -> Pieces:
    run = writing.library.run
    pieces: list[Piece] = []
    for name in ("deployment", "created", "run_id"):
        value = run.content.get(name)
        pieces += [" · "] if pieces else []
        pieces += [f"{writing.word(f'run_{name}')} "] if name == "run_id" else []
        pieces.append(writing.word("not_recorded") if value is None else Number(moment(value), value, run.place(name)))
    return tuple(pieces)


def _write_figures(report: Report, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for section in report.sections:
        for picture in _pictures(section.blocks):
            (folder / picture.file).write_bytes(picture.png)


def _pictures(blocks: Iterable[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Fold):
            yield from _pictures(block.blocks)
