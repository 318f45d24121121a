"""A process that computes stages, one after the other: jobs come in as JSON lines, metrics and results go out.

Stages run here and not in the process that talks to Prefect and MLflow, so that several run at once, each with its own
random state and threads. The process ends when its input closes: the kernel closes it whenever and however the run
that started it ends.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from components.contract import LogMetrics, Metrics
from components.errors import RungsError


def main() -> None:
    """Answer jobs from standard input on standard output until the input closes."""
    # Whatever a library prints must not get between the answers.
    channel = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    # Ctrl-C reaches the whole process group; the run decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        _send(channel, _answer(json.loads(jobs.get()), _logger(channel)))


def _listen(jobs: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)


def _send(channel: TextIO, message: Mapping[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")


def _logger(channel: TextIO) -> LogMetrics:
    def log_metrics(metrics: Mapping[str, float], *, step: int | None = None) -> None:
        values = {name: float(value) for name, value in metrics.items()}
        _send(channel, {"kind": "metrics", "metrics": values, "step": step})

    return log_metrics


def _answer(job: dict[str, Any], log_metrics: LogMetrics) -> dict[str, Any]:
    try:
        return {"kind": "done", "metrics": _run(job, log_metrics)}
    except RungsError as error:
        details = {name: getattr(error, name, None) for name in ("file", "line", "remedy")}
        return {"kind": "error", "error": type(error).__name__, "message": str(error), **details}
    except Exception:  # noqa: BLE001 (sent to the run, which raises it)
        return {"kind": "crash", "trace": traceback.format_exc()}


def _run(job: dict[str, Any], log_metrics: LogMetrics) -> Metrics:
    config_module, config_name = job["config_class"]
    config = getattr(importlib.import_module(config_module), config_name).model_validate_json(job["config"])
    function = getattr(importlib.import_module(job["module"]), job["function"])
    _use_threads(job["num_threads"])
    paths = {
        name: tuple(map(Path, value)) if isinstance(value, list) else Path(value)
        for name, value in job["paths"].items()
    }
    metrics: Metrics = function(config, **paths, log_metrics=log_metrics)
    return {name: float(value) for name, value in metrics.items()}


def _use_threads(num_threads: int) -> None:
    """Stages that do not import torch compute in one thread, or in as many as their configuration says."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(num_threads)


if __name__ == "__main__":
    main()
