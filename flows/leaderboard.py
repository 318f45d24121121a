"""From the runs of every rung to one comparison: the leaderboard as JSON, picture, page and MLflow metrics."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from components.artifacts import Artifact
from components.evaluation.config import EvaluationConfig
from components.finetuning.config import FinetuningConfig
from components.formats import read_json, write_json
from flows import stages
from flows.encoders import EncoderTrainer
from flows.mlflow_runs import RunLog, rounded
from flows.progress import console
from flows.rungs import Rung
from flows.settings import overridden, with_fields

View = Literal["all", "never_leaked"]
METRIC = "accuracy"
LEADERBOARD_FILE = "leaderboard.json"


@dataclass(frozen=True)
class RungResult:
    """One rung over all seeds."""

    rung: Rung
    task: str
    finetuned: tuple[Artifact, ...]
    evaluated: tuple[Artifact, ...]
    encoder_seconds: tuple[float, ...]


def run_rung(
    rung: Rung, seeds: list[int], trainer: EncoderTrainer, finetuning: FinetuningConfig, evaluation: EvaluationConfig
) -> RungResult:
    """Train, fine-tune and evaluate one rung for every seed."""
    execution, dataset = trainer.ladder, trainer.dataset
    finetuned, evaluated, seconds = [], [], []
    for seed in seeds:
        tags = {"rung": rung.name, "seed": str(seed)}
        encoder = trainer.train(rung, seed)
        own = {} if rung.pooling is None else {"pooling": rung.pooling}
        config = overridden(with_fields(finetuning, "finetuning", seed=seed), own)
        result = stages.finetune(execution, config, tags=tags, encoder=encoder.artifact, dataset=dataset)
        finetuned.append(result)
        evaluated.append(stages.evaluate(execution, evaluation, tags=tags, predictions=result, dataset=dataset))
        seconds.append(encoder.train_seconds)
    return RungResult(rung, finetuning.task, tuple(finetuned), tuple(evaluated), tuple(seconds))


def leaderboard_row(result: RungResult, gold: Path, evaluation: EvaluationConfig, view: View) -> dict[str, Any]:
    """One line of the leaderboard.

    ``train_seconds`` is what a user waits for who wants only this rung: its encoder, once, and one fine-tuning (mean
    over seeds). ``low`` and ``high`` bound the 95 % interval over seeds and test items.
    """
    from components.evaluation.aggregate import aggregate

    paths = [artifact.path / "predictions.jsonl" for artifact in result.finetuned]
    found = aggregate(paths, gold, METRIC, num_resamples=evaluation.num_resamples, seed=evaluation.seed, view=view)

    def average(name: str) -> float:
        return statistics.fmean(artifact.metrics[name] for artifact in result.finetuned)

    return {
        "task": result.task,
        "rung": result.rung.name,
        "metric": METRIC,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "num_seeds": found.num_seeds,
        "train_seconds": average("train_seconds") + statistics.fmean(result.encoder_seconds),
        "num_parameters": round(average("num_parameters")),
        "items_per_second": average("test_items_per_second"),
    }


def publish_leaderboard(
    run: RunLog, results: list[RungResult], *, dataset: Artifact, corpus: Artifact, evaluation: EvaluationConfig
) -> None:
    """Log the comparison to the aggregate run, and print it."""
    gold = dataset.path / "test.jsonl"
    rows = [leaderboard_row(result, gold, evaluation, "all") for result in results]
    clean = [leaderboard_row(result, gold, evaluation, "never_leaked") for result in results]
    board = {"run_id": run.run_id, "rows": rows}
    run.params({"rungs": [row["rung"] for row in rows], "num_seeds": rows[0]["num_seeds"]})
    run.inputs({"dataset": [dataset], "corpus": [corpus]})
    metrics = _ladder_metrics(results, rows, clean)
    run.metrics({name: rounded(value) for name, value in metrics.items()})
    with TemporaryDirectory() as folder:
        write_json(Path(folder) / LEADERBOARD_FILE, board)
        write_json(Path(folder) / "leaderboard_never_leaked.json", {**board, "rows": clean})
        write_json(Path(folder) / "runs.json", _run_links(results))
        write_json(Path(folder) / "audit.json", _audit(dataset, corpus))
        draw(rows, Path(folder) / "leaderboard.png")
        (Path(folder) / "leaderboard.html").write_text(render_html(board, clean), encoding="utf-8")
        run.client.log_artifacts(run.run_id, folder)
    _publish_to_prefect(board)
    print_leaderboard(board)


def _ladder_metrics(
    results: list[RungResult], rows: list[dict[str, Any]], clean: list[dict[str, Any]]
) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for result, row, unleaked in zip(results, rows, clean, strict=True):
        scores = [artifact.metrics[METRIC] for artifact in result.evaluated]
        name = row["rung"]
        metrics |= {
            f"{METRIC}_{name}": row["mean"],
            f"{METRIC}_low_{name}": row["low"],
            f"{METRIC}_high_{name}": row["high"],
            f"{METRIC}_sd_{name}": statistics.stdev(scores) if len(scores) > 1 else 0.0,
            f"{METRIC}_clean_{name}": unleaked["mean"],
            f"train_seconds_{name}": row["train_seconds"],
            f"num_parameters_{name}": row["num_parameters"],
            f"items_per_second_{name}": row["items_per_second"],
        }
    return metrics


def _run_links(results: list[RungResult]) -> dict[str, Any]:
    return {
        result.rung.name: {
            "finetuning": [artifact.details["run_id"] for artifact in result.finetuned],
            "evaluation": [artifact.details["run_id"] for artifact in result.evaluated],
        }
        for result in results
    }


def _audit(dataset: Artifact, corpus: Artifact) -> dict[str, Any]:
    return {"dataset": read_json(dataset.path / "audit.json"), "corpus": read_json(corpus.path / "audit.json")}


def _publish_to_prefect(board: dict[str, Any]) -> None:
    from prefect.artifacts import create_markdown_artifact

    lines = ["| rung | accuracy | 95 % interval | train s | parameters | texts/s |", "|---|---|---|---|---|---|"]
    for row in sorted(board["rows"], key=lambda row: -row["mean"]):
        interval = f"{row['low']:.3f} – {row['high']:.3f}"
        cost = f"{row['train_seconds']:.0f} | {row['num_parameters']:,} | {row['items_per_second']:,.0f}"
        lines.append(f"| {row['rung']} | {row['mean']:.3f} | {interval} | {cost} |")
    lines.append(f"\nMLflow run `{board['run_id']}` in experiment `ladders`.")
    create_markdown_artifact("\n".join(lines), key="leaderboard", description="Leaderboard of this ladder")


def print_leaderboard(board: dict[str, Any]) -> None:
    """Print the leaderboard as a table, best first."""
    from rich.table import Table

    title = f"Leaderboard · run {board['run_id'][:8]}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("rung", no_wrap=True)
    for name in (METRIC, "95 % interval", "seeds", "train s", "parameters", "texts/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(board["rows"], key=lambda row: -row["mean"]):
        table.add_row(
            row["rung"],
            f"{row['mean']:.3f}",
            f"{row['low']:.3f}–{row['high']:.3f}",
            str(row["num_seeds"]),
            f"{row['train_seconds']:,.1f}",
            _short(row["num_parameters"]),
            f"{row['items_per_second']:,.0f}",
        )
    console.print(table)


def _short(count: float) -> str:
    """A count in three digits: 15.4k, 2.48M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.3g}{unit}"
    return f"{count:.0f}"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy with its interval per rung, beside what it costs to train."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    ordered = sorted(rows, key=lambda row: row["mean"])
    names, means = [row["rung"] for row in ordered], [row["mean"] for row in ordered]
    below, above = [row["mean"] - row["low"] for row in ordered], [row["high"] - row["mean"] for row in ordered]
    figure, (scores, costs) = pyplot.subplots(
        1, 2, figsize=(10, 0.42 * len(rows) + 1.6), sharey=True, layout="constrained"
    )
    scores.errorbar(
        means, names, xerr=[below, above], fmt="o", color="#0b6e99", ecolor="#8cc3d9", elinewidth=4, capsize=0
    )
    scores.set_xlabel(f"test {METRIC}, mean over seeds with 95 % interval")
    costs.barh(names, [row["train_seconds"] for row in ordered], color="#c9cdd2")
    costs.set_xscale("log")
    costs.set_xlabel("seconds to train (encoder + fine-tuning), log scale")
    for axis in (scores, costs):
        axis.grid(axis="x", color="#e6e8eb", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    pyplot.close(figure)


def render_html(board: dict[str, Any], clean: list[dict[str, Any]]) -> str:
    """The leaderboard as one self-contained page."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("flows", "templates"), autoescape=True)
    by_rung = {row["rung"]: row for row in clean}
    rows = [{**row, "clean": by_rung[row["rung"]]} for row in sorted(board["rows"], key=lambda row: -row["mean"])]
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    return environment.get_template("leaderboard.html").render(
        run_id=board["run_id"], rows=rows, metric=METRIC, low=low, span=(high - low) or 1.0
    )
