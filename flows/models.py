"""Fine-tuned models in MLflow: a pyfunc over a folder of safetensors and JSON, logged from code, without pickle."""

from __future__ import annotations

import importlib.metadata
import logging
import warnings
from pathlib import Path

import components
from components.formats import read_json
from flows.fingerprint import reachable_code
from flows.mlflow_runs import RunLog


def log_model(run: RunLog, out_dir: Path) -> None:
    """Log the ``model/`` folder of a fine-tuning result as an MLflow model of ``run``.

    ``mlflow.pyfunc.load_model`` then works offline in a fresh process with
    ``MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false``.
    """
    import mlflow
    from mlflow.models import Model

    logged = run.client.create_logged_model(run.experiment_id, name="model", source_run_id=run.run_id)
    with warnings.catch_warnings(), _quiet("mlflow"):
        warnings.simplefilter("ignore")
        Model.log(
            artifact_path=None,
            name="model",
            flavor=mlflow.pyfunc,
            run_id=run.run_id,
            model_id=logged.model_id,
            python_model=str(Path(__file__).with_name(_model_code(out_dir / "model"))),
            artifacts={"model": str(out_dir / "model")},
            code_paths=[str(Path(components.__file__).parent)],
            pip_requirements=_requirements(),
        )


def _model_code(model_dir: Path) -> str:
    """Which file MLflow runs to load the model: it says in its types what the model reads."""
    facts = read_json(model_dir / "task.json")
    several = facts["task"] == "question_answering" or facts.get("pairs", False)
    return "pyfunc_record_model.py" if several else "pyfunc_text_model.py"


def _requirements() -> list[str]:
    _, libraries = reachable_code("components.finetuning.predict")
    names = sorted({*libraries, "mlflow", "pydantic"})
    return [f"{name}=={importlib.metadata.version(name).split('+')[0]}" for name in names]


class _quiet:
    """Keep a logger's warnings off the terminal for a block."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def __enter__(self) -> None:
        self._level = self._logger.level
        self._logger.setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        self._logger.setLevel(self._level)
