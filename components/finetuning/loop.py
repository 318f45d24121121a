"""Epochs over rows with the common training loop, validated after each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from components.finetuning.best_epoch import BestEpoch
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import grouped_batches
from components.finetuning.fitting import FittingInputs
from components.finetuning.forward import row_outputs
from components.finetuning.readers import Reader
from components.finetuning.rows import Rows, collate
from components.training import StepLoss, TrainingSettings, autocast, choose_device, choose_precision, train

CHECKPOINT_STEPS = 200
"""Checkpoints are at least this many steps apart, and always at the end of an epoch."""
Block: TypeAlias = tuple[Sequence[Any], Rows]
"""Examples that are decoded together, and their rows."""


def train_reader(
    reader: Reader, inputs: FittingInputs, rows: Rows, validation: Sequence[Block]
) -> tuple[BestEpoch, float]:
    """Train on rows, validate after every epoch; returns the best epoch and the seconds.

    Raises:
        TrainingError: A loss is not finite, or the disk is full.
    """
    config = inputs.config
    steps_per_epoch = math.ceil(len(rows.rows) / config.batch_size)
    settings = _settings(config, steps_per_epoch)
    best = BestEpoch(inputs.checkpoint_dir)

    def on_step(step: int) -> None:
        if step % steps_per_epoch:
            return
        scores = inputs.score_validation(_predictions(reader, inputs, validation))
        epoch = step // steps_per_epoch
        inputs.log_metrics({**{f"val_{name}": value for name, value in scores.items()}, "epoch": epoch}, step=step)
        best.offer(epoch, scores[config.best_epoch_metric], reader.model)
        if step % settings.checkpoint_every_steps == 0:
            best.save()

    result = train(
        reader.model, _losses(reader, inputs, rows, settings), settings,
        checkpoint_dir=inputs.checkpoint_dir, log_metrics=inputs.log_metrics, on_step=on_step,
    )  # fmt: skip
    return best, result.seconds


def _predictions(reader: Reader, inputs: FittingInputs, validation: Sequence[Block]) -> Iterator[Any]:
    for examples, rows in validation:
        outputs = reader.assemble(rows, row_outputs(reader, rows, inputs.config.batch_size))
        yield from inputs.task.decode(examples, outputs, inputs.facts)


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
    reader: Reader, inputs: FittingInputs, rows: Rows, settings: TrainingSettings
) -> Callable[[int], Iterator[StepLoss]]:
    """The loss of any step: its batch follows from seed and step alone."""
    config, device = inputs.config, choose_device()
    lengths = [row.length for row in rows.rows]

    @lru_cache(maxsize=1)
    def batches(epoch: int) -> list[list[int]]:
        return grouped_batches(lengths, config.batch_size, config.seed, epoch)

    steps_per_epoch = len(batches(0))

    def losses_at(step: int) -> Iterator[StepLoss]:
        chosen = [rows.rows[number] for number in batches(step // steps_per_epoch)[step % steps_per_epoch]]
        batch = collate(chosen, reader.pads, device)
        with autocast(device, settings.precision):
            loss = reader.model.loss(reader.model(batch), batch)
        yield StepLoss(loss, row_ids=tuple(inputs.data.train[row.example].id for row in chosen))

    return losses_at
