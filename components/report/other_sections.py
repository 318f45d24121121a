"""How it was run, and the list of files that numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.report.content import Block, Cell, Fold, Name, Number, Paragraph, Piece, Section, Table
from components.report.content import text_cell as cell
from components.report.numbers import general, moment
from components.report.sources import JsonFile
from components.report.writing import Writing

MACHINE = ("cores", "processor", "system")
RULES = ("primary_view", "alpha", "margin", "power", "num_train_examples")


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
        blocks.append(Fold(title, (Table(columns, (*rules, resamples)),)))
    for section in ("versions", "parameters"):
        found = tuple(
            (cell(Name(".".join(keys[1:]) or section)), _fact(writing, run, *keys))
            for keys in _leaves(run.content.get(section), (section,))
        )
        blocks.append(Fold(writing.word(f"run_{section}"), (Table(columns, found),)))
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
        return writing.word(value) if value in ("all", "never_leaked") else moment(value)
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
        "origin", writing.word("origin"), (intro, Fold(writing.word("sources"), (Table(columns, tuple(rows)),)))
    )
