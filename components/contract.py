"""What a stage looks like: a strict configuration in, files and metrics out.

A stage is a plain function ``(config, *, inputs: Path..., out_dir: Path, log_metrics) -> Metrics``. A stage that
trains for long also takes ``checkpoint_dir``, a folder that survives a kill, so that the same call resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

Metrics = dict[str, float]
"""Final metrics of a stage: short names with underscores, finite values."""

Strings = Annotated[tuple[str, ...], Field(strict=False)]
"""Several strings; YAML and JSON spell them as a list."""


class StageConfig(BaseModel):
    """A frozen, strict configuration: exactly what determines a stage's result, and nothing else.

    A field's docstring becomes its help text in the dashboard's run form. Unknown fields are refused.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    def external_files(self) -> list[Path]:
        """Files outside the store that this configuration reads; their content is part of the cache key."""
        return []


class LogMetrics(Protocol):
    """Receives metrics while a stage runs; the flow layer sends them to the tracking server."""

    def __call__(self, metrics: Mapping[str, float], *, step: int | None = None) -> None:
        """Log ``metrics``; ``step`` is the training step they belong to, if any."""


def ignore_metrics(metrics: Mapping[str, float], *, step: int | None = None) -> None:
    """A ``LogMetrics`` that keeps nothing: the default when a stage is called as a plain function."""
