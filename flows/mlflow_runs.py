"""MLflow runs by explicit id: created, filled in batches, closed, and closed for those that were killed.

MLflow's active run is thread-local and a thread silently opens a new one, so nothing here uses it.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.artifacts import Artifact, digest_bytes
from components.errors import TrainingError
from flows.environment import Home

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

MAX_PARAM_CHARS = 500
MAX_ARTIFACT_BYTES = 2_000_000
_FLUSH_SECONDS = 2.0
_FLUSH_POINTS = 500
_INPUT_ATTEMPTS = 6
EXPERIMENTS = (
    "ladders", "comparison", "probes", "evaluation", "finetuning", "pretraining", "recurrent", "word2vec",
    "bag_of_words", "data",
)  # fmt: skip


def open_tracking(home: Home) -> MlflowClient:
    """A client for the home's tracking store; creates database and experiments once, under a lock."""
    import mlflow
    from mlflow import MlflowClient

    mlflow.set_tracking_uri(home.tracking_uri)
    with home.store.lock("mlflow-start"):
        client = MlflowClient(home.tracking_uri)
        existing = {experiment.name: experiment for experiment in client.search_experiments(view_type=3)}
        for name in EXPERIMENTS:
            if name not in existing:
                location = (home.artifact_location / name).as_uri() if home.has_own_database else None
                # Without the kind the UI opens its pages for chat applications.
                kind = {"mlflow.experimentKind": "custom_model_development"}
                client.create_experiment(name, artifact_location=location, tags=kind)
            elif existing[name].lifecycle_stage == "deleted":
                client.restore_experiment(existing[name].experiment_id)
    return client


def rounded(value: float) -> float:
    """A final metric as MLflow's narrow columns can show it; artifacts keep every digit. Counts stay whole."""
    if not math.isfinite(value) or value == int(value):
        return value
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value, 1)


class RunLog:
    """One MLflow run. Metrics are buffered, as a single call to the store costs about 11 ms."""

    def __init__(self, client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str]) -> None:
        found = client.get_experiment_by_name(experiment)
        assert found is not None, f"experiment {experiment} was not created"
        self.client = client
        self.experiment_id = found.experiment_id
        owner = {"rungs.pid": str(os.getpid()), "rungs.host": socket.gethostname()}
        run = client.create_run(self.experiment_id, run_name=name, tags={**owner, **tags})
        self.run_id: str = run.info.run_id
        self._points: list[Any] = []
        self._flushed = time.monotonic()

    def metrics(self, metrics: Mapping[str, float], *, step: int | None = None) -> None:
        """Log metrics; those of a ``step`` form a curve.

        Raises:
            TrainingError: A value is NaN or infinite; MLflow would store another number without a word.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        for name, value in metrics.items():
            if not math.isfinite(value):
                raise TrainingError(f"metric {name} is {value} at step {step}: only finite values are logged")
            self._points.append(Metric(name, float(value), now, step or 0))
        if len(self._points) >= _FLUSH_POINTS or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what is buffered."""
        for start in range(0, len(self._points), 1000):
            self.client.log_batch(self.run_id, metrics=self._points[start : start + 1000])
        self._points.clear()
        self._flushed = time.monotonic()

    def params(self, params: Mapping[str, Any]) -> None:
        """Log parameters; a long value becomes an artifact and its hash the parameter, so nothing is cut."""
        from mlflow.entities import Param

        short = []
        for name, value in params.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > MAX_PARAM_CHARS:
                self.client.log_text(self.run_id, text, f"params/{name}.json")
                text = f"sha256:{digest_bytes(text.encode())} (params/{name}.json)"
            short.append(Param(name, text))
        self.client.log_batch(self.run_id, params=short)

    def inputs(self, artifacts: Mapping[str, Iterable[Artifact]]) -> None:
        """Record input data by name and digest, which makes runs on the same data findable.

        Raises:
            MlflowException: The store refuses the inputs.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag

        entries = [
            DatasetInput(
                Dataset(artifact.stage, artifact.digest[:32], "local", json.dumps({"uri": str(artifact.path)})),
                [InputTag("mlflow.data.context", name)],
            )
            for name, several in artifacts.items()
            for artifact in several
        ]
        if entries:
            self._log_inputs(entries)

    def _log_inputs(self, entries: list[DatasetInput]) -> None:
        """The store looks whether a data set is known before it inserts it; another run may insert it in between.

        A second look then finds it, and what was recorded before is not recorded twice.
        """
        from mlflow.exceptions import MlflowException

        for attempt in range(_INPUT_ATTEMPTS):
            try:
                self.client.log_inputs(self.run_id, datasets=entries)
                break
            except MlflowException as error:
                # SQLite: "UNIQUE constraint failed"; PostgreSQL: "violates unique constraint".
                if attempt == _INPUT_ATTEMPTS - 1 or "unique constraint" not in str(error).lower():
                    raise
                time.sleep(0.05 * 2**attempt)

    def files(self, folder: Path) -> None:
        """Copy the small readable files of an artifact (JSON, pictures, text); big ones stay in the store."""
        for path in sorted(folder.iterdir()):
            readable = path.suffix in {".json", ".png", ".html", ".txt", ".md", ".svg"}
            if path.is_file() and readable and path.stat().st_size <= MAX_ARTIFACT_BYTES:
                self.client.log_artifact(self.run_id, str(path))

    def close(self, status: str = "FINISHED") -> None:
        """Send what is buffered and set the final status (FINISHED, FAILED or KILLED)."""
        self.flush()
        self.client.set_terminated(self.run_id, status)


def close_abandoned_runs(client: MlflowClient) -> list[str]:
    """Close runs that still say RUNNING although their process on this machine is gone; returns their ids."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    running = client.search_runs(
        experiments, f"attributes.status = 'RUNNING' and tags.`rungs.host` = '{socket.gethostname()}'"
    )
    closed = []
    for run in running:
        if not Path(f"/proc/{run.data.tags['rungs.pid']}").exists() and Path("/proc").exists():
            client.set_terminated(run.info.run_id, "KILLED")
            closed.append(run.info.run_id)
    return closed
