"""A task model: encoder, pooling, head.

Legend of shape suffixes: B texts in a batch, L tokens of the longest text in it, H hidden size, C head outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(frozen=True)
class States:
    """What an encoder says about a batch of texts."""

    hidden_BLH: Tensor
    """One vector per token; anything at padding."""
    summary_BH: Tensor
    """The encoder's own vector of the whole text: BERT's pooled [CLS], the last state of a recurrent encoder."""


Pool = Callable[[States, Tensor], Tensor]
"""States and mask_BL (true at tokens, false at padding) to one vector per text, shape [B, H]."""


def summary_pool(states: States, mask_BL: Tensor) -> Tensor:
    """The encoder's own summary of the text."""
    return states.summary_BH


def mean_pool(states: States, mask_BL: Tensor) -> Tensor:
    """Mean over a text's tokens; padding is left out."""
    masked_BLH = states.hidden_BLH.masked_fill(~mask_BL[..., None], 0.0)
    return masked_BLH.sum(dim=1) / mask_BL.sum(dim=1, keepdim=True)


def max_pool(states: States, mask_BL: Tensor) -> Tensor:
    """Largest value of each dimension over a text's tokens; padding is left out."""
    return states.hidden_BLH.masked_fill(~mask_BL[..., None], float("-inf")).amax(dim=1)


POOLS: dict[str, Pool] = {"cls": summary_pool, "last": summary_pool, "mean": mean_pool, "max": max_pool}


class TaskModel(nn.Module):
    """An encoder with a task's head on the pooled vector of a text."""

    def __init__(
        self, encoder: nn.Module, states: Callable[[nn.Module, Tensor, Tensor], States], pool: Pool, head: nn.Module
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self._states = states
        self._pool = pool

    def forward(self, input_ids_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Head outputs of a batch.

        Args:
            input_ids_BL: Token ids, int64, padded on the right.
            lengths_B: Tokens of each text, int64, at least 1.

        Returns:
            Shape [B, C]; padding and the other texts of the batch have no part in a text's row.
        """
        mask_BL = torch.arange(input_ids_BL.shape[1], device=input_ids_BL.device) < lengths_B[:, None]
        output: Tensor = self.head(self._pool(self._states(self.encoder, input_ids_BL, lengths_B), mask_BL))
        return output


def pad_batch(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids of a batch, shape [B, L], padded on the right, and the lengths, shape [B]; both int64."""
    lengths = [len(row) for row in rows]
    input_ids = np.full((len(rows), max(lengths)), pad_id, dtype=np.int64)
    for number, row in enumerate(rows):
        input_ids[number, : len(row)] = row
    return torch.from_numpy(input_ids).to(device), torch.tensor(lengths, device=device)


@torch.inference_mode()
def score_rows(model: TaskModel, rows: Sequence[Sequence[int]], pad_id: int, batch_size: int) -> NDArray[np.float64]:
    """Head outputs of token id rows in float32 arithmetic, without dropout.

    Rows go through the model sorted by length and content, so that little is padding and the order they come in
    changes not one bit. Which rows come along can change the last bits of a float32 (a matrix product of another
    shape adds up in another order), which is why bfloat16, with 16 fewer bits, is not used here.

    Args:
        model: Model on its device; its training mode is restored.
        rows: N lists of token ids, none empty.
        pad_id: Id to pad with.
        batch_size: Rows per forward pass.

    Returns:
        Shape [N, C].
    """
    device = next(model.parameters()).device
    order = sorted(range(len(rows)), key=lambda number: (len(rows[number]), rows[number]))
    outputs: NDArray[np.float64] | None = None
    was_training = model.training
    model.eval()
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        scores = model(*pad_batch([rows[number] for number in chosen], pad_id, device)).double().cpu().numpy()
        outputs = np.empty((len(rows), *scores.shape[1:])) if outputs is None else outputs
        outputs[chosen] = scores
    model.train(was_training)
    return np.empty((0, 0)) if outputs is None else outputs


def set_hidden_dropout(encoder: nn.Module, dropout: float) -> None:
    """Set dropout on hidden states. Attention weights are left whole: their dropout forces torch's slow kernel."""
    for name, module in encoder.named_modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0 if "attention.self" in name else dropout


def freeze(encoder: nn.Module, part: str) -> None:
    """Exclude parameters from training: ``encoder`` all of it, ``embeddings`` those with it in their name."""
    for name, parameter in encoder.named_parameters():
        if part == "encoder" or (part == "embeddings" and "embedding" in name):
            parameter.requires_grad = False
