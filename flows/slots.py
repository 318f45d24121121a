"""Who may compute when: the cores of this machine, handed to stages by priority, and results that are made once."""

from __future__ import annotations

import contextlib
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


class Urgency:
    """How soon something is needed: the smallest priority of all who wait for it.

    Without this a stage that an unimportant chain asked for first would keep important ones waiting for its turn.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority

    def raise_to(self, priority: int) -> None:
        """Someone else waits too; takes effect when cores are handed out next."""
        self.priority = min(self.priority, priority)


class Slots:
    """Cores, handed out by urgency.

    The smallest priority is served first, equal ones in order of arrival. A stage that wants more cores than are free
    keeps those behind it waiting, or it would never get them.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._queue: list[tuple[Urgency, int]] = []
        self._arrivals = itertools.count()
        self._changed = threading.Condition()
        self._closed = False

    @contextlib.contextmanager
    def hold(self, wanted: int, urgency: Urgency) -> Iterator[None]:
        """Hold ``wanted`` cores, at most all, for a block.

        Raises:
            Stopped: The slots were closed meanwhile.
        """
        wanted = min(wanted, self.total)
        self._take(wanted, (urgency, next(self._arrivals)))
        try:
            yield
        finally:
            with self._changed:
                self._free += wanted
                self._changed.notify_all()

    def _take(self, wanted: int, ticket: tuple[Urgency, int]) -> None:
        with self._changed:
            self._queue.append(ticket)
            self._changed.wait_for(lambda: self._closed or (self._next() is ticket and self._free >= wanted))
            if self._closed:
                raise Stopped
            self._queue.remove(ticket)
            self._free -= wanted
            self._changed.notify_all()

    def _next(self) -> tuple[Urgency, int]:
        return min(self._queue, key=lambda ticket: (ticket[0].priority, ticket[1]))

    def close(self) -> None:
        """Turn everyone away who waits or comes later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class SharedResults:
    """Artifacts of one execution by key: rungs that share a stage make it once and wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: dict[str, tuple[Future[Artifact], Urgency]] = {}

    def get(self, key: str, priority: int, make: Callable[[Urgency], Artifact]) -> Artifact:
        """The artifact of ``key``: made now by the first who asks, its error shared by all who do.

        Args:
            key: Of the artifact.
            priority: Of who asks; the most important one's counts.
            make: Called by the first one, with the urgency that all who ask can raise.
        """
        with self._lock:
            first = key not in self._futures
            future, urgency = self._futures.setdefault(key, (Future(), Urgency(priority)))
            urgency.raise_to(priority)
        if first:
            try:
                future.set_result(make(urgency))
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
