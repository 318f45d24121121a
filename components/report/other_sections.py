"""Probes, how it was run, and the list of files that numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.errors import ArtifactError
from components.report.content import Block, Cell, Heading, Name, Number, Paragraph, Picture, Piece, Section, Table
from components.report.content import text_cell as cell
from components.report.numbers import general
from components.report.sources import JsonFile, ProbeSource
from components.report.writing import Writing

PROBE_KEYS = ("probe", "encoder", "language", "meaningful", "reason", "headline", "figures")
MACHINE = ("cores", "processor", "precision")
RULES = ("primary_view", "alpha", "margin", "power", "num_train_examples")


def probes_section(writing: Writing) -> Section:
    """What each representation knows, by probe; a probe that means nothing for an encoder says why."""
    blocks: list[Block] = [Paragraph(((writing.word("probes_intro"),),), "note")]
    groups: dict[str, list[tuple[ProbeSource, JsonFile]]] = {}
    for source in writing.sources.probes:
        groups.setdefault(source.probe, []).append((source, _open_probe(writing, source)))
    for probe, found in groups.items():
        blocks += [Heading(writing.word(f"probe_{probe}"))]
        blocks += [Paragraph(((writing.word(f"about_{probe}"),),), "note")] if _is_known(writing, probe) else []
        blocks += [*_headline(writing, found), *(block for one in found for block in _details(writing, *one))]
    if not groups:
        blocks.append(Paragraph(((writing.word("probes_none"),),)))
    return Section("probes", writing.word("probes"), tuple(blocks))


def _is_known(writing: Writing, probe: str) -> bool:
    return writing.word(f"about_{probe}") != f"about {probe}".replace("_", " ")


def _open_probe(writing: Writing, source: ProbeSource) -> JsonFile:
    file = writing.library.open(source.path, "probe.json")
    if missing := [name for name in PROBE_KEYS if name not in file.content]:
        raise ArtifactError(f"{source.path}/probe.json has no {', '.join(missing)}; run the probe again")
    figures = file.at("figures")
    named = isinstance(figures, list) and all({"file", "caption"} <= {*figure} for figure in figures)
    if not isinstance(file.at("headline"), dict) or not named:
        raise ArtifactError(
            f"{source.path}/probe.json needs an object as headline and a list of file and caption as figures; "
            "run the probe again"
        )
    if file.at("probe") != source.probe:
        raise ArtifactError(f"{source.path} holds probe {file.at('probe')!r}, given as {source.probe!r}")
    return file


def _headline(writing: Writing, found: list[tuple[ProbeSource, JsonFile]]) -> Iterator[Block]:
    names = list(dict.fromkeys(name for _, file in found for name in file.at("headline")))
    if not names:
        return
    rows = tuple(
        (cell(Name(source.rung)), *(_measured(writing, file, name) for name in names))
        for source, file in found
    )  # fmt: skip
    yield Table(writing.columns("rung", *names), rows)


def _measured(writing: Writing, file: JsonFile, name: str) -> Cell:
    if not file.at("meaningful"):
        return cell(writing.word("not_meaningful"))
    if file.at("headline").get(name) is None:
        return cell("–")
    return cell(writing.number(file, "headline", name, kind="general"))


def _details(writing: Writing, source: ProbeSource, file: JsonFile) -> Iterator[Block]:
    """The probe's own sentences, or why it has none, and its pictures."""
    sentences = [n for n, found in enumerate(file.content.get("sentences", [])) if writing.language in found]
    if sentences:
        said = [_quoted(file, "sentences", position, writing.language) for position in sentences]
        yield Paragraph(tuple((Name(source.rung), ": ", one) if not n else (one,) for n, one in enumerate(said)))
    elif not file.at("meaningful"):
        yield Paragraph(((Name(source.rung), ": ", _quoted(file, "reason")),))
    for figure in file.at("figures"):
        path = source.path / figure["file"]
        if path.parent != source.path or not path.is_file():
            raise ArtifactError(
                f"{source.path}/probe.json names picture {figure['file']!r}, which is not in its folder"
            )
        name = f"{source.probe}_{_safe(source.rung)}_{figure['file']}"
        yield Picture(name, path.read_bytes(), f"{source.rung}: {figure['caption']}")


def _safe(name: str) -> str:
    """A rung's name as part of a file's; letters of any script stay."""
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name)


def _quoted(file: JsonFile, *keys: str | int) -> Number:
    """Words of a file with numbers in them, which come from there as they are."""
    text = str(file.at(*keys))
    return Number(text, text, file.place(*keys))


def run_section(writing: Writing) -> Section:
    """Deployment, machine, versions, parameters, and the rules of the verdict."""
    run = writing.library.run
    facts: dict[str, tuple[str, ...]] = {
        name: (name,) for name in ("run_id", "deployment", "created", "code", "seconds")
    }
    facts |= {name: ("machine", name) for name in MACHINE}
    rows = tuple((cell(writing.word(f"run_{name}")), _fact(writing, run, *keys)) for name, keys in facts.items())
    columns = writing.columns("setting", "value", text=2)
    blocks: list[Block] = [Table(columns, rows, writing.word("run_facts"))]
    for files in writing.tasks:
        title = writing.word("run_statistics", task=writing.word(files.task))
        rules = tuple((cell(writing.word(name)), _fact(writing, files.verdict, name)) for name in RULES)
        resamples = (cell(writing.word("num_resamples")), _fact(writing, files.verdict, "settings", "num_resamples"))
        blocks.append(Table(columns, (*rules, resamples), title, folded=True))
    for section in ("versions", "parameters"):
        found = tuple(
            (cell(Name(".".join(keys[1:]) or section)), _fact(writing, run, *keys))
            for keys in _leaves(run.content.get(section), (section,))
        )
        blocks.append(Table(columns, found, writing.word(f"run_{section}"), folded=len(found) > 1))
    return Section("run", writing.word("run"), tuple(blocks))


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths to the values below nested settings; a list is a value."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*keys, str(name)))
    else:
        yield keys


def _fact(writing: Writing, file: JsonFile, *keys: str) -> Cell:
    """A recorded value; ``not recorded`` where there is none."""
    value: Any = file.content
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        # A parameter that is null was set so; any other fact that is absent was not recorded.
        return cell("null" if keys[0] == "parameters" and len(keys) > 1 else writing.word("not_recorded"))
    if keys == ("seconds",):
        return cell(writing.number(file, *keys, kind="seconds"))
    return cell(Number(_shown(writing, value), value, file.place(*keys)))


def _shown(writing: Writing, value: Any) -> str:
    if isinstance(value, str):
        return writing.word(value) if value in ("all", "never_leaked") else value
    if isinstance(value, list | tuple):
        return ", ".join(_shown(writing, item) for item in value) or writing.word("none")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return general(value, writing.language) if abs(value) >= 1000 else f"{value:g}"


def origin_section(writing: Writing) -> Section:
    """Every file that a number of the report comes from; made last, when all are open."""
    rows: list[tuple[Cell, ...]] = []
    for file in writing.library.files():
        pieces: tuple[Piece, ...] = (Name(file.label),)
        rows.append((cell(file.name), cell(*pieces), cell(Name(file.sha256[:16]))))
    columns = writing.columns("short", "file", "SHA-256", text=3)
    intro = Paragraph(((writing.word("origin_intro"),),), "note")
    return Section(
        "origin", writing.word("origin"), (intro, Table(columns, tuple(rows), writing.word("sources"), folded=True))
    )
