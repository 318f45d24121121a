"""The pretraining loss at the places that have a label.

Shape legend: R rows, S pieces of a row, H hidden size, N = R * S, P instances, M pieces to predict, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertForPreTraining

from components.bert.batches import Batch
from components.formats import IGNORE_INDEX
from components.training import StepLoss


@dataclass(frozen=True)
class PretrainingLoss:
    """Sums over a batch; divide by the counts for means."""

    mlm_sum: Tensor
    nsp_sum: Tensor
    num_correct: int
    """Pieces predicted right."""
    num_masked: int
    num_nsp_correct: int
    num_pairs: int


def pretraining_loss(model: BertForPreTraining, batch: Batch, device: torch.device) -> PretrainingLoss:
    """Both losses, with logits only where there is a label.

    The loss and its gradients are those of ``BertForPreTraining.forward`` on the same instances; computing the M rows
    of logits instead of R x S is what makes it fast (Liu et al. 2019's implementation, fairseq, does the same).

    Args:
        model: Model on ``device``.
        batch: Packed rows; every instance is pooled at its own [CLS].
        device: Where to compute.
    """
    hidden_RSH = model.bert(
        input_ids=_to(batch.input_ids, device),
        token_type_ids=_to(batch.token_type_ids, device),
        position_ids=_to(batch.position_ids, device),
        attention_mask=_to(batch.attention_mask, device),
    ).last_hidden_state
    hidden_NH = hidden_RSH.flatten(0, 1)
    labels = batch.labels.reshape(-1)
    masked = np.flatnonzero(labels != IGNORE_INDEX)
    labels_M = _to(labels[masked], device)
    logits_MV = model.cls.predictions(hidden_NH[_to(masked, device)]).float()
    mlm_sum = nn.functional.cross_entropy(logits_MV, labels_M, reduction="sum")
    has_label = batch.next_sentence_labels != IGNORE_INDEX
    labels_P = _to(batch.next_sentence_labels[has_label], device)
    pooler = model.bert.pooler
    pooled_PH = pooler.activation(pooler.dense(hidden_NH[_to(batch.cls_positions[has_label], device)]))
    logits_P2 = model.cls.seq_relationship(pooled_PH).float()
    nsp_sum = nn.functional.cross_entropy(logits_P2, labels_P, reduction="sum")
    return PretrainingLoss(
        mlm_sum,
        nsp_sum,
        int((logits_MV.argmax(-1) == labels_M).sum()),
        len(masked),
        int((logits_P2.argmax(-1) == labels_P).sum()),
        int(has_label.sum()),
    )


def share_of_loss(model: BertForPreTraining, part: Batch, *, whole: Batch, nsp: bool, device: torch.device) -> StepLoss:
    """The loss of some rows on the scale of the whole batch: sums divided by the whole batch's counts.

    Dividing each micro-batch by its own count instead would weight pieces differently, as rows differ in how many
    pieces they predict.
    """
    found = pretraining_loss(model, part, device)
    num_masked = max(int((whole.labels != IGNORE_INDEX).sum()), 1)
    num_pairs = max(int((whole.next_sentence_labels != IGNORE_INDEX).sum()), 1)
    mlm_loss = found.mlm_sum / num_masked
    metrics: dict[str, Tensor | float] = {
        "mlm_loss": mlm_loss.detach(),
        "masked_accuracy": found.num_correct / num_masked,
    }
    loss = mlm_loss
    if nsp:
        nsp_loss = found.nsp_sum / num_pairs
        loss = mlm_loss + nsp_loss
        metrics |= {"nsp_loss": nsp_loss.detach(), "nsp_accuracy": found.num_nsp_correct / num_pairs}
    return StepLoss(loss, metrics, part.documents)


def _to(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
