"""The ladder's way through the stages, task by task and rung by rung."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.artifacts import Artifact
from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig
from components.evaluation.config import EvaluationConfig
from components.examples import TaskName
from flows import stages
from flows.encoders import EncoderSettings, EncoderTrainer, check_encoders
from flows.execution import ladder_execution
from flows.leaderboard import RungResult, publish_leaderboard
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


def climb(settings: LadderSettings, parameters: dict[str, Any]) -> str:
    """Run every stage that the settings ask for; returns the id of the aggregate MLflow run.

    Args:
        settings: What to compare, already checked against the language.
        parameters: The flow's parameters as JSON values, for the record.

    Raises:
        ConfigError: See ``LadderSettings.check``.
    """
    settings.check()
    tags = {"language": settings.language, "tasks": ",".join(task.name for task in settings.tasks)}
    with ladder_execution(parameters, tags) as (execution, run):
        datasets: dict[TaskName, Artifact] = {}
        for task in settings.tasks:
            tagged = {"task": task.name}
            prepared = task.flow.prepare(execution, task.dataset, tags=tagged)
            datasets[task.name] = stages.audit_leaks(execution, settings.audit, tags=tagged, dataset=prepared)
        corpus = stages.prepare_corpus(execution, settings.corpus, held_out=tuple(datasets.values()))
        results = []
        for task in settings.tasks:
            dataset = datasets[task.name]
            trainer = EncoderTrainer(
                execution, settings.encoders, tuple(settings.rungs), corpus, dataset, task.reading
            )  # fmt: skip
            results += [_climb_rung(rung, task, trainer, settings) for rung in settings.rungs]
        publish_leaderboard(run, results, datasets=datasets, corpus=corpus, evaluation=settings.evaluation)
    return run.run_id


def _climb_rung(rung: Rung, task: TaskRun, trainer: EncoderTrainer, settings: LadderSettings) -> RungResult:
    """Train, fine-tune and evaluate one rung on one task for every seed."""
    execution, dataset = trainer.ladder, trainer.dataset
    finetuned, evaluated, seconds = [], [], []
    for seed in settings.seeds:
        tags = {"task": task.name, "rung": rung.name, "seed": str(seed)}
        encoder = trainer.train(rung, seed)
        config = task.finetuning_for(rung, seed)
        result = stages.finetune(execution, config, tags=tags, encoder=encoder.artifact, dataset=dataset)
        finetuned.append(result)
        evaluated.append(
            stages.evaluate(execution, settings.evaluation, tags=tags, predictions=result, dataset=dataset)
        )
        seconds.append(encoder.train_seconds)
    return RungResult(rung, task.name, tuple(finetuned), tuple(evaluated), tuple(seconds))
