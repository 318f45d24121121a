"""From the runs of every rung to one comparison: the leaderboard as JSON, picture, page and MLflow metrics."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from components.artifacts import Artifact
from components.evaluation.config import MAIN_METRIC, EvaluationConfig
from components.examples import TaskName
from components.formats import read_json, write_json
from flows.leaderboard_views import draw, print_leaderboard, publish_to_prefect, render_html
from flows.mlflow_runs import RunLog, rounded
from flows.rungs import Rung

View = Literal["all", "never_leaked"]
LEADERBOARD_FILE = "leaderboard.json"


@dataclass(frozen=True)
class RungResult:
    """One rung on one task over all seeds."""

    rung: Rung
    task: TaskName
    finetuned: tuple[Artifact, ...]
    evaluated: tuple[Artifact, ...]
    encoder_seconds: tuple[float, ...]


def leaderboard_row(result: RungResult, dataset: Path, evaluation: EvaluationConfig, view: View) -> dict[str, Any]:
    """One line of the leaderboard.

    ``train_seconds`` is what a user waits for who wants only this rung: its encoder, once, and one fine-tuning (mean
    over seeds). ``low`` and ``high`` bound the 95 % interval over seeds and test items.
    """
    from components.evaluation.aggregate import aggregate

    metric = MAIN_METRIC[result.task]
    paths = [artifact.path / "predictions.jsonl" for artifact in result.finetuned]
    found = aggregate(
        paths,
        dataset,
        metric,
        num_resamples=evaluation.num_resamples,
        seed=evaluation.seed,
        view=view,
        language=evaluation.language,
    )

    def average(name: str) -> float:
        return statistics.fmean(artifact.metrics[name] for artifact in result.finetuned)

    return {
        "task": result.task,
        "rung": result.rung.name,
        "metric": metric,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "num_seeds": found.num_seeds,
        "train_seconds": average("train_seconds") + statistics.fmean(result.encoder_seconds),
        "num_parameters": round(average("num_parameters")),
        "items_per_second": average("test_items_per_second"),
    }


def publish_leaderboard(
    run: RunLog,
    results: list[RungResult],
    *,
    datasets: Mapping[TaskName, Artifact],
    corpus: Artifact,
    evaluation: EvaluationConfig,
) -> None:
    """Log the comparison to the aggregate run, and print it."""
    rows = [leaderboard_row(result, datasets[result.task].path, evaluation, "all") for result in results]
    clean = [leaderboard_row(result, datasets[result.task].path, evaluation, "never_leaked") for result in results]
    board = {"run_id": run.run_id, "rows": rows}
    run.params({"rungs": list(dict.fromkeys(row["rung"] for row in rows)), "num_seeds": rows[0]["num_seeds"]})
    run.inputs({**{task: (dataset,) for task, dataset in datasets.items()}, "corpus": (corpus,)})
    metrics = _ladder_metrics(results, rows, clean)
    run.metrics({name: rounded(value) for name, value in metrics.items()})
    with TemporaryDirectory() as folder:
        write_json(Path(folder) / LEADERBOARD_FILE, board)
        write_json(Path(folder) / "leaderboard_never_leaked.json", {**board, "rows": clean})
        write_json(Path(folder) / "runs.json", _run_links(results))
        write_json(Path(folder) / "audit.json", _audit(datasets, corpus))
        draw(rows, Path(folder) / "leaderboard.png")
        (Path(folder) / "leaderboard.html").write_text(render_html(board, clean), encoding="utf-8")
        run.client.log_artifacts(run.run_id, folder)
    publish_to_prefect(board)
    print_leaderboard(board)


def _ladder_metrics(
    results: list[RungResult], rows: list[dict[str, Any]], clean: list[dict[str, Any]]
) -> dict[str, float]:
    """Scores by metric and rung, ``entity_f1_bert``; costs by task and rung, ``train_seconds_ner_bert``."""
    metrics: dict[str, float] = {}
    for result, row, unleaked in zip(results, rows, clean, strict=True):
        metric, name = row["metric"], row["rung"]
        scores = [artifact.metrics[metric] for artifact in result.evaluated]
        metrics |= {
            f"{metric}_{name}": row["mean"],
            f"{metric}_low_{name}": row["low"],
            f"{metric}_high_{name}": row["high"],
            f"{metric}_sd_{name}": statistics.stdev(scores) if len(scores) > 1 else 0.0,
            f"{metric}_clean_{name}": unleaked["mean"],
        }
        costs = {cost: row[cost] for cost in ("train_seconds", "num_parameters", "items_per_second")}
        metrics |= {f"{cost}_{result.task}_{name}": value for cost, value in costs.items()}
    return metrics


def _run_links(results: list[RungResult]) -> dict[str, Any]:
    links: dict[str, Any] = {}
    for result in results:
        links.setdefault(result.task, {})[result.rung.name] = {
            "finetuning": [artifact.details["run_id"] for artifact in result.finetuned],
            "evaluation": [artifact.details["run_id"] for artifact in result.evaluated],
        }
    return links


def _audit(datasets: Mapping[TaskName, Artifact], corpus: Artifact) -> dict[str, Any]:
    audits: dict[str, Any] = {task: read_json(dataset.path / "audit.json") for task, dataset in datasets.items()}
    return {**audits, "corpus": read_json(corpus.path / "audit.json")}
