"""What the terminal shows while stages run: a bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(highlight=False, soft_wrap=True)
_LOG_EVERY_SECONDS = 15.0
_SHOWN = ("loss", "perplexity", "mlm_loss", "nsp_accuracy", "val_accuracy", "tokens_per_second", "words_per_second")


class _Bars:
    """One live display for all stages that run at once, there while any of them does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: Progress | None = None
        self._running = 0

    def add(self, title: str) -> TaskID:
        """Show one more bar."""
        with self._lock:
            if self._live is None:
                columns = (TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
                times = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
                self._live = Progress(*columns, *times, console=console, transient=True)
                self._live.start()
            self._running += 1
            return self._live.add_task(title, total=1.0, note="")

    def update(self, bar: TaskID, share: float | None, note: str) -> None:
        """Move a bar."""
        if self._live is not None:
            self._live.update(bar, completed=share, note=note)

    def remove(self, bar: TaskID) -> None:
        """Take a bar away, and with the last one the display."""
        with self._lock:
            self._running -= 1
            if self._live is not None:
                self._live.remove_task(bar)
                if not self._running:
                    self._live.stop()
                    self._live = None


_bars = _Bars()


class StageProgress:
    """Shows one running stage: its title, how far it is, and the metrics worth watching."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._next_line = time.monotonic() + _LOG_EVERY_SECONDS
        self._started = time.monotonic()
        self._bar: TaskID | None = None

    def __enter__(self) -> StageProgress:
        if console.is_terminal:
            self._bar = _bars.add(self._title)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            _bars.remove(self._bar)

    def update(self, metrics: Mapping[str, float]) -> None:
        """Show new metrics; ``progress`` moves the bar."""
        note = "  ".join(f"{name} {metrics[name]:.4g}" for name in _SHOWN if name in metrics)
        if self._bar is not None:
            _bars.update(self._bar, metrics.get("progress"), note)
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
