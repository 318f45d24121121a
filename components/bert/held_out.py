"""Evaluation on held-out text with masks that never change, beside the best predictor that ignores context."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import BertForPreTraining

from components.bert.batches import Batch, make_batch, plan_epoch
from components.bert.data import TokenizedCorpus
from components.bert.model import pretraining_loss
from components.contract import Metrics
from components.encoders.wordpiece import PieceIds
from components.formats import IGNORE_INDEX
from components.training import Precision, autocast

_SEED = 20190524
_ROWS_AT_A_TIME = 32
MLM_PROBABILITY = 0.15
"""The same for every run, so that runs with other masking rates compare."""


@dataclass(frozen=True)
class HeldOut:
    """Fixed batches, the same for every seed and every masking rate with one corpus, tokenizer and row length."""

    batches: tuple[Batch, ...]

    @property
    def labels(self) -> NDArray[np.int64]:
        """All pieces to predict."""
        return np.concatenate([batch.labels[batch.labels != IGNORE_INDEX] for batch in self.batches])


def make_held_out(
    corpus: TokenizedCorpus, pieces: PieceIds, *, max_seq_length: int, nsp: bool, num_eval_rows: int
) -> HeldOut:
    """Draw, pack and mask up to ``num_eval_rows`` rows of the validation split, piece by piece at 15 %."""
    epoch = plan_epoch(corpus, max_seq_length=max_seq_length, short_seq_probability=0.0, nsp=nsp, seed=_SEED, epoch=0)
    # Whatever the run masks, held-out text is masked by single pieces: word boundaries are set aside.
    plain = dataclasses.replace(corpus, starts_word=None)

    def batches() -> Iterator[Batch]:
        rows = epoch.order[:num_eval_rows]
        for start in range(0, len(rows), _ROWS_AT_A_TIME):
            yield make_batch(
                plain,
                epoch,
                rows[start : start + _ROWS_AT_A_TIME],
                pieces,
                row_length=max_seq_length,
                mlm_probability=MLM_PROBABILITY,
                generator=np.random.default_rng([_SEED, start]),
            )

    return HeldOut(tuple(batches()))


def evaluate(
    model: BertForPreTraining, held_out: HeldOut, *, nsp: bool, device: torch.device, precision: Precision
) -> Metrics:
    """Mean losses and accuracies of both tasks.

    Returns:
        ``val_mlm_loss`` in nats per masked piece, ``val_masked_accuracy``, and with NSP ``val_nsp_loss`` and
        ``val_nsp_accuracy``.
    """
    sums = np.zeros(6)
    model.eval()
    with torch.inference_mode(), autocast(device, precision):
        for batch in held_out.batches:
            found = pretraining_loss(model, batch, device)
            sums += (
                float(found.mlm_sum),
                float(found.nsp_sum),
                found.num_correct,
                found.num_masked,
                found.num_nsp_correct,
                found.num_pairs,
            )
    mlm_sum, nsp_sum, correct, masked, nsp_correct, pairs = sums.tolist()
    metrics = {"val_mlm_loss": mlm_sum / masked, "val_masked_accuracy": correct / masked}
    if nsp and pairs:
        metrics |= {"val_nsp_loss": nsp_sum / pairs, "val_nsp_accuracy": nsp_correct / pairs}
    return metrics


def unigram_loss(train_ids: NDArray[np.int32], labels: NDArray[np.int64], vocab_size: int) -> float:
    """Loss of predicting every piece by its frequency in the training text alone: the plateau to get below.

    Args:
        train_ids: Shape [num_tokens], memory-mapped.
        labels: Pieces to predict, shape [M].
        vocab_size: V; counts are smoothed by one each.

    Returns:
        Nats per piece.
    """
    counts = np.ones(vocab_size)
    for start in range(0, len(train_ids), 1 << 20):
        counts += np.bincount(train_ids[start : start + (1 << 20)], minlength=vocab_size)
    return float(-np.log(counts / counts.sum())[labels].mean())
