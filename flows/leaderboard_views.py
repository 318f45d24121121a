"""The leaderboard to look at: on the terminal, in Prefect, as a picture and as a page; a section per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.progress import console

Row = dict[str, Any]
Texts = Mapping[Any, Sequence[str]]
"""Sentences by task."""
NUM_SENTENCES = 2
"""The best rung, and the one to use; the report has the others."""


def by_task(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows of each task, best first; tasks in the order of the ladder."""
    tasks = {task: [row for row in rows if row["task"] == task] for task in dict.fromkeys(row["task"] for row in rows)}
    return {task: sorted(found, key=lambda row: -row["mean"]) for task, found in tasks.items()}


def task_title(task: str) -> str:
    """A task's name in plain words."""
    return {"ner": "named-entity recognition"}.get(task, task.replace("_", " "))


def publish_to_prefect(board: dict[str, Any], verdicts: Texts) -> None:
    """Show the leaderboard, the verdict of each task above it, as an artifact of the flow run."""
    from prefect.artifacts import create_markdown_artifact

    lines = []
    for task, rows in by_task(board["rows"]).items():
        lines += [
            f"\n## {task_title(task).capitalize()}\n",
            *(f"{text}\n" for text in verdicts[task][:NUM_SENTENCES]),
            f"| rung | {rows[0]['metric']} | 95 % interval | train s | parameters | items/s |",
            "|---|---|---|---|---|---|",
        ]
        for row in rows:
            interval = f"{row['low']:.3f} – {row['high']:.3f}"
            cost = f"{row['train_seconds']:.0f} | {row['num_parameters']:,} | {row['items_per_second']:,.0f}"
            lines.append(f"| {row['rung']} | {row['mean']:.3f} | {interval} | {cost} |")
    lines.append(f"\nMLflow run `{board['run_id']}` in experiment `ladders`.")
    create_markdown_artifact("\n".join(lines), key="leaderboard", description="Leaderboard of this ladder")


def print_leaderboard(board: dict[str, Any], verdicts: Texts) -> None:
    """Print a table per task, best rung first, and the verdict below it."""
    from rich.table import Table

    for task, rows in by_task(board["rows"]).items():
        title = f"{task_title(task).capitalize()} · run {board['run_id'][:8]}"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        table.add_column("rung", no_wrap=True)
        for name in (rows[0]["metric"], "95 % interval", "seeds", "train s", "parameters", "items/s"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
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
        for text in verdicts.get(task, ())[:NUM_SENTENCES]:
            console.print(text, markup=False, highlight=False)
        console.print()


def _short(count: float) -> str:
    """A count in three digits: 15.4k, 2.48M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.3g}{unit}"
    return f"{count:.0f}"


def draw(rows: list[Row], path: Path) -> None:
    """Draw each task's score with its interval per rung, beside what it costs to train."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    tasks = by_task(rows)
    heights = [0.42 * len(found) + 1.3 for found in tasks.values()]
    figure = pyplot.figure(figsize=(10, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tasks), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, (task, found) in zip(parts, tasks.items(), strict=True):
        part.suptitle(task_title(task), fontsize=11, fontweight="bold", x=0.01, ha="left")
        _draw_task(part, found[::-1])
    figure.savefig(path, dpi=150, metadata={"Software": None})
    pyplot.close(figure)


def _draw_task(figure: Any, rows: list[Row]) -> None:
    scores, costs = figure.subplots(1, 2, sharey=True)
    names, means = [row["rung"] for row in rows], [row["mean"] for row in rows]
    below, above = [row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]
    style = {"fmt": "o", "color": "#0b6e99", "ecolor": "#8cc3d9", "elinewidth": 4, "capsize": 0}
    scores.errorbar(means, names, xerr=[below, above], **style)
    scores.set_xlabel(f"test {rows[0]['metric']}, mean over seeds with 95 % interval")
    costs.barh(names, [row["train_seconds"] for row in rows], color="#c9cdd2")
    costs.set_xscale("log")
    costs.set_xlabel("seconds to train (encoder + fine-tuning), log scale")
    for axis in (scores, costs):
        axis.grid(axis="x", color="#e6e8eb", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)


def render_html(board: dict[str, Any], clean: list[Row]) -> str:
    """The leaderboard as one self-contained page."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("flows", "templates"), autoescape=True)
    unleaked = {(row["task"], row["rung"]): row for row in clean}
    sections = []
    for task, found in by_task(board["rows"]).items():
        rows = [{**row, "clean": unleaked.get((task, row["rung"]))} for row in found]
        low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
        title = task_title(task).capitalize()
        sections.append(
            {"title": title, "metric": rows[0]["metric"], "rows": rows, "low": low, "span": high - low or 1}
        )
    return environment.get_template("leaderboard.html").render(run_id=board["run_id"], sections=sections)
