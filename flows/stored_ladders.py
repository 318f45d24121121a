"""Finding a finished ladder in MLflow, and reading what it logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.errors import InputError
from flows.environment import Home
from flows.mlflow_runs import open_tracking


def find_stored(home: Home, run: str | None) -> str:
    """Id of the newest finished ladder, or of the one whose id begins with ``run``.

    Raises:
        InputError: There is none, or several ids begin like that.
    """
    client = open_tracking(home)
    experiment = client.get_experiment_by_name("ladders")
    assert experiment is not None
    found = client.search_runs(
        [experiment.experiment_id],
        "attributes.status = 'FINISHED'",
        order_by=["attributes.start_time DESC"],
        max_results=1000,
    )
    matching: list[str] = [item.info.run_id for item in found if run is None or item.info.run_id.startswith(run)]
    if not matching:
        known = ", ".join(item.info.run_id[:8] for item in found[:5]) or "none yet"
        raise InputError(f"no finished ladder run {run or ''}; newest: {known}", remedy="rungs run quick")
    if run is not None and len(matching) > 1:
        raise InputError(f"{len(matching)} ladder runs begin with {run!r}", remedy="give more of the id")
    return matching[0]


def stored_json(home: Home, run_id: str, name: str) -> dict[str, Any]:
    """A JSON file that a ladder logged.

    Raises:
        InputError: The run has no such file, as one of an older version may not.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        path = mlflow.artifacts.download_artifacts(
            run_id=run_id, artifact_path=name, tracking_uri=home.tracking_uri
        )  # fmt: skip
    except (MlflowException, OSError) as error:
        raise InputError(
            f"ladder run {run_id[:8]} has no {name}", remedy="run the ladder again; stored stages are reused"
        ) from error
    content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return content
