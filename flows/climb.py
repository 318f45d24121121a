"""The ladder's way through the stages, task by task and rung by rung."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from components.artifacts import Artifact
from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig
from components.evaluation.config import EvaluationConfig
from components.examples import TaskName
from flows import stages
from flows.encoders import EncoderSettings, EncoderTrainer, check_encoders
from flows.execution import ladder_execution, side_by_side
from flows.leaderboard import RungResult, publish_leaderboard
from flows.rungs import Rung, check_rungs
from flows.tasks import TaskRun
from flows.tracking import Ladder


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
    chains = _chains(settings)
    with ladder_execution(parameters, tags, len(chains)) as (execution, run):
        prepared = side_by_side(execution, [partial(_prepare, task, settings) for task in settings.tasks])
        datasets = {task.name: dataset for task, dataset in zip(settings.tasks, prepared, strict=True)}
        corpus = stages.prepare_corpus(execution, settings.corpus, held_out=tuple(prepared))
        ground = Ground(settings, datasets, corpus)
        climbed = side_by_side(execution, [partial(_climb_chain, chain, ground) for chain in chains])
        results = _by_rung(settings, dict(zip(chains, climbed, strict=True)))
        publish_leaderboard(run, results, datasets=datasets, corpus=corpus, evaluation=settings.evaluation)
    return run.run_id


@dataclass(frozen=True)
class Chain:
    """One rung on one task with one seed: the stages that follow each other."""

    task: TaskName
    rung: str
    seed: int


@dataclass(frozen=True)
class Ground:
    """What every chain starts from."""

    settings: LadderSettings
    datasets: dict[TaskName, Artifact]
    corpus: Artifact


@dataclass(frozen=True)
class Climbed:
    """What a chain ends in."""

    finetuned: Artifact
    evaluated: Artifact
    encoder_seconds: float


def _prepare(task: TaskRun, settings: LadderSettings, execution: Ladder) -> Artifact:
    """A task's labelled data, audited."""
    tagged = {"task": task.name}
    prepared = task.flow.prepare(execution, task.dataset, tags=tagged)
    return stages.audit_leaks(execution, settings.audit, tags=tagged, dataset=prepared)


def _chains(settings: LadderSettings) -> list[Chain]:
    """All chains, those with the longest way to go first, so that no core is left alone with them at the end."""
    rungs = sorted(settings.rungs, key=lambda rung: (_LONGEST_FIRST.index(rung.encoder), not rung.pretrained))
    return [
        Chain(task.name, rung.name, seed) for rung in rungs for task in settings.tasks for seed in settings.seeds
    ]  # fmt: skip


_LONGEST_FIRST = ("bert", "recurrent", "word2vec", "tfidf", "one_hot")


def _climb_chain(chain: Chain, ground: Ground, execution: Ladder) -> Climbed:
    """Train, fine-tune and evaluate one rung on one task for one seed."""
    settings, dataset = ground.settings, ground.datasets[chain.task]
    task = next(task for task in settings.tasks if task.name == chain.task)
    rung = next(rung for rung in settings.rungs if rung.name == chain.rung)
    tags = {"task": task.name, "rung": rung.name, "seed": str(chain.seed)}
    trainer = EncoderTrainer(
        execution, settings.encoders, tuple(settings.rungs), ground.corpus, dataset, task.reading
    )  # fmt: skip
    encoder = trainer.train(rung, chain.seed)
    config = task.finetuning_for(rung, chain.seed)
    finetuned = stages.finetune(execution, config, tags=tags, encoder=encoder.artifact, dataset=dataset)
    evaluated = stages.evaluate(execution, settings.evaluation, tags=tags, predictions=finetuned, dataset=dataset)
    return Climbed(finetuned, evaluated, encoder.train_seconds)


def _by_rung(settings: LadderSettings, climbed: dict[Chain, Climbed]) -> list[RungResult]:
    """The results in the order of the settings, whatever order they came in."""
    results = []
    for task in settings.tasks:
        for rung in settings.rungs:
            ends = [climbed[Chain(task.name, rung.name, seed)] for seed in settings.seeds]
            finetuned, evaluated = tuple(end.finetuned for end in ends), tuple(end.evaluated for end in ends)
            seconds = tuple(end.encoder_seconds for end in ends)
            results.append(RungResult(rung, task.name, finetuned, evaluated, seconds))
    return results
