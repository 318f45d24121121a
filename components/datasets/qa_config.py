"""Settings of ``prepare_question_answering``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig
from components.datasets.source_config import SourceConfig
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


class QuestionAnsweringDatasetConfig(SourceConfig):
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

    @property
    def package_data(self) -> str:
        """As in ``SourceConfig``."""
        return "people_daily"
