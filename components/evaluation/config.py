"""Settings of evaluation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig
from components.examples import TaskName

MAIN_METRIC: dict[TaskName, str] = {
    "classification": "accuracy",
    "ner": "entity_f1",
    "question_answering": "f1",
}
"""The one metric of each task that rungs are compared by."""


class EvaluationConfig(StageConfig):
    """How predictions are scored, and how the scores' uncertainty is estimated; the data set says for which task."""

    language: Literal["zh", "en"] = "zh"
    """Whose definition of exact match and F1 scores an answer: CMRC 2018's (zh) or SQuAD's (en)."""
    num_resamples: int = Field(2000, ge=100, le=1_000_000)
    """Bootstrap resamples of the test items behind each interval."""
    confidence_level: float = Field(0.95, gt=0.5, lt=1)
    """Probability that an interval is meant to cover."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of the resampling."""
