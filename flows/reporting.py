"""The report of a ladder, when it ends and again from what is stored."""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.artifacts import Store
from components.errors import ArtifactError
from components.report.content import Name, Number
from components.report.numbers import ReportLanguage
from components.report.sentences import write_sentence
from components.report.sources import JsonFile, ProbeSource, ReportSources, TaskSources
from flows.environment import Home
from flows.execution import deployment_name, environment_facts
from flows.mlflow_runs import RunLog
from flows.stored_ladders import stored_json

SOURCES_FILE = "report_sources.json"
"""Stage and key of every artifact that a report is written from, and the facts of its run."""
VERDICT_FILE = "verdict.json"
"""Every task's verdict whole, as the report writes it."""
_PACKAGES = ("torch", "transformers", "tokenizers", "gensim", "scikit-learn", "numpy", "pandas", "prefect", "mlflow")


def run_facts(run: RunLog, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """How a ladder was run, as the report shows it."""
    facts = environment_facts()
    started = run.client.get_run(run.run_id).info.start_time / 1000
    return {
        "run_id": run.run_id,
        "deployment": deployment_name(),
        "created": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 1),
        "code": facts["code_version"],
        "machine": {"cores": os.cpu_count(), "processor": _processor(), "system": platform.platform()},
        "versions": {name: facts["packages"][name] for name in _PACKAGES if name in facts["packages"]},
        "parameters": dict(parameters),
    }


def _processor() -> str:
    """The processor's name as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def verdict_texts(verdict: Mapping[str, Any], language: ReportLanguage) -> list[str]:
    """A verdict's sentences in words."""
    file = JsonFile("verdict.json", verdict)
    texts = []
    for position in range(len(verdict["sentences"])):
        pieces = write_sentence(file, ("sentences", position), language)
        texts.append("".join(piece.text if isinstance(piece, Name | Number) else piece for piece in pieces))
    return texts


def stored_texts(home: Home, run_id: str) -> dict[str, list[str]]:
    """The verdict of each task of a finished ladder, in the language of its report.

    Raises:
        InputError: The run has none, as one of an older version may not.
    """
    verdicts = stored_json(home, run_id, VERDICT_FILE)
    language = verdicts["run"]["parameters"]["report"]["language"]
    return {task: verdict_texts(verdict, language) for task, verdict in verdicts["tasks"].items()}


def open_sources(found: Mapping[str, Any], store: Store) -> ReportSources:
    """The artifacts behind a ``report_sources.json``.

    Raises:
        ArtifactError: One is no longer in the store, or damaged.
    """

    def folder(place: list[str]) -> Path:
        stage, key = place
        artifact = store.find(stage, key)
        if artifact is None:
            raise ArtifactError(f"{stage} {key[:12]} is not in {store.root}; run the ladder again, which makes it anew")
        return artifact.path

    def by_rung(places: Mapping[str, list[list[str]]]) -> dict[str, tuple[Path, ...]]:
        return {rung: tuple(folder(place) for place in several) for rung, several in places.items()}

    tasks: dict[Any, TaskSources] = {
        task: TaskSources(
            folder(places["comparison"]),
            folder(places["dataset"]),
            by_rung(places["evaluations"]),
            folder(places["prepared"]),
            by_rung(places["finetuned"]),
        )
        for task, places in found["tasks"].items()
    }
    probes = tuple(ProbeSource(one["rung"] or "–", one["probe"], folder(one["artifact"])) for one in found["probes"])
    return ReportSources(dict(found["run"]), tasks, folder(found["corpus"]), probes)
