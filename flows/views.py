"""Named views of the MLflow runs table: the right columns, in the right order, for each experiment and task.

MLflow's table shows no metric columns by default. It stores shared views as experiment tags (undocumented in 3.17;
``tests/flows/test_views.py`` notices when a release changes that).
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flows

if TYPE_CHECKING:
    from mlflow import MlflowClient

VIEWS_FILE = Path(flows.__file__).parents[1] / "mlflow" / "views.json"
TAG_PREFIX = "mlflow.sharedViewState."


def named_views(*experiments: str) -> list[dict[str, Any]]:
    """The views of the named experiments, or of all; none where the file is not installed."""
    views: list[dict[str, Any]] = json.loads(VIEWS_FILE.read_text(encoding="utf-8")) if VIEWS_FILE.is_file() else []
    return [view for view in views if not experiments or view["experiment"] in experiments]


def install_views(client: MlflowClient) -> None:
    """Create or update the named views that ``mlflow/views.json`` describes, one tag each."""
    for view in named_views():
        experiment = client.get_experiment_by_name(view["experiment"])
        if experiment is None:
            continue
        tag, value = TAG_PREFIX + view["key"], encode_view(view)
        if experiment.tags.get(tag) != value:
            client.set_experiment_tag(experiment.experiment_id, tag, value)


def encode_view(view: dict[str, Any]) -> str:
    """The tag value for a view, as the MLflow UI stores it: an envelope with the state deflated and base64-encoded."""
    state = json.dumps(view["state"], sort_keys=True, separators=(",", ":"))
    packed = "deflate;" + base64.b64encode(zlib.compress(state.encode())).decode()
    return json.dumps({"name": view["name"], "createdAt": 0, "updatedAt": 0, "state": packed}, ensure_ascii=False)


def view_path(experiment_id: str, key: str) -> str:
    """Path and query of a view below the tracking UI's address."""
    return f"#/experiments/{experiment_id}/runs?viewStateShareKey={key}"
