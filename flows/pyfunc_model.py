"""The code of a logged model: MLflow runs this file when it loads one.

Input: texts, as a list of strings or a table with one column. Output: a table with ``label`` and ``probabilities``
(a JSON object from label to probability), one row a text, in input order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc import PythonModel, PythonModelContext

from components.finetuning.predict import load_predictor


class TextModel(PythonModel):  # type: ignore[misc]
    """A fine-tuned model of any rung."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the model once, for all requests."""
        self._predictor = load_predictor(Path(context.artifacts["model"]))

    def predict(
        self, context: PythonModelContext, model_input: list[str], params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Label every text of ``model_input``."""
        rows = list(self._predictor.stream(model_input))
        probabilities = [json.dumps(row.probabilities, ensure_ascii=False) for row in rows]
        return pd.DataFrame({"label": [row.label for row in rows], "probabilities": probabilities})


mlflow.models.set_model(TextModel())
