"""Language-model pretraining of a recurrent encoder, and its perplexity on held-out text."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from components.contract import LogMetrics, Metrics
from components.encoders.recurrent import RecurrentEncoder
from components.errors import InputError
from components.rnn.config import RecurrentConfig
from components.rnn.data import WordIds, window_numbers, write_word_ids
from components.rnn.model import LanguageModel
from components.training import StepLoss, TrainingSettings, choose_device, train

MAX_VALIDATION_WINDOWS = 300


def pretrain_language_model(
    encoder: RecurrentEncoder,
    config: RecurrentConfig,
    *,
    segmented: Path,
    scratch_dir: Path,
    checkpoint_dir: Path | None,
    log_metrics: LogMetrics,
) -> Metrics:
    """Train the encoder in place to predict neighbouring words; leaves it on the CPU.

    Args:
        encoder: Initialised encoder.
        config: Training settings.
        segmented: Segmented corpus; its validation split gives the held-out perplexity.
        scratch_dir: Holds the word ids while this runs; left as it was.
        checkpoint_dir: Where to save and resume; None trains in one go.
        log_metrics: Receives step metrics.

    Raises:
        InputError: The corpus is shorter than one window.
        TrainingError: The loss is not finite, or the disk is full.
    """
    length, device = config.max_seq_length, choose_device()
    with tempfile.TemporaryDirectory(dir=scratch_dir, prefix=".word-ids-") as folder:
        train_ids = write_word_ids(segmented, "train", encoder.vocabulary, Path(folder) / "train.bin")
        _check_length(train_ids, length, segmented)
        model = LanguageModel(encoder, tie_weights=config.tie_weights).to(device)
        num_sampled = config.num_sampled if config.num_sampled < len(encoder.vocabulary) else 0

        def losses_at(step: int) -> Iterator[StepLoss]:
            numbers = window_numbers(step, config.batch_size, train_ids.num_windows(length), config.seed)
            loss = model(train_ids.windows(numbers, length).to(device), num_sampled)
            yield StepLoss(loss, {} if num_sampled else {"perplexity": loss.detach().exp()})

        result = train(model, losses_at, _settings(config), checkpoint_dir=checkpoint_dir, log_metrics=log_metrics)
        metrics = {
            **result.final_metrics,
            "train_seconds": result.seconds,
            "num_train_steps": float(result.num_steps),
            "resumed_from_step": float(result.resumed_from_step),
            "words_per_second": result.num_steps * config.batch_size * length / max(result.seconds, 1e-9),
            "num_sampled": float(num_sampled),
            "num_unused_words": float(len(train_ids.ids) % length),
        }
        held_out_ids = write_word_ids(segmented, "validation", encoder.vocabulary, Path(folder) / "validation.bin")
        metrics |= evaluate_language_model(model, held_out_ids, length, batch_size=config.batch_size)
        metrics |= _unigram_perplexity(train_ids, held_out_ids, len(encoder.vocabulary), length)
    encoder.cpu().eval()
    return metrics


def _check_length(train_ids: WordIds, length: int, segmented: Path) -> None:
    if train_ids.num_windows(length) == 0:
        raise InputError(
            f"the training split has {len(train_ids.ids)} words, less than one window of max_seq_length={length}",
            file=segmented,
            remedy="add text or lower max_seq_length",
        )


def _settings(config: RecurrentConfig) -> TrainingSettings:
    return TrainingSettings(
        num_train_steps=config.num_train_steps,
        learning_rate=config.learning_rate,
        seed=config.seed,
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        checkpoint_every_steps=config.checkpoint_every_steps,
    )


@torch.no_grad()
def evaluate_language_model(model: LanguageModel, ids: WordIds, length: int, *, batch_size: int) -> Metrics:
    """Full-softmax loss on the first windows of a split, at most ``MAX_VALIDATION_WINDOWS``.

    Returns:
        ``val_loss`` in nats per word, ``val_perplexity`` and the number of windows; empty for a split without one.
    """
    num_windows = min(ids.num_windows(length), MAX_VALIDATION_WINDOWS)
    if num_windows == 0:
        return {}
    model.eval()
    device, total = model.output_bias_V.device, 0.0
    for start in range(0, num_windows, batch_size):
        numbers = np.arange(start, min(start + batch_size, num_windows))
        total += float(model(ids.windows(numbers, length).to(device))) * len(numbers)
    loss = total / num_windows
    return {"val_loss": loss, "val_perplexity": math.exp(min(loss, 700.0)), "num_val_windows": float(num_windows)}


def _unigram_perplexity(train_ids: WordIds, held_out_ids: WordIds, vocab_size: int, length: int) -> Metrics:
    """What predicting every word by its training frequency alone would reach on the same windows (add-one smoothed)."""
    num_windows = min(held_out_ids.num_windows(length), MAX_VALIDATION_WINDOWS)
    if num_windows == 0:
        return {}
    counts_V = np.bincount(train_ids.ids, minlength=vocab_size) + 1
    log_probabilities_V = np.log(counts_V / counts_V.sum())
    loss = -log_probabilities_V[held_out_ids.ids[: num_windows * length]].mean()
    return {"unigram_val_loss": float(loss), "unigram_val_perplexity": float(np.exp(loss))}
