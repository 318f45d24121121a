"""Settings of ``prepare_question_answering``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.datasets.packages import package_files
from components.text.conversion import ScriptConversion


class ClozeRules(StageConfig):
    """How cloze questions are built from articles whose names are marked."""

    min_passage_chars: int = Field(default=80, ge=20)
    """Shortest passage, in characters."""
    max_passage_chars: int = Field(default=300, ge=50)
    """Longest passage: sentences next to the one that is asked about, as many as fit."""
    min_question_chars: int = Field(default=8, ge=2)
    """A shorter clause takes in its neighbours, within the sentence."""
    max_question_chars: int = Field(default=40, ge=8)
    """A longer clause gives no question."""
    min_shared_words: int = Field(default=1, ge=0)
    """Content words that the question must share with a sentence of the passage that holds the answer."""
    min_candidates: int = Field(default=2, ge=2)
    """Different names of the asked type that the passage must hold, the answer among them."""
    max_match_chars: int = Field(default=2, ge=0)
    """Most characters directly beside an occurrence of the answer that are also directly beside the question word."""
    frequent_answer_share: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share kept of the questions whose answer is the most frequent name of its type in the passage: with all of them,
    counting names answers most questions."""


class QuestionAnsweringDatasetConfig(StageConfig):
    """Where questions over passages come from, and how they become train, validation and test."""

    source: Literal["package", "files", "hub"] = "package"
    """package: cloze questions built from data an installed package ships; files: your own SQuAD-shaped JSON; hub: a
    data set id or folder for `datasets` with SQuAD's columns."""
    package: Literal["people_daily_cloze"] = "people_daily_cloze"
    """Package data to use when source is package."""
    cloze: ClozeRules = ClozeRules()
    """How questions are built when source is package."""

    train: str | None = None
    """Training file (SQuAD 1.1 or 2.0 JSON, as CMRC-2018 and DRCD have it, also .gz) when source is files."""
    validation: str | None = None
    """Validation file; absent, validation articles are split off the training file."""
    test: str | None = None
    """Test file; absent, test articles are split off the training file."""
    encoding: str = "utf-8"
    """Character encoding of the files; decoded strictly."""

    hub_id: str | None = None
    """Data set id on the hub, or a local folder, when source is hub."""
    hub_config: str | None = None
    """Configuration (subset) of the hub data set."""
    revision: str | None = None
    """Commit or tag of the hub data set; required for an id, so that the same settings mean the same data."""
    train_split: str = "train"
    """Name of the hub split to train on."""
    validation_split: str | None = None
    """Name of the hub split for validation; absent, validation articles are split off the training split."""
    test_split: str | None = None
    """Name of the hub split for testing; absent, test articles are split off the training split."""

    misaligned: Literal["repair", "stop", "skip_answer"] = "repair"
    """An answer that is not where its offset says: repair moves it to the one place it can mean, and keeps it for
    scoring only where there is none; stop refuses the data; skip_answer drops the answer."""
    inconsistent: Literal["stop", "drop"] = "stop"
    """An empty answer, answers to a question marked impossible, or none to one that is not: refuse, or drop and count
    the answer or question."""
    opencc: ScriptConversion = "none"
    """Script conversion of passages, questions and answers: t2s makes Traditional Chinese Simplified."""
    split_by: Literal["article", "paragraph"] = "article"
    """What stays together when splits are made here: whole articles, or single passages."""
    test_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of articles (or passages) that go to test where no test data is given."""
    validation_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of articles (or passages) that go to validation where no validation data is given."""
    num_validation_examples: int | None = Field(default=None, ge=1)
    """At most this many validation questions, chosen by hash; the rest is dropped and counted."""
    num_test_examples: int | None = Field(default=None, ge=1)
    """At most this many test questions, chosen by hash; the rest is dropped and counted."""
    seed: int = Field(default=0, ge=0)
    """Seed of the splits."""

    @model_validator(mode="after")
    def _check_source(self) -> QuestionAnsweringDatasetConfig:
        if self.source == "files" and self.train is None:
            raise ValueError("source 'files' needs train: the path of the training file")
        if self.source == "hub" and self.hub_id is None:
            raise ValueError("source 'hub' needs hub_id: a data set id or a local folder")
        if self.test_fraction + self.validation_fraction >= 1.0:
            raise ValueError(
                f"test_fraction {self.test_fraction} + validation_fraction {self.validation_fraction} "
                "leave nothing for train; their sum must be below 1"
            )
        return self

    def external_files(self) -> list[Path]:
        """Every file the stage reads, so that a changed file is another cache key."""
        if self.source == "package":
            return package_files("people_daily")
        if self.source == "files":
            return [Path(path) for path in (self.train, self.validation, self.test) if path is not None]
        folder = Path(self.hub_id or "")
        paths = sorted(folder.rglob("*")) if folder.is_dir() else []
        hidden = (any(part.startswith(".") for part in path.relative_to(folder).parts) for path in paths)
        return [path for path, skip in zip(paths, hidden, strict=True) if path.is_file() and not skip]
