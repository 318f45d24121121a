"""The leaderboard: rows of every rung, read from the verdicts, and the same figures as MLflow metrics."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.artifacts import Artifact
from components.examples import TaskName

View = Literal["all", "never_leaked"]
LEADERBOARD_FILE = "leaderboard.json"
Row = dict[str, Any]
Verdicts = Mapping[TaskName, Mapping[str, Any]]
"""What ``verdict.json`` holds, by task."""

_FIELDS = ("mean", "low", "high", "num_seeds", "train_seconds", "num_parameters", "items_per_second")


@dataclass(frozen=True)
class RungResult:
    """One rung on one task over all seeds."""

    rung: str
    task: TaskName
    finetuned: tuple[Artifact, ...]
    evaluated: tuple[Artifact, ...]


def leaderboard_rows(results: Sequence[RungResult], verdicts: Verdicts, view: View) -> list[Row]:
    """The lines of the leaderboard in the order of the results; none for a task that has no item in the view.

    ``train_seconds`` is what a user waits for who wants only this rung: its encoder, once, and one fine-tuning (mean
    over seeds). ``low`` and ``high`` bound the 95 % interval over seeds and test items.
    """
    found = []
    for result in results:
        verdict = verdicts[result.task]
        for row in verdict["views"].get(view, {}).get("rungs", ()):
            if row["rung"] == result.rung:
                named = {"task": result.task, "rung": result.rung, "metric": verdict["metric"]}
                counts = {"num_parameters": round(row["num_parameters"])}
                found.append({**named, **{name: row[name] for name in _FIELDS}, **counts})
    return found


def ladder_metrics(results: Sequence[RungResult], rows: Sequence[Row], clean: Sequence[Row]) -> dict[str, float]:
    """Scores by metric and rung, ``entity_f1_bert``; costs by task and rung, ``train_seconds_ner_bert``."""
    evaluated = {(result.task, result.rung): result.evaluated for result in results}
    metrics: dict[str, float] = {}
    for row in rows:
        metric, name = row["metric"], row["rung"]
        scores = [artifact.metrics[metric] for artifact in evaluated[row["task"], name]]
        metrics |= {
            f"{metric}_{name}": row["mean"],
            f"{metric}_low_{name}": row["low"],
            f"{metric}_high_{name}": row["high"],
            f"{metric}_sd_{name}": statistics.stdev(scores) if len(scores) > 1 else 0.0,
        }
        costs = {cost: row[cost] for cost in ("train_seconds", "num_parameters", "items_per_second")}
        metrics |= {f"{cost}_{row['task']}_{name}": value for cost, value in costs.items()}
    return metrics | {f"{row['metric']}_clean_{row['rung']}": row["mean"] for row in clean}


def verdict_metrics(verdicts: Verdicts) -> dict[str, float]:
    """How sure the verdicts are, by metric: ``entity_f1_lead``, ``entity_f1_lead_p``, ``entity_f1_detectable``."""
    metrics: dict[str, float] = {}
    for verdict in verdicts.values():
        view, metric = verdict["views"][verdict["primary_view"]], verdict["metric"]
        if view["pairs"]:
            metrics |= {
                f"{metric}_lead": view["pairs"][0]["difference"],
                f"{metric}_lead_p": view["pairs"][0]["p_holm"],
            }
        if view["minimum_detectable_difference"] is not None:
            metrics[f"{metric}_detectable"] = view["minimum_detectable_difference"]
        metrics |= {f"{metric}_gain_{row['with']}": row["difference"] for row in view["controls"]}
    return metrics
