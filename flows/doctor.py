"""``rungs doctor``: what this installation looks like, what is wrong with it and how to mend it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from packaging.version import Version

from components.errors import RungsError
from flows.environment import Home

Check = Callable[[Home, Path], tuple[str, str | None]]
"""Gives what was found, and the remedy when something is wrong with it."""

MINIMUM_FREE_BYTES = 5_000_000_000


def report(home: Home, pipelines: Path) -> int:
    """Print every check; 0 when all are right, else 1."""
    wrong = 0
    for name, check in _CHECKS.items():
        try:
            found, remedy = check(home, pipelines)
        except (RungsError, OSError, ImportError) as error:
            found, remedy = str(error), "see the message"
        print(
            f"{'ok  ' if remedy is None else 'BAD '} {name:<16} {found}"
            + (f"\n     remedy: {remedy}" if remedy else "")
        )
        wrong += remedy is not None
    return 1 if wrong else 0


def _python(home: Home, pipelines: Path) -> tuple[str, str | None]:
    supported = sys.version_info >= (3, 11)
    return f"Python {platform.python_version()}", None if supported else "install Python 3.11 or newer"


def _packages(home: Home, pipelines: Path) -> tuple[str, str | None]:
    unmet = []
    for requirement in importlib.metadata.requires("rungs") or []:
        match = re.match(r"^([A-Za-z0-9_.-]+)([^;]*)$", requirement)
        if match is None:
            continue
        name, constraint = match[1], match[2]
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            unmet.append(f"{name} missing")
            continue
        if (least := re.search(r">=([0-9.]+)", constraint)) and Version(version) < Version(least[1]):
            unmet.append(f"{name} {version}, needs {constraint}")
    shown = ("torch", "transformers", "gensim", "prefect", "mlflow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in shown)
    return ("; ".join(unmet), "pip install -r requirements.lock") if unmet else (versions, None)


def _pipelines(home: Home, pipelines: Path) -> tuple[str, str | None]:
    from flows.pipelines import load_pipelines

    return f"{pipelines}: {', '.join(load_pipelines(pipelines))}", None


def _store(home: Home, pipelines: Path) -> tuple[str, str | None]:
    free = shutil.disk_usage(home.root).free
    writable = os.access(home.root, os.W_OK)
    count = len(list((home.store.root / "artifacts").glob("*/*"))) if writable else 0
    found = f"{home.root}: {count} artifacts, {free / 1e9:.0f} GB free"
    if not writable:
        return found, f"make {home.root} writable, or set RUNGS_HOME"
    return found, "free some disk space" if free < MINIMUM_FREE_BYTES else None


def _database(home: Home, pipelines: Path) -> tuple[str, str | None]:
    if not home.has_own_database:
        from flows.mlflow_runs import open_tracking

        open_tracking(home)
        return f"{re.sub(r'//[^@/]*@', '//…@', home.tracking_uri)} answers", None
    path = home.root / "mlflow.db"
    if not path.exists():
        return f"{path}: made by the first run", None
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        state = str(error)
    return f"{path}: {state}", None if state == "ok" else f"restore a backup, or move {path} away to start anew"


def _prefect(home: Home, pipelines: Path) -> tuple[str, str | None]:
    url = os.environ.get("PREFECT_API_URL")
    if url is None:
        return "a temporary server per run (PREFECT_API_URL is not set)", None
    import httpx

    try:
        httpx.get(f"{url}/health", timeout=5).raise_for_status()
    except httpx.HTTPError as error:
        return f"{url}: {error}", "start it (prefect server start), or unset PREFECT_API_URL"
    return f"{url} answers", None


def _hardware(home: Home, pipelines: Path) -> tuple[str, str | None]:
    import torch

    from components.training import choose_device, choose_precision

    device = choose_device()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = f"{cores} cores, torch uses {torch.get_num_threads()} threads"
    return f"{threads}, device {device}, precision {choose_precision('auto', device)}", None


_CHECKS: dict[str, Check] = {
    "python": _python,
    "packages": _packages,
    "pipelines": _pipelines,
    "artifact store": _store,
    "tracking": _database,
    "prefect": _prefect,
    "hardware": _hardware,
}
