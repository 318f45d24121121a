"""The code of a logged model that reads records of several texts: MLflow runs this file when it loads one.

Input: records, such as ``{"question": …, "text": …}`` or ``{"text": …, "text_pair": …}``. Output: a table,
a row a record: ``answer``, ``start``, ``end`` and more from a reader, ``label``
and ``probabilities`` from a classifier.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc import PythonModel, PythonModelContext

from components.predictions import prediction_columns


class RecordModel(PythonModel):  # type: ignore[misc]
    """A fine-tuned model of any rung."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the model once, for all requests."""
        # MLflow runs this file when it logs a model, too, in a process that needs no torch.
        from components.finetuning.predict import load_predictor

        self._predictor = load_predictor(Path(context.artifacts["model"]))

    def predict(
        self, context: PythonModelContext, model_input: list[dict[str, str]], params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Predict every record of ``model_input``."""
        return pd.DataFrame(prediction_columns(self._predictor.stream(model_input)))


mlflow.models.set_model(RecordModel())
