"""What each representation knows: a table of main numbers per probe, then findings and pictures by rung, folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.artifacts import digest_bytes
from components.errors import ArtifactError
from components.report.content import (
    Block,
    Bullets,
    Cell,
    Fold,
    Heading,
    Name,
    Number,
    Paragraph,
    Picture,
    Section,
    Table,
)
from components.report.content import text_cell as cell
from components.report.sentences import list_names
from components.report.sources import JsonFile, ProbeSource
from components.report.writing import Writing

PROBE_KEYS = ("probe", "encoder", "language", "meaningful", "reason", "headline", "figures")
NO_RUNG = "–"
"""Stands for the rung of a probe that trains networks of its own."""
MAX_PICTURE_BYTES = 3_500_000
"""Most bytes of probes' pictures on the page, a third more as text; the others lie beside it."""
BOUNDS = ("_low", "_high")


@dataclass(frozen=True)
class Result:
    """What one probe found, and the rungs that share it as they share an encoder."""

    rungs: tuple[str, ...]
    file: JsonFile
    folder: Path

    @property
    def pictures(self) -> list[Path]:
        """Its picture files."""
        return [self.folder / figure["file"] for figure in self.file.at("figures")]

    @property
    def has_rung(self) -> bool:
        """Whether it is about the encoder of a rung."""
        return self.rungs != (NO_RUNG,)


def probes_section(writing: Writing) -> Section:
    """Main numbers of all rungs per probe; a probe that means nothing for an encoder says why."""
    blocks: list[Block] = [Paragraph(((writing.word("probes_intro"),),), "note")]
    results = _open_results(writing)
    on_page = _choose_pictures([result for found in results.values() for result in found])
    for probe, found in results.items():
        blocks += [Heading(writing.word(f"probe_{probe}"))]
        blocks += [Paragraph(((writing.word(f"about_{probe}"),),), "note")] if writing.knows(f"about_{probe}") else []
        blocks += [*_headline(writing, found), *_reasons(writing, found), *_findings(writing, found, on_page)]
    if not results:
        blocks.append(Paragraph(((writing.word("probes_none"),),)))
    return Section("probes", writing.word("probes"), tuple(blocks))


def _open_results(writing: Writing) -> dict[str, list[Result]]:
    """Results by probe, in the order given; rungs with one encoder between them share a result."""
    rungs: dict[tuple[str, Path], list[str]] = {}
    for source in writing.sources.probes:
        rungs.setdefault((source.probe, source.path), []).append(source.rung)
    results: dict[str, list[Result]] = {}
    for (probe, folder), names in rungs.items():
        file = _open_probe(writing, ProbeSource(names[0], probe, folder))
        results.setdefault(probe, []).append(Result(tuple(names), file, folder))
    return results


def _open_probe(writing: Writing, source: ProbeSource) -> JsonFile:
    file = writing.library.open(source.path, "probe.json")
    if missing := [name for name in PROBE_KEYS if name not in file.content]:
        raise ArtifactError(f"{source.path}/probe.json has no {', '.join(missing)}; run the probe again")
    figures: Any = file.at("figures")
    named = isinstance(figures, list) and all({"file", "caption"} <= {*figure} for figure in figures)
    if not isinstance(file.at("headline"), dict) or not named:
        raise ArtifactError(
            f"{source.path}/probe.json needs an object as headline and a list of file and caption as figures; "
            "run the probe again"
        )
    if file.at("probe") != source.probe:
        raise ArtifactError(f"{source.path} holds probe {file.at('probe')!r}, given as {source.probe!r}")
    for path in (source.path / figure["file"] for figure in figures):
        if path.parent != source.path or not path.is_file():
            raise ArtifactError(f"{source.path}/probe.json names picture {path.name!r}, which is not in its folder")
    return file


def _choose_pictures(results: Sequence[Result]) -> set[Path]:
    """The pictures that the page holds: every result's first, then every second, as long as there is room."""
    chosen: set[Path] = set()
    room = MAX_PICTURE_BYTES
    ordered = sorted((place, path) for result in results for place, path in enumerate(result.pictures))
    for _, path in ordered:
        if (size := path.stat().st_size) <= room:
            chosen.add(path)
            room -= size
    return chosen


def _headline(writing: Writing, found: Sequence[Result]) -> Iterator[Block]:
    """Main numbers: a row per rung, or per measure where the probe is about no rung."""
    told = [result for result in found if result.file.at("meaningful")]
    names = list(dict.fromkeys(name for result in told for name in result.file.at("headline")))
    names = sorted((name for name in names if not name.endswith(BOUNDS)), key=writing.rank)
    if not names:
        return
    if any(result.has_rung for result in told):
        rows = [
            (cell(Name(rung)), *(_measured(writing, result.file, name) for name in names))
            for result in told for rung in result.rungs
        ]  # fmt: skip
        yield Table(writing.columns("rung", *names), tuple(rows))
    else:
        lines = [(cell(writing.word(name)), _measured(writing, told[0].file, name)) for name in names]
        yield Table(writing.columns("measure", "value"), tuple(lines))


def _measured(writing: Writing, file: JsonFile, name: str) -> Cell:
    """A number with its interval, where the probe has one."""
    if file.at("headline").get(name) is None:
        return cell("–")
    value = writing.number(file, "headline", name, kind="general")
    metrics = file.content.get("metrics", {})
    if not all(metrics.get(f"{name}{end}") is not None for end in BOUNDS):
        return cell(value)
    low, high = (writing.number(file, "metrics", f"{name}{end}", kind="general") for end in BOUNDS)
    return cell(value, " (", low, writing.word("to"), high, ")")


def _reasons(writing: Writing, found: Sequence[Result]) -> Iterator[Block]:
    """Why some rungs have no number; rungs with one reason share the line."""
    shared: dict[str, list[Result]] = {}
    for result in found:
        if not result.file.at("meaningful"):
            shared.setdefault(str(result.file.at("reason")), []).append(result)
    lines = []
    for results in shared.values():
        rungs = [rung for result in results if result.has_rung for rung in result.rungs]
        reason = (_said(results[0], writing) or [_quoted(results[0].file, "reason")])[0]
        named = (writing.word("no_number"), *list_names(rungs, writing.language), writing.word("colon"))
        lines.append((*(named if rungs else ()), reason))
    if lines:
        yield Bullets(tuple(lines))


def _findings(writing: Writing, found: Sequence[Result], on_page: set[Path]) -> Iterator[Block]:
    """Sentences and pictures of each result, folded by rung."""
    folds = [
        Fold(", ".join(result.rungs) if result.has_rung else writing.word("findings"), blocks)
        for result in found
        if result.file.at("meaningful") and (blocks := tuple(_details(writing, result, on_page)))
    ]
    if len(folds) > 1:
        yield Fold(writing.word("by_rung"), tuple(folds))
    else:
        yield from folds


def _details(writing: Writing, result: Result, on_page: set[Path]) -> Iterator[Block]:
    if said := _said(result, writing):
        yield Bullets(tuple((one,) for one in said))
    owner = f"{_safe(result.rungs[0])}_" if result.has_rung else ""
    for figure, path in zip(result.file.at("figures"), result.pictures, strict=True):
        caption = f"{', '.join(result.rungs)}: {figure['caption']}" if result.has_rung else figure["caption"]
        name = f"{result.file.at('probe')}_{owner}{path.name}"
        yield Picture(name, path.read_bytes(), caption, on_page=path in on_page)


def _said(result: Result, writing: Writing) -> list[Number]:
    """The probe's own sentences in the report's language."""
    sentences = result.file.content.get("sentences", [])
    places = [place for place, found in enumerate(sentences) if writing.language in found]
    return [_quoted(result.file, "sentences", place, writing.language) for place in places]


def _safe(name: str) -> str:
    """A rung's name as part of a file's; letters of any script stay, and different names stay different."""
    text = "".join(character if character.isalnum() or character in "-_." else "-" for character in name)
    return text if text == name else f"{text}-{digest_bytes(name.encode())[:8]}"


def _quoted(file: JsonFile, *keys: str | int) -> Number:
    """Words of a file with numbers in them, which come from there as they are."""
    text = str(file.at(*keys))
    return Number(text, text, file.place(*keys))
