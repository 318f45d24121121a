"""Gradient training of a head and the encoder below it: every task of the recurrent and BERT rungs, and the readers
over word vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_model, save_model

from components.errors import ConfigError, InputError
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import blocks, read_normalization
from components.finetuning.encoders import LoadedEncoder
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreInputs, check_loaded
from components.finetuning.forward import score_examples
from components.finetuning.loop import Block, train_reader
from components.finetuning.model import TaskModel, freeze, set_hidden_dropout
from components.finetuning.readers import Reader, ReaderInputs
from components.finetuning.rows import Rows
from components.finetuning.tasks import Facts, Task
from components.training import choose_device, seed_everything


@dataclass(frozen=True)
class NeuralFamily:
    """What differs between the neural families, whatever the task."""

    load: Callable[[Path], LoadedEncoder]
    poolings: tuple[str, ...]
    """Poolings it offers; the first is ``auto``."""
    learning_rate: Callable[[int], float]
    """Hidden size to the encoder's learning rate when the configuration names none."""
    num_epochs: int
    """Passes over the examples when the configuration names none."""
    head_factor: float = 1.0
    """How many times faster a fresh head learns than the encoder when the configuration names no rate."""


@dataclass(frozen=True)
class NeuralLearner:
    """How a neural family learns one task."""

    family: NeuralFamily
    settings: Callable[[NeuralFamily, Any], dict[str, Any]]
    """Family and configuration to the facts that the reader is rebuilt with."""
    make_reader: Callable[[ReaderInputs], Reader]
    save: Callable[[TaskModel, FittingInputs, Mapping[str, Any]], None]
    """Write the encoder's files into ``model_dir``; the last argument is the facts."""


def fit_neural(learner: NeuralLearner, inputs: FittingInputs) -> Fitted:
    """Train head and encoder, keep the best validation epoch.

    Args:
        learner: The encoder's family and the task.
        inputs: Encoder, data and settings.

    Raises:
        ConfigError: A setting that the encoder cannot follow.
        InputError: An example that cannot be read, or nothing to learn from.
        TrainingError: The pretrained weights were not loaded, or a loss is not finite.
    """
    family = learner.family
    settings = learner.settings(family, inputs.config)
    seed_everything(inputs.config.seed)
    loaded = family.load(inputs.encoder)
    inputs = replace(inputs, config=_completed(inputs.config, family, loaded.hidden_size))
    check_loaded(inputs.encoder, loaded.report)
    check_length(loaded, inputs.config.max_seq_length)
    facts = {**inputs.facts, **settings}
    reader = _new_reader(learner, loaded, facts, inputs)
    started = time.perf_counter()
    rows, validation = _training_rows(reader, inputs), _validation_blocks(reader, inputs)
    encode_seconds = time.perf_counter() - started
    test_counts = _sum_counts(reader.rows(block) for block in blocks(inputs.data.test, inputs.task.block_size))
    best, seconds = train_reader(reader, inputs, rows, validation)
    best.restore(reader.model)
    reader.model.eval()
    learner.save(reader.model, inputs, facts)
    save_model(reader.model.head, str(inputs.model_dir / HEAD))
    return Fitted(
        loaded.report,
        num_parameters=sum(parameter.numel() for parameter in reader.model.parameters()),
        facts=settings,
        metrics={
            "train_seconds": seconds + encode_seconds,
            "best_epoch": best.epoch,
            "num_rows_train": len(rows.rows),
            **{f"{name}_train" if name in test_counts else name: value for name, value in rows.counts.items()},
            **test_counts,
        },
        unused=rows.unused,
    )


def restore_neural(learner: NeuralLearner, model_dir: Path, facts: Facts, task: Task, batch_size: int) -> ScoreInputs:
    """The scoring function of a saved neural model."""
    loaded = learner.family.load(model_dir)
    check_loaded(model_dir, loaded.report)
    reader = learner.make_reader(ReaderInputs(loaded, facts, read_normalization(model_dir)))
    load_model(reader.model.head, model_dir / HEAD, strict=True)
    reader.model.to(choose_device()).eval()
    return lambda examples: score_examples(reader, examples, batch_size)


def check_length(loaded: LoadedEncoder, max_seq_length: int) -> None:
    """Refuse a length that the encoder has no positions for.

    Raises:
        ConfigError: ``max_seq_length`` is above the encoder's limit.
    """
    if loaded.max_length is not None and max_seq_length > loaded.max_length:
        raise ConfigError(
            f"max_seq_length is {max_seq_length}, the encoder has {loaded.max_length} positions: lower max_seq_length"
        )


def _new_reader(learner: NeuralLearner, loaded: LoadedEncoder, facts: Facts, inputs: FittingInputs) -> Reader:
    config = inputs.config
    set_hidden_dropout(loaded.module, config.dropout)
    freeze(loaded.module, config.freeze)
    smoothing = getattr(config, "label_smoothing", 0.0)
    reader = learner.make_reader(ReaderInputs(loaded, facts, inputs.data.normalization, config.dropout, smoothing))
    reader.model.to(choose_device())
    return reader


def _training_rows(reader: Reader, inputs: FittingInputs) -> Rows:
    rows = reader.training_rows(inputs.data.train)
    if not rows.rows:
        reasons = ", ".join(f"{name} ({len(ids)})" for name, ids in rows.unused.items())
        raise InputError(
            f"none of {len(inputs.data.train)} training examples can be learned from: {reasons or 'no tokens'}",
            remedy="raise max_seq_length or num_train_examples, or use another tokenizer",
        )
    return rows


def _validation_blocks(reader: Reader, inputs: FittingInputs) -> list[Block]:
    return [(block, reader.rows(block)) for block in blocks(inputs.data.validation, inputs.task.block_size)]


def _sum_counts(made: Any) -> dict[str, float]:
    totals: dict[str, float] = {}
    for rows in made:
        for name, value in rows.counts.items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def _completed(config: FinetuningConfig, family: NeuralFamily, hidden_size: int) -> FinetuningConfig:
    """The configuration with the family's values for what it leaves open."""
    rate = family.learning_rate(hidden_size)
    return config.model_copy(
        update={
            "learning_rate": config.learning_rate or rate * family.head_factor,
            "encoder_learning_rate": config.encoder_learning_rate or config.learning_rate or rate,
            "num_epochs": config.num_epochs or family.num_epochs,
        }
    )
