"""What a ladder compares, and how; checked before any stage runs."""

from __future__ import annotations

from dataclasses import dataclass

from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig
from components.evaluation.config import EvaluationConfig
from flows.comparison import ComparisonSection, ControlPair, chosen_controls
from flows.encoders import EncoderSettings, check_encoders
from flows.label_curve import LabelCurveSection
from flows.rungs import Rung, check_rungs
from flows.tasks import TaskRun


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
    controls: list[ControlPair] | None
    label_curve: LabelCurveSection | None
    language: str

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
        chosen_controls(self.controls, self.rungs, self.encoders)
        if self.label_curve is not None:
            self.label_curve.check([rung.name for rung in self.rungs], [task.name for task in self.tasks])
