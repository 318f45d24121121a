"""Who may compute when: the cores of this machine, handed to stages by priority, and results that are made once."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from components.artifacts import Artifact
from components.errors import ConfigError


class Stopped(KeyboardInterrupt):
    """The whole execution ends: a stage that waits or runs gives up, through no fault of its own."""


class Slots:
    """Cores, handed out by priority.

    The smallest priority is served first, equal ones in order of arrival. A stage that wants more cores than are free
    keeps those behind it waiting, or it would never get them.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._queue: list[tuple[int, int]] = []
        self._arrivals = itertools.count()
        self._changed = threading.Condition()
        self._closed = False

    @contextlib.contextmanager
    def hold(self, wanted: int, priority: int) -> Iterator[None]:
        """Hold ``wanted`` cores, at most all, for a block.

        Raises:
            Stopped: The slots were closed meanwhile.
        """
        wanted = min(wanted, self.total)
        self._take(wanted, (priority, next(self._arrivals)))
        try:
            yield
        finally:
            with self._changed:
                self._free += wanted
                self._changed.notify_all()

    def _take(self, wanted: int, ticket: tuple[int, int]) -> None:
        with self._changed:
            heapq.heappush(self._queue, ticket)
            self._changed.wait_for(lambda: self._closed or (self._queue[0] == ticket and self._free >= wanted))
            if self._closed:
                raise Stopped
            heapq.heappop(self._queue)
            self._free -= wanted
            self._changed.notify_all()

    def close(self) -> None:
        """Turn everyone away who waits or comes later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class SharedResults:
    """Artifacts of one execution by key: rungs that share a stage make it once and wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: dict[str, Future[Artifact]] = {}

    def get(self, key: str, make: Callable[[], Artifact]) -> Artifact:
        """The artifact of ``key``: made now by the first who asks, its error shared by all who do."""
        with self._lock:
            first = key not in self._futures
            future = self._futures.setdefault(key, Future())
        if first:
            try:
                future.set_result(make())
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()


def num_workers() -> int:
    """Stages that may run at once: one a core, and one alone where they would share a GPU.

    ``RUNGS_WORKERS`` overrides it, as a property of the machine.

    Raises:
        ConfigError: ``RUNGS_WORKERS`` is no whole number above 0.
    """
    given = os.environ.get("RUNGS_WORKERS", "")
    if not given:
        on_gpu = Path("/proc/driver/nvidia/gpus").exists() and os.environ.get("RUNGS_DEVICE", "cuda") != "cpu"
        return 1 if on_gpu else num_cores()
    if not given.isdecimal() or int(given) < 1:
        raise ConfigError(f"RUNGS_WORKERS={given!r} is no number of processes. Remedy: unset it, or set 1 or more.")
    return int(given)


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
