"""The few errors a user can cause; each message carries the value, the limit and the remedy."""

from __future__ import annotations

from pathlib import Path


class RungsError(Exception):
    """Base of the errors that end a run with a message instead of a traceback."""


class InputError(RungsError, ValueError):
    """Input that cannot be used: names file, 1-based line, the value and what to do about it."""

    def __init__(
        self, message: str, *, file: str | Path | None = None, line: int | None = None, remedy: str = ""
    ) -> None:
        place = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(f"{place}{message}" + (f" Remedy: {remedy}" if remedy else ""))
        self.file = None if file is None else str(file)
        self.line = line
        self.remedy = remedy


class ConfigError(RungsError, ValueError):
    """A setting that cannot work, found before any training."""


class ArtifactError(RungsError):
    """An artifact or checkpoint that is incomplete, damaged or of another kind than expected."""


class TrainingError(RungsError):
    """Training that cannot go on: a non-finite loss, a full disk, weights that were not loaded."""
