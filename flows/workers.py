"""The processes that compute stages for a run; see ``flows/worker.py`` for what happens inside one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from components import errors
from components.contract import LogMetrics, Metrics, StageConfig
from components.errors import InputError, RungsError
from flows.slots import Slots, Stopped, Urgency, num_cores, num_workers

Paths = Mapping[str, Path | tuple[Path, ...]]


class StageCrash(RuntimeError):
    """A stage ended with an error that no user causes; carries the traceback of its process."""


class Workers:
    """Processes for stages and the cores they share. A process is started by the first stage that needs one."""

    def __init__(self, log_path: Path, num_chains: int) -> None:
        """Plan the cores.

        Args:
            log_path: File for what libraries print in the processes.
            num_chains: Sequences of stages that can run side by side; with fewer of them than workers each gets more
                threads.
        """
        at_once = max(1, min(num_workers(), num_chains))
        self.slots = Slots(at_once)
        limit = int(os.environ.get("OMP_NUM_THREADS") or num_cores())
        self._num_threads = max(1, min(limit, num_cores() // at_once))
        self._all_threads = max(1, min(limit, num_cores()))
        self._log_path = log_path
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._lock = threading.Lock()
        self._stopping = False

    @contextlib.contextmanager
    def slot(self, urgency: Urgency, *, all_cores: bool) -> Iterator[None]:
        """Hold the cores of one stage.

        Raises:
            Stopped: The run is ending.
        """
        with self.slots.hold(self.slots.total if all_cores else 1, urgency):
            yield

    def num_threads(self, *, all_cores: bool) -> int:
        """Threads that torch may use in a stage."""
        return self._all_threads if all_cores else self._num_threads

    def run(
        self,
        module: str,
        function: str,
        config: StageConfig,
        paths: Paths,
        num_threads: int,
        log_metrics: LogMetrics,
    ) -> Metrics:
        """Compute one stage in a process of its own; call it inside a ``slot``.

        Raises:
            RungsError: Whatever the stage function raised, of the same class; or the process was killed.
            StageCrash: The stage function failed in a way no user causes.
            Stopped: The run is ending.
        """
        job = {
            "module": module,
            "function": function,
            "config_class": [type(config).__module__, type(config).__qualname__],
            "config": config.model_dump_json(),
            "paths": {name: _as_json(path) for name, path in paths.items()},
            "num_threads": num_threads,
        }
        process = self._take()
        try:
            answer = process.ask(job, log_metrics)
        except BaseException:
            process.kill()
            raise
        if answer is None:
            raise self._unanswered(function, process)
        with self._lock:
            self._idle.append(process)
        return _result(answer)

    def _take(self) -> _Process:
        with self._lock:
            if self._stopping:
                raise Stopped
            if not self._idle:
                self._idle.append(_Process(self._log_path, self._num_threads))
                self._all.append(self._idle[-1])
            return self._idle.pop()

    def _unanswered(self, function: str, process: _Process) -> BaseException:
        code = process.end()
        if self._stopping:
            return Stopped()
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        memory = "; the system kills with signal 9 what needs more memory than there is" if code == -9 else ""
        return RungsError(
            f"the process that computed {function} ended with {reason}{memory}; its log: {self._log_path}"
        )

    def stop(self) -> None:
        """End everything at once: running stages are lost up to their last checkpoint."""
        with self._lock:
            self._stopping = True
        self.slots.close()
        for process in self._all:
            process.kill()

    def close(self) -> None:
        """End the idle processes."""
        self.stop()
        for process in self._all:
            process.end()


def _as_json(path: Path | tuple[Path, ...]) -> str | list[str]:
    return [str(one) for one in path] if isinstance(path, tuple) else str(path)


def _result(answer: dict[str, Any]) -> Metrics:
    if answer["kind"] == "done":
        metrics: Metrics = answer["metrics"]
        return metrics
    if answer["kind"] == "crash":
        raise StageCrash(f"the stage failed in its process:\n{answer['trace']}")
    error: RungsError = getattr(errors, answer["error"])(answer["message"])
    if isinstance(error, InputError):
        # The message already names them.
        error.file, error.line, error.remedy = answer["file"], answer["line"], answer["remedy"]
    raise error


class _Process:
    """One process and the two pipes to it."""

    def __init__(self, log_path: Path, num_threads: int) -> None:
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "flows.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env={**os.environ, "OMP_NUM_THREADS": str(num_threads)},
            )

    def ask(self, job: dict[str, Any], log_metrics: LogMetrics) -> dict[str, Any] | None:
        """Send a job, pass its metrics on while it runs, return its answer; None when the process ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["kind"] != "metrics":
                return message
            log_metrics(message["metrics"], step=message["step"])
        return None

    def kill(self) -> None:
        """End it whatever it does."""
        self._process.kill()

    def end(self) -> int:
        """Wait for it and close the pipes; returns its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        code = self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        return code
