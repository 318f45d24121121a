"""The comparison of rungs on each task: who enters it at what cost, and which pairs isolate an ingredient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field

from components.artifacts import Artifact
from components.contract import StageConfig
from components.errors import ConfigError
from components.evaluation.comparison_config import ComparisonConfig, Control
from flows.encoders import EncoderSettings
from flows.rungs import Rung


class ComparisonSection(StageConfig):
    """What makes one rung better than another, decided before the results are known."""

    primary_view: Literal["all", "never_leaked"] = "all"
    """The view whose verdict counts: all test items, or those that no training text holds a copy of."""
    margin: float = Field(0.05, gt=0, le=1)
    """Most that a cheaper rung may lose against the best one, at the far end of the interval, to be as good."""
    power: float = Field(0.8, gt=0.5, lt=1)
    """Power behind the minimum detectable difference and the number of items needed."""


class ControlPair(StageConfig):
    """Two rungs that differ in one ingredient only, so that their difference is what it adds."""

    model_config = ConfigDict(populate_by_name=True)

    ingredient: str = Field(min_length=1)
    """What the second rung has and the first lacks."""
    without: str
    """Rung that lacks it."""
    with_: str = Field(alias="with")
    """Rung that has it."""
