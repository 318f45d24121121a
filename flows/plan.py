"""What a ladder compares, and how; checked before any stage runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from components.contract import StageConfig
from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig
from components.evaluation.config import EvaluationConfig
from flows.controls import ControlPair, chosen_controls
from flows.encoders import EncoderSettings, check_encoders
from flows.label_curve import LabelCurveSection
from flows.probing import ProbesSection
from flows.rungs import Rung, check_rungs
from flows.tasks import TaskRun


class ComparisonSection(StageConfig):
    """What makes one rung better than another, decided before the results are known."""

    primary_view: Literal["all", "never_leaked"] = "all"
    """The view whose verdict counts: all test items, or those that no training text holds a copy of."""
    margin: float = Field(0.05, gt=0, le=1)
    """Most that a cheaper rung may lose against the best one, at the far end of the interval, to be as good."""
    controls: Annotated[tuple[ControlPair, ...], Field(strict=False)] | None = None
    """Pairs of rungs that isolate an ingredient; empty finds every pair that differs in one only."""
    power: float = Field(0.8, gt=0.5, lt=1)
    """Power behind the minimum detectable difference and the number of items needed."""


class ReportSection(StageConfig):
    """How the report is written."""

    language: Literal["zh", "en"] = "en"
    """Language of its sentences, tables and pictures."""


@dataclass(frozen=True)
class LadderSettings:
    """Everything a ladder compares, and how."""

    rungs: list[Rung]
    seeds: list[int]
    tasks: list[TaskRun]
    encoders: EncoderSettings
    audit: AuditConfig
    corpus: CorpusConfig
    evaluation: EvaluationConfig
    comparison: ComparisonSection
    label_curve: LabelCurveSection | None
    probes: ProbesSection
    report: ReportSection
    language: Literal["zh", "en"]

    def check(self) -> None:
        """Refuse, before any stage runs, what cannot work.

        Raises:
            ConfigError: Rungs, seeds and sections contradict each other.
        """
        check_rungs(self.rungs, self.seeds)
        check_encoders(self.encoders, self.rungs, self.seeds, [task.reading for task in self.tasks])
        for task in self.tasks:
            for rung in self.rungs:
                for seed in self.seeds:
                    task.finetuning_for(rung, seed)
        names = [rung.name for rung in self.rungs]
        chosen_controls(self.comparison.controls, self.rungs, self.encoders)
        self.probes.check(names, self.language)
        if self.label_curve is not None:
            self.label_curve.check(names, [task.name for task in self.tasks])
