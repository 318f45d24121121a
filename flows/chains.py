"""Chains: one rung on one task with one seed, the stages that follow each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from components.artifacts import Artifact
from components.examples import TaskName
from flows import stages
from flows.encoders import EncoderTrainer
from flows.label_curve import extra_counts
from flows.plan import LadderSettings
from flows.settings import overridden
from flows.tracking import Ladder

_LONGEST_FIRST = ("bert", "recurrent", "word2vec", "tfidf", "one_hot")


class Chain(NamedTuple):
    """Which rung is trained on which task, from which seed and how many labels."""

    task: TaskName
    rung: str
    seed: int
    num_train_examples: int | None = None
    """Labels of a point of the label curve; None is the task's own number, which the leaderboard shows."""


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
    evaluated: Artifact | None
    """Scores; None for a point of the label curve, which the comparison scores."""
    encoder_seconds: float

    @property
    def train_seconds(self) -> float:
        """What a user waits for who wants only this rung: its encoder, once, and one fine-tuning."""
        return self.finetuned.metrics["train_seconds"] + self.encoder_seconds


def full_chains(settings: LadderSettings) -> list[Chain]:
    """A chain for every rung, task and seed; the longest first, so that no core is left alone with them at the end."""
    rungs = sorted(settings.rungs, key=lambda rung: (_LONGEST_FIRST.index(rung.encoder), not rung.pretrained))
    return [
        Chain(task.name, rung.name, seed) for rung in rungs for task in settings.tasks for seed in settings.seeds
    ]  # fmt: skip


def label_chains(ground: Ground) -> list[Chain]:
    """The chains that the label curve adds."""
    settings, section = ground.settings, ground.settings.label_curve
    if section is None:
        return []
    rungs = {rung.name: rung for rung in settings.rungs}
    counts = {task.name: extra_counts(section, task, ground.datasets[task.name]) for task in settings.tasks}
    return [
        chain._replace(num_train_examples=count)
        for chain in full_chains(settings)
        if section.includes(chain.task, rungs[chain.rung])
        for count in reversed(counts[chain.task])
    ]


def trainer_for(task_name: TaskName, ground: Ground, execution: Ladder) -> EncoderTrainer:
    """Trains encoders for a task of the ladder."""
    settings = ground.settings
    reading = next(task.reading for task in settings.tasks if task.name == task_name)
    dataset = ground.datasets[task_name]
    return EncoderTrainer(execution, settings.encoders, tuple(settings.rungs), ground.corpus, dataset, reading)


def climb_chain(chain: Chain, ground: Ground, execution: Ladder) -> Climbed:
    """Train, fine-tune and evaluate one rung on one task for one seed."""
    settings, dataset = ground.settings, ground.datasets[chain.task]
    task = next(task for task in settings.tasks if task.name == chain.task)
    rung = next(rung for rung in settings.rungs if rung.name == chain.rung)
    tags = {"task": task.name, "rung": rung.name, "seed": str(chain.seed)}
    trainer, config = trainer_for(chain.task, ground, execution), task.finetuning_for(rung, chain.seed)
    if chain.num_train_examples is not None:
        fewer = {"num_train_examples": chain.num_train_examples}
        # Bags of words learn their vocabulary from the same labelled examples.
        trainer, config = replace(trainer, reading=replace(trainer.reading, **fewer)), overridden(config, fewer)
        tags["labels"] = str(chain.num_train_examples)
    encoder = trainer.train(rung, chain.seed)
    finetuned = stages.finetune(execution, config, tags=tags, encoder=encoder.artifact, dataset=dataset)
    if chain.num_train_examples is not None:
        return Climbed(finetuned, None, encoder.train_seconds)
    evaluated = stages.evaluate(execution, settings.evaluation, tags=tags, predictions=finetuned, dataset=dataset)
    return Climbed(finetuned, evaluated, encoder.train_seconds)
