"""What every section of the report needs: its language, the opened files, and the files of each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from components.errors import ArtifactError
from components.examples import TaskName
from components.report.content import Cell, Column, Number, Pieces, Table
from components.report.numbers import FORMATS, ReportLanguage, number
from components.report.sentences import WORDS, Keys, Style, write_sentence, write_template
from components.report.sources import JsonFile, Library, ReportSources, TaskSources


@dataclass(frozen=True)
class TaskFiles:
    """The opened files of one task."""

    task: TaskName
    verdict: JsonFile
    curve: JsonFile | None
    audit: JsonFile
    sources: TaskSources

    @property
    def primary(self) -> str:
        """The view whose verdict counts."""
        return str(self.verdict.at("primary_view"))

    def rungs(self, view: str) -> list[dict[str, Any]]:
        """Rows of the rungs in a view, highest mean first."""
        return list(self.verdict.at("views", view, "rungs"))

    @property
    def views(self) -> list[str]:
        """The views that there are, the one that counts first."""
        found = self.verdict.at("views")
        return sorted(found, key=lambda view: (view != self.primary, view))


@dataclass(frozen=True)
class Writing:
    """A report in the making."""

    language: ReportLanguage
    sources: ReportSources
    library: Library
    tasks: tuple[TaskFiles, ...]

    def word(self, name: str, **facts: Any) -> str:
        """A word or heading; one that is not known is shown as it is, such as the name of a new metric."""
        text = WORDS[self.language].get(name)
        return name.replace("_", " ") if text is None else text.format(**facts) if facts else text

    def knows(self, name: str) -> bool:
        """Whether there is a word of that name."""
        return name in WORDS[self.language]

    def rank(self, name: str) -> int:
        """Place of a word among all, which are in the order of reading; one that is not known comes last."""
        known = [*WORDS[self.language]]
        return known.index(name) if name in known else len(known)

    def number(self, file: JsonFile, *keys: str | int, kind: str = "count") -> Number:
        """A number of a file."""
        return number(file, *keys, kind=kind, language=self.language)

    def sentence(self, file: JsonFile, *keys: str | int) -> Pieces:
        """A sentence that stands as data in a file."""
        return write_sentence(file, keys, self.language)

    def short(self, style: Style, file: JsonFile, *keys: str | int) -> Pieces:
        """The same in few words."""
        return write_sentence(file, keys, self.language, style)

    def template(self, name: str, file: JsonFile, *keys: str | int) -> Pieces:
        """A template filled from an object of a file."""
        return write_template(name, file, keys, self.language)

    def level(self, files: TaskFiles) -> str:
        """What the intervals cover, such as 95 %."""
        return FORMATS["percent"](round(1 - files.verdict.at("alpha"), 6), self.language)

    def columns(self, *names: str, text: int = 1) -> tuple[Column, ...]:
        """Columns by their words; the first ``text`` hold words, the others numbers."""
        return tuple(Column(self.word(name), "text" if at < text else "number") for at, name in enumerate(names))

    def counts_table(self, title: str, rows: Sequence[tuple[str, Number]]) -> Table | None:
        """A table of two columns, what and how many; None without rows."""
        cells = tuple((Cell((name,)), Cell((value,))) for name, value in rows)
        return Table(self.columns("what", "how_many"), cells, title) if cells else None


def open_writing(sources: ReportSources, language: ReportLanguage) -> Writing:
    """Open the files of every task.

    Raises:
        ArtifactError: A verdict or an audit is missing, or a verdict is that of another task.
    """
    library = Library(sources.run)
    return Writing(language, sources, library, tuple(_open_tasks(sources, library)))


def _open_tasks(sources: ReportSources, library: Library) -> Iterator[TaskFiles]:
    for task, found in sources.tasks.items():
        verdict = library.open(found.comparison, "verdict.json")
        if verdict.at("task") != task:
            raise ArtifactError(f"{found.comparison}: the verdict is on {verdict.at('task')!r}, given for {task!r}")
        has_curve = (found.comparison / "label_curve.json").is_file()
        curve = library.open(found.comparison, "label_curve.json") if has_curve else None
        yield TaskFiles(task, verdict, curve, library.open(found.dataset, "audit.json"), found)


def row_keys(view: str, position: int) -> Keys:
    """Where a verdict holds the row of a rung."""
    return ("views", view, "rungs", position)
