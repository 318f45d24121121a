"""Where a run keeps its things: artifact store, tracking database, Prefect's own database. One folder, ``.rungs/``.

Every place can be moved: ``RUNGS_HOME`` for the folder, ``MLFLOW_TRACKING_URI`` for a tracking server and
``PREFECT_API_URL`` for a Prefect server. Nothing is written outside the folder unless one of them says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from components.artifacts import Store
from components.errors import ConfigError

# Set before Prefect, MLflow or the Hugging Face libraries are imported: they read them once.
_DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "TOKENIZERS_PARALLELISM": "false",
    # Loaded, missing and unexpected tensors are in load_report.json; a bad set stops the run.
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
}


@dataclass(frozen=True)
class Home:
    """The folder of one installation and what lies in it."""

    root: Path
    tracking_uri: str

    @property
    def store(self) -> Store:
        """The artifact store."""
        return Store(self.root / "store")

    @property
    def has_own_database(self) -> bool:
        """Whether runs are tracked in this folder's SQLite file instead of a server's."""
        return self.tracking_uri == f"sqlite:///{self.root / 'mlflow.db'}"

    @property
    def artifact_location(self) -> Path:
        """Where the embedded tracking store keeps run artifacts."""
        return self.root / "mlartifacts"


def open_home() -> Home:
    """Resolve the places and set the environment defaults that the libraries read on import.

    Raises:
        ConfigError: ``MLFLOW_TRACKING_URI`` is a plain folder, which MLflow 3 refuses as a store.
    """
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    root = Path(os.environ.get("RUNGS_HOME", ".rungs")).resolve()
    root.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PREFECT_HOME", str(root / "prefect"))
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / 'mlflow.db'}"
    if uri.startswith("file:") or "://" not in uri:
        raise ConfigError(
            f"MLFLOW_TRACKING_URI={uri!r} is a folder, and MLflow 3 keeps no runs in folders. "
            f"Remedy: unset it for {root / 'mlflow.db'}, or set sqlite:///PATH or http://HOST:PORT."
        )
    return Home(root, uri)
