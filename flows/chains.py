"""Chains: one rung on one task with one seed, the stages that follow each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from components.artifacts import Artifact
from components.examples import TaskName
from flows import stages
from flows.encoders import Encoder, EncoderTrainer
from flows.label_curve import extra_counts
from flows.plan import LadderSettings
from flows.rungs import Rung
from flows.settings import overridden
from flows.tasks import TaskRun
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

    def task(self, chain: Chain) -> TaskRun:
        """The task of a chain."""
        return next(task for task in self.settings.tasks if task.name == chain.task)

    def rung(self, chain: Chain) -> Rung:
        """The rung of a chain."""
        return next(rung for rung in self.settings.rungs if rung.name == chain.rung)


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
    counts = {task.name: extra_counts(section, task, ground.datasets[task.name]) for task in settings.tasks}
    return [
        chain._replace(num_train_examples=count)
        for chain in full_chains(settings)
        if section.includes(chain.task, chain.rung)
        for count in reversed(counts[chain.task])
    ]


def train_encoder(chain: Chain, ground: Ground, execution: Ladder) -> Encoder:
    """The encoder that a chain starts from."""
    settings, reading = ground.settings, ground.task(chain).reading
    if chain.num_train_examples is not None:
        # Bags of words learn their vocabulary from the same labelled examples.
        reading = replace(reading, num_train_examples=chain.num_train_examples, labels=chain.num_train_examples)
    dataset, rungs = ground.datasets[chain.task], tuple(settings.rungs)
    trainer = EncoderTrainer(execution, settings.encoders, rungs, ground.corpus, dataset, reading)
    return trainer.train(ground.rung(chain), chain.seed)


def climb_chain(chain: Chain, ground: Ground, execution: Ladder) -> Climbed:
    """Train, fine-tune and evaluate one rung on one task for one seed."""
    dataset = ground.datasets[chain.task]
    tags = {"task": chain.task, "rung": chain.rung, "seed": str(chain.seed)}
    config = ground.task(chain).finetuning_for(ground.rung(chain), chain.seed)
    if chain.num_train_examples is not None:
        config = overridden(config, {"num_train_examples": chain.num_train_examples})
        tags["labels"] = str(chain.num_train_examples)
    encoder = train_encoder(chain, ground, execution)
    finetuned = stages.finetune(execution, config, tags=tags, encoder=encoder.artifact, dataset=dataset)
    if chain.num_train_examples is not None:
        return Climbed(finetuned, None, encoder.train_seconds)
    evaluation = ground.settings.evaluation
    evaluated = stages.evaluate(execution, evaluation, tags=tags, predictions=finetuned, dataset=dataset)
    return Climbed(finetuned, evaluated, encoder.train_seconds)
