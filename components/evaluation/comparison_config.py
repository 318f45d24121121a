"""Settings of the comparison of rungs on one task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.contract import StageConfig


class Entry(StageConfig):
    """One set of predictions: which rung made it, from which seed and labelled budget, and what that cost."""

    rung: str = Field(min_length=1)
    """Name of the rung."""
    seed: int = Field(ge=0)
    """Seed of the run; equal seeds of two rungs saw the same labelled examples."""
    num_train_examples: int | None = Field(None, ge=1)
    """Labelled examples the run was given; None is the whole training split."""
    train_seconds: float = Field(ge=0)
    """Seconds that a user waits for who wants this rung only: its encoder and one fine-tuning."""
    items_per_second: float = Field(gt=0)
    """Test items predicted per second, text to prediction."""
    num_parameters: int = Field(ge=0)
    """Learned numbers of encoder and head."""
    model_bytes: int = Field(ge=0)
    """Size of the saved model."""


class Control(StageConfig):
    """Two rungs that differ in one ingredient only, so that their difference is what it adds."""

    ingredient: str = Field(min_length=1)
    """What the second rung has and the first lacks, such as pretraining."""
    without: str
    """Rung that lacks it."""
    with_: str
    """Rung that has it."""


class ComparisonConfig(StageConfig):
    """How rungs are compared on one task; ``entries`` stand in the order of the stage's ``predictions``."""

    entries: Annotated[tuple[Entry, ...], Field(strict=False, min_length=1)]
    """Who made each set of predictions."""
    controls: Annotated[tuple[Control, ...], Field(strict=False)] = ()
    """Which pairs of rungs isolate which ingredient."""
    primary_view: Literal["all", "never_leaked"] = "all"
    """The view whose verdict counts, named before the results are known: all test items, or those never leaked."""
    alpha: float = Field(0.05, gt=0, lt=0.5)
    """Two-sided error rate of every test; intervals cover 1 - alpha."""
    margin: float = Field(0.05, gt=0, le=1)
    """Most that a cheaper rung may lose against the best one, at the far end of the interval, to be as good."""
    power: float = Field(0.8, gt=0.5, lt=1)
    """Power behind the minimum detectable difference and the number of items needed."""
    num_resamples: int = Field(2000, ge=100, le=1_000_000)
    """Bootstrap resamples of the test items."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of the resampling."""
    language: Literal["zh", "en"] = "zh"
    """Whose definition scores an answer: CMRC 2018's (zh) or SQuAD's (en)."""
    picture_language: Literal["zh", "en"] = "en"
    """Language of the words in the pictures."""

    @model_validator(mode="after")
    def _entries_are_distinct(self) -> ComparisonConfig:
        runs = [(entry.rung, entry.num_train_examples, entry.seed) for entry in self.entries]
        if repeated := sorted({run for run in runs if runs.count(run) > 1}, key=str):
            rung, budget, seed = repeated[0]
            raise ValueError(f"rung {rung!r} with {budget or 'all'} labels and seed {seed} is there twice")
        known = {entry.rung for entry in self.entries}
        named = {name for control in self.controls for name in (control.without, control.with_)}
        if unknown := sorted(named - known):
            raise ValueError(f"controls name rungs without predictions: {', '.join(unknown)}")
        return self
