"""Finding a stored leaderboard in MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.errors import InputError
from flows.environment import Home
from flows.mlflow_runs import open_tracking

_FILE = "leaderboard.json"


def find_leaderboard(home: Home, run: str | None) -> dict[str, Any]:
    """The leaderboard of the newest finished ladder, or of the run whose id begins with ``run``.

    Raises:
        InputError: There is none, or several ids begin like that.
    """
    import mlflow

    client = open_tracking(home)
    experiment = client.get_experiment_by_name("ladders")
    found = client.search_runs(
        [experiment.experiment_id],
        "attributes.status = 'FINISHED'",
        order_by=["attributes.start_time DESC"],
        max_results=1000,
    )
    matching = [item for item in found if run is None or item.info.run_id.startswith(run)]
    if not matching:
        known = ", ".join(item.info.run_id[:8] for item in found[:5]) or "none yet"
        raise InputError(f"no finished ladder run {run or ''}; newest: {known}", remedy="rungs run quick")
    if run is not None and len(matching) > 1:
        raise InputError(f"{len(matching)} ladder runs begin with {run!r}", remedy="give more of the id")
    run_id = matching[0].info.run_id
    path = mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=_FILE, tracking_uri=home.tracking_uri)
    board: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return board
