"""Settings of evaluation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig


class EvaluationConfig(StageConfig):
    """What is scored, and how its uncertainty is estimated."""

    task: Literal["classification"] = "classification"
    """Task that the predictions are for."""
    num_resamples: int = Field(2000, ge=100, le=1_000_000)
    """Bootstrap resamples of the test items behind each interval."""
    confidence_level: float = Field(0.95, gt=0.5, lt=1)
    """Probability that an interval is meant to cover."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of the resampling."""
