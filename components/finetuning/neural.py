"""Gradient training of a head and the encoder below it: the recurrent and BERT rungs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from components.errors import ConfigError
from components.examples import Example
from components.finetuning.best_epoch import BestEpoch
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import grouped_batches
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreTexts, WeightReport, check_loaded
from components.finetuning.model import POOLS, States, TaskModel, freeze, pad_batch, score_rows, set_hidden_dropout
from components.finetuning.tasks import Task
from components.training import (
    StepLoss,
    TrainingSettings,
    autocast,
    choose_device,
    choose_precision,
    seed_everything,
    train,
)

CHECKPOINT_STEPS = 200
"""Checkpoints are at least this many steps apart, and always at the end of an epoch."""


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder module with its way from text to token ids."""

    module: nn.Module
    encode: Callable[[Sequence[str]], list[list[int]]]
    """Texts to token ids without special tokens, not cut."""
    report: WeightReport
    hidden_size: int
    """Size of the text's vector."""
    pad_id: int
    prefix: tuple[int, ...] = ()
    """Ids before every text."""
    suffix: tuple[int, ...] = ()
    """Ids after every text."""
    empty: tuple[int, ...] = ()
    """Ids that stand for a text without tokens."""
    max_length: int | None = None
    """Most tokens the encoder can take, special ones included."""


@dataclass(frozen=True)
class NeuralFamily:
    """What differs between the neural families."""

    load: Callable[[Path], LoadedEncoder]
    states: Callable[[nn.Module, Tensor, Tensor], States]
    """Module, input_ids_BL and lengths_B to states."""
    save: Callable[[TaskModel, FittingInputs, str], None]
    """Write the encoder's files into ``model_dir``; the last argument is the pooling."""
    poolings: tuple[str, ...]
    """Poolings it offers; the first is ``auto``."""
    learning_rate: Callable[[int], float]
    """Hidden size to the learning rate used when the configuration names none."""
    num_epochs: int
    """Passes over the examples when the configuration names none."""


def fit_neural(family: NeuralFamily, inputs: FittingInputs) -> Fitted:
    """Train head and encoder, keep the best validation epoch.

    Args:
        family: The encoder's family.
        inputs: Encoder, data and settings.

    Raises:
        ConfigError: A pooling or length that the encoder cannot do.
        TrainingError: The pretrained weights were not loaded, or a loss is not finite.
    """
    pooling = choose_pooling(family, inputs.config)
    seed_everything(inputs.config.seed)
    loaded = family.load(inputs.encoder)
    inputs = replace(inputs, config=_completed(inputs.config, family, loaded.hidden_size))
    config, data = inputs.config, inputs.data
    check_loaded(inputs.encoder, loaded.report)
    check_length(loaded, config.max_seq_length)
    started = time.perf_counter()
    train_rows, num_truncated_train = encode_texts(loaded, _texts(data.train), config.max_seq_length)
    validation_rows, _ = encode_texts(loaded, _texts(data.validation), config.max_seq_length)
    encode_seconds = time.perf_counter() - started
    _, num_truncated = encode_texts(loaded, _texts(data.test), config.max_seq_length)
    model = _build_model(family, loaded, inputs, pooling)
    best, seconds = _train(model, inputs, loaded.pad_id, (train_rows, validation_rows))
    best.restore(model)
    model.eval()
    family.save(model, inputs, pooling)
    head = {name: tensor.contiguous().cpu() for name, tensor in model.head.state_dict().items()}
    save_file(head, inputs.model_dir / HEAD)
    return Fitted(
        loaded.report,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        facts={"pooling": pooling, "max_seq_length": config.max_seq_length},
        metrics={
            "train_seconds": seconds + encode_seconds, "best_epoch": best.epoch,
            "num_truncated": num_truncated, "num_truncated_train": num_truncated_train,
        },
    )  # fmt: skip


def restore_neural(
    family: NeuralFamily, model_dir: Path, facts: Mapping[str, Any], task: Task, batch_size: int
) -> ScoreTexts:
    """The scoring function of a saved neural model."""
    loaded = family.load(model_dir)
    check_loaded(model_dir, loaded.report)
    head = task.make_head(loaded.hidden_size, len(facts["labels"]), 0.0)
    load_model(head, model_dir / HEAD, strict=True)
    model = TaskModel(loaded.module, family.states, POOLS[facts["pooling"]], head).to(choose_device()).eval()

    def score_texts(texts: Sequence[str]) -> NDArray[np.float64]:
        rows, _ = encode_texts(loaded, texts, facts["max_seq_length"])
        return score_rows(model, rows, loaded.pad_id, batch_size)

    return score_texts


def choose_pooling(family: NeuralFamily, config: FinetuningConfig) -> str:
    """The configured pooling, or the family's own for ``auto``.

    Raises:
        ConfigError: The family has no such pooling.
    """
    if config.pooling == "auto":
        return family.poolings[0]
    if config.pooling not in family.poolings:
        raise ConfigError(
            f"pooling {config.pooling!r} is not one of this encoder's: auto, {', '.join(family.poolings)}"
        )
    return config.pooling


def check_length(loaded: LoadedEncoder, max_seq_length: int) -> None:
    """Refuse a length that the encoder has no positions for.

    Raises:
        ConfigError: ``max_seq_length`` is above the encoder's limit.
    """
    if loaded.max_length is not None and max_seq_length > loaded.max_length:
        raise ConfigError(
            f"max_seq_length is {max_seq_length}, the encoder has {loaded.max_length} positions: lower max_seq_length"
        )


def encode_texts(loaded: LoadedEncoder, texts: Sequence[str], max_seq_length: int) -> tuple[list[list[int]], int]:
    """Token ids of each text with special tokens, cut on the right to ``max_seq_length``, and how many were cut."""
    room = max_seq_length - len(loaded.prefix) - len(loaded.suffix)
    encoded = [ids or list(loaded.empty) for ids in loaded.encode(texts)]
    rows = [[*loaded.prefix, *ids[:room], *loaded.suffix] for ids in encoded]
    return rows, sum(len(ids) > room for ids in encoded)


def _texts(examples: Sequence[Example]) -> list[str]:
    return [example.text for example in examples]


def _build_model(family: NeuralFamily, loaded: LoadedEncoder, inputs: FittingInputs, pooling: str) -> TaskModel:
    head = inputs.task.make_head(loaded.hidden_size, len(inputs.data.labels), inputs.config.dropout)
    set_hidden_dropout(loaded.module, inputs.config.dropout)
    freeze(loaded.module, inputs.config.freeze)
    return TaskModel(loaded.module, family.states, POOLS[pooling], head).to(choose_device())


def _completed(config: FinetuningConfig, family: NeuralFamily, hidden_size: int) -> FinetuningConfig:
    """The configuration with the family's values for what it leaves open."""
    learning_rate = config.learning_rate or family.learning_rate(hidden_size)
    return config.model_copy(
        update={
            "learning_rate": learning_rate,
            "encoder_learning_rate": config.encoder_learning_rate or learning_rate,
            "num_epochs": config.num_epochs or family.num_epochs,
        }
    )


def _settings(config: FinetuningConfig, steps_per_epoch: int) -> TrainingSettings:
    assert config.num_epochs
    assert config.learning_rate
    assert config.encoder_learning_rate
    num_steps = config.num_epochs * steps_per_epoch
    return TrainingSettings(
        num_train_steps=num_steps,
        learning_rate=config.learning_rate,
        seed=config.seed,
        warmup_steps=round(config.warmup_ratio * num_steps),
        weight_decay=config.weight_decay,
        checkpoint_every_steps=steps_per_epoch * math.ceil(CHECKPOINT_STEPS / steps_per_epoch),
        log_every_steps=max(1, steps_per_epoch // 4),
        precision=choose_precision(config.precision, choose_device()),
        learning_rate_scales={"encoder.": config.encoder_learning_rate / config.learning_rate},
    )


def _losses(
    model: TaskModel, inputs: FittingInputs, rows: Sequence[Sequence[int]], pad_id: int, settings: TrainingSettings
) -> Callable[[int], Iterator[StepLoss]]:
    """The loss of any step: its batch follows from seed and step alone."""
    config, examples = inputs.config, inputs.data.train
    targets = torch.from_numpy(inputs.task.encode(examples, inputs.data.labels))
    lengths, device = [len(row) for row in rows], choose_device()

    @lru_cache(maxsize=1)
    def batches(epoch: int) -> list[list[int]]:
        return grouped_batches(lengths, config.batch_size, config.seed, epoch)

    steps_per_epoch = len(batches(0))

    def losses_at(step: int) -> Iterator[StepLoss]:
        chosen = batches(step // steps_per_epoch)[step % steps_per_epoch]
        batch = pad_batch([rows[position] for position in chosen], pad_id, device)
        with autocast(device, settings.precision):
            loss = inputs.task.loss(model(*batch), targets[chosen].to(device), config.label_smoothing)
        yield StepLoss(loss, row_ids=tuple(examples[position].id for position in chosen))

    return losses_at


def _train(
    model: TaskModel,
    inputs: FittingInputs,
    pad_id: int,
    rows: tuple[list[list[int]], list[list[int]]],
) -> tuple[BestEpoch, float]:
    """Train on the first rows, validate on the second after every epoch; returns the best epoch and the seconds."""
    config = inputs.config
    train_rows, validation_rows = rows
    steps_per_epoch = math.ceil(len(train_rows) / config.batch_size)
    settings = _settings(config, steps_per_epoch)
    best = BestEpoch(inputs.checkpoint_dir)

    def on_step(step: int) -> None:
        if step % steps_per_epoch:
            return
        scores = _validate(model, inputs, validation_rows, pad_id)
        epoch = step // steps_per_epoch
        inputs.log_metrics({**{f"val_{name}": value for name, value in scores.items()}, "epoch": epoch}, step=step)
        best.offer(epoch, scores[config.best_epoch_metric], model)
        if step % settings.checkpoint_every_steps == 0:
            best.save()

    result = train(
        model, _losses(model, inputs, train_rows, pad_id, settings), settings,
        checkpoint_dir=inputs.checkpoint_dir, log_metrics=inputs.log_metrics, on_step=on_step,
    )  # fmt: skip
    return best, result.seconds


def _validate(model: TaskModel, inputs: FittingInputs, rows: Sequence[Sequence[int]], pad_id: int) -> dict[str, float]:
    examples = inputs.data.validation
    outputs = score_rows(model, rows, pad_id, inputs.config.batch_size)
    return inputs.task.score(examples, inputs.task.decode([e.id for e in examples], outputs, inputs.data.labels))
