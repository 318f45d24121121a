"""What a report is written from: the artifacts of a run, and the JSON files in them that numbers come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.artifacts import MANIFEST, digest_bytes, digest_json
from components.errors import ArtifactError, ConfigError
from components.examples import TaskName
from components.report.content import SourceFile


@dataclass(frozen=True)
class ProbeSource:
    """What a probe found in one rung's encoder."""

    rung: str
    probe: str
    path: Path
    """Folder with ``probe.json`` and the pictures that it names."""


@dataclass(frozen=True)
class TaskSources:
    """The artifacts of one task."""

    comparison: Path
    """Folder with ``verdict.json`` and, where several label counts were run, ``label_curve.json``."""
    dataset: Path
    """Folder with ``audit.json``: the audited data set."""
    evaluations: dict[str, tuple[Path, ...]]
    """For each rung the evaluation artifacts, one per seed."""
    prepared: Path | None = None
    """Artifact of the stage that read the labelled data and counted what it dropped."""
    finetuned: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    """For each rung the fine-tuning artifacts, one per seed, which count what was cut."""


@dataclass(frozen=True)
class ReportSources:
    """Everything that a report is written from."""

    run: dict[str, Any]
    """How it was run: run_id, deployment, created, versions, machine, code, parameters, seconds."""
    tasks: dict[TaskName, TaskSources]
    corpus: Path
    """Corpus artifact with ``audit.json``."""
    probes: tuple[ProbeSource, ...] = ()


@dataclass(frozen=True)
class JsonFile:
    """A JSON file under its short name."""

    name: str
    content: Any

    def at(self, *keys: str | int) -> Any:
        """The value at a path of keys and positions.

        Raises:
            ArtifactError: There is none.
        """
        value = self.content
        for key in keys:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError) as error:
                raise ArtifactError(f"{self.name} has nothing at {pointer(*keys)}; write it again") from error
        return value

    def place(self, *keys: str | int) -> str:
        """Short name of the file and JSON pointer (RFC 6901)."""
        return f"{self.name}#{pointer(*keys)}"


class Library:
    """Opens JSON files once and names them S1, S2, ... in order of use."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        self._files: dict[Path, tuple[JsonFile, SourceFile]] = {}
        self.run = JsonFile("run", dict(run))
        self._run_digest = digest_json(self.run.content)

    def open(self, folder: Path, name: str) -> JsonFile:
        """The JSON file of that name in an artifact's folder.

        Raises:
            ArtifactError: It is missing or holds no JSON object.
        """
        path = folder / name
        if path not in self._files:
            content, digest = _read_object(path)
            short = f"S{len(self._files) + 1}"
            # Stage and key find the file in any store; the store's own place is nobody's business.
            label = "/".join((*folder.resolve().parts[-2:], name))
            self._files[path] = JsonFile(short, content), SourceFile(short, label, digest)
        return self._files[path][0]

    def manifest(self, folder: Path) -> JsonFile | None:
        """The artifact's manifest; None for a folder that was not published."""
        return self.open(folder, MANIFEST) if (folder / MANIFEST).is_file() else None

    def files(self) -> tuple[SourceFile, ...]:
        """Every file that was opened, and the facts of the run."""
        run = SourceFile("run", "verdict.json#/run", self._run_digest)
        return (run, *(file for _, file in self._files.values()))


def check_sources(sources: ReportSources) -> None:
    """Refuse sources that no report can be written from.

    Raises:
        ConfigError: There is no task, or two folders hold the same probe of the same rung.
    """
    if not sources.tasks:
        raise ConfigError("0 tasks to report on; a report needs the comparison of at least 1 task")
    seen = [(probe.rung, probe.probe) for probe in sources.probes]
    if repeated := sorted({pair for pair in seen if seen.count(pair) > 1}):
        rung, probe = repeated[0]
        raise ConfigError(f"probe {probe!r} of rung {rung!r} is there {seen.count(repeated[0])} times; give it once")


def pointer(*keys: str | int) -> str:
    """JSON pointer of a path of keys and positions (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def _read_object(path: Path) -> tuple[dict[str, Any], str]:
    try:
        data = path.read_bytes()
        content = json.loads(data)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: no readable JSON ({error}); run the stage that writes it again") from error
    if not isinstance(content, dict):
        raise ArtifactError(f"{path}: holds a {type(content).__name__}, a report needs a JSON object")
    return content, digest_bytes(data)
