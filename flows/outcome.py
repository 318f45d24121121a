"""What a ladder ends in, on its aggregate MLflow run, in Prefect and on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from components.artifacts import Artifact, Store
from components.examples import TaskName
from components.formats import read_json, write_json
from flows.leaderboard import (
    LEADERBOARD_FILE,
    RungResult,
    Verdicts,
    ladder_metrics,
    leaderboard_rows,
    verdict_metrics,
)
from flows.leaderboard_views import draw, print_leaderboard, publish_to_prefect, render_html
from flows.mlflow_runs import RunLog, rounded
from flows.plan import LadderSettings
from flows.probing import Probing
from flows.reporting import SOURCES_FILE, open_sources, run_facts, verdict_texts


@dataclass(frozen=True)
class Outcome:
    """Every artifact that a ladder's comparison and report are made from."""

    settings: LadderSettings
    prepared: Mapping[TaskName, Artifact]
    """Labelled data as read."""
    datasets: Mapping[TaskName, Artifact]
    """The same, audited."""
    corpus: Artifact
    results: Sequence[RungResult]
    verdicts: Mapping[TaskName, Artifact]
    probed: Mapping[Probing, Artifact]


def publish_outcome(run: RunLog, store: Store, parameters: dict[str, Any], outcome: Outcome) -> None:
    """Log comparison and report to the aggregate run, and print the leaderboard with its verdicts."""
    from components.report.stage import write_report

    verdicts: Verdicts = {task: read_json(made.path / "verdict.json") for task, made in outcome.verdicts.items()}
    rows = leaderboard_rows(outcome.results, verdicts, "all")
    clean = leaderboard_rows(outcome.results, verdicts, "never_leaked")
    language = outcome.settings.report.language
    texts = {task: verdict_texts(verdict, language) for task, verdict in verdicts.items()}
    board = {"run_id": run.run_id, "rows": rows}
    _log_figures(run, outcome, verdicts, ladder_metrics(outcome.results, rows, clean))
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_json(folder / LEADERBOARD_FILE, board)
        write_json(folder / "leaderboard_never_leaked.json", {**board, "rows": clean})
        write_json(folder / "runs.json", _run_links(outcome))
        write_json(folder / "audit.json", _audit(outcome))
        draw(rows, folder / "leaderboard.png")
        (folder / "leaderboard.html").write_text(render_html(board, clean), encoding="utf-8")
        sources = {"run": run_facts(run, parameters), **_sources(outcome)}
        # Tasks and parameters keep their order, which is that of the report.
        (folder / SOURCES_FILE).write_text(json.dumps(sources, ensure_ascii=False, indent=1), encoding="utf-8")
        write_report(open_sources(sources, store), folder, language=language)
        run.client.log_artifacts(run.run_id, name)
    publish_to_prefect(board, texts)
    print_leaderboard(board, texts)


def _log_figures(run: RunLog, outcome: Outcome, verdicts: Verdicts, metrics: dict[str, float]) -> None:
    """Numbers to compare in MLflow, and the two names that people look for, as parameters."""
    chosen = {f"best_{task}": verdict["best"] for task, verdict in verdicts.items()}
    chosen |= {f"cheapest_{task}": verdict["cheapest_within_noise"] for task, verdict in verdicts.items()}
    rungs = [rung.name for rung in outcome.settings.rungs]
    run.params({"rungs": rungs, "num_seeds": len(outcome.settings.seeds), **chosen})
    run.inputs({**{task: (dataset,) for task, dataset in outcome.datasets.items()}, "corpus": (outcome.corpus,)})
    metrics = metrics | verdict_metrics(verdicts) | _probe_metrics(outcome)
    run.metrics({name: rounded(value) for name, value in metrics.items()})


def _probe_metrics(outcome: Outcome) -> dict[str, float]:
    """The headline of each probe and rung, ``sense_accuracy_bert``; a probe without a rung names its own."""
    from components.probes.probe_file import PROBE_FILE

    metrics: dict[str, float] = {}
    for probing, artifact in outcome.probed.items():
        ending = "" if probing.rung is None else f"_{probing.rung}"
        headline = read_json(artifact.path / PROBE_FILE)["headline"]
        metrics |= {f"{name}{ending}": float(value) for name, value in headline.items()}
    return metrics


def _run_links(outcome: Outcome) -> dict[str, Any]:
    links: dict[str, Any] = {}
    for result in outcome.results:
        links.setdefault(result.task, {})[result.rung] = {
            "finetuning": [artifact.details["run_id"] for artifact in result.finetuned],
            "evaluation": [artifact.details["run_id"] for artifact in result.evaluated],
        }
    return links


def _audit(outcome: Outcome) -> dict[str, Any]:
    audits: dict[str, Any] = {task: read_json(made.path / "audit.json") for task, made in outcome.datasets.items()}
    return {**audits, "corpus": read_json(outcome.corpus.path / "audit.json")}


def _sources(outcome: Outcome) -> dict[str, Any]:
    """Stage and key of every artifact that the report is written from."""
    tasks: dict[str, Any] = {
        task: {
            "comparison": _place(verdict),
            "dataset": _place(outcome.datasets[task]),
            "prepared": _place(outcome.prepared[task]),
            "evaluations": {one.rung: [_place(made) for made in one.evaluated] for one in _of(outcome, task)},
            "finetuned": {one.rung: [_place(made) for made in one.finetuned] for one in _of(outcome, task)},
        }
        for task, verdict in outcome.verdicts.items()
    }
    probes = [
        {"probe": probing.probe, "rung": probing.rung, "artifact": _place(made)}
        for probing, made in outcome.probed.items()
    ]
    return {"tasks": tasks, "corpus": _place(outcome.corpus), "probes": probes}


def _of(outcome: Outcome, task: TaskName) -> list[RungResult]:
    return [result for result in outcome.results if result.task == task]


def _place(artifact: Artifact) -> list[str]:
    return [artifact.stage, artifact.key]
