"""What the terminal shows while stages run: a bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(highlight=False, soft_wrap=True)
_LOG_EVERY_SECONDS = 15.0
_SHOWN = ("loss", "perplexity", "mlm_loss", "nsp_accuracy", "val_accuracy", "tokens_per_second", "words_per_second")


class StageProgress:
    """Shows one running stage: its title, how far it is, and the metrics worth watching."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._next_line = time.monotonic() + _LOG_EVERY_SECONDS
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> StageProgress:
        if console.is_terminal:
            columns = (TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
            times = (TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, *times, TextColumn("{task.fields[note]}"), console=console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=1.0, note="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, metrics: Mapping[str, float]) -> None:
        """Show new metrics; ``progress`` moves the bar."""
        note = "  ".join(f"{name} {metrics[name]:.4g}" for name in _SHOWN if name in metrics)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=metrics.get("progress"), note=note)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LOG_EVERY_SECONDS
            share = f" {metrics['progress']:.0%}" if "progress" in metrics else ""
            console.print(f"  {self._title}:{share} after {time.monotonic() - self._started:.0f} s  {note}")


def say(state: str, title: str, detail: str = "") -> None:
    """Print one line about a stage: what happened, which stage, and a detail."""
    style = {"reused": "cyan", "ran": "green", "failed": "red", "changed": "yellow"}.get(state, "")
    console.print(
        f"[{style}]{state:>8}[/]  {title}  [dim]{detail}[/dim]" if style else f"{state:>8}  {title}  {detail}"
    )
