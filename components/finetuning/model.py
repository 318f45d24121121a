"""What every task model is made of: an encoder's states, pooling, the linear head, dropout and freezing.

Legend of shape suffixes: B rows of a batch, L tokens of the longest, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from components.finetuning.rows import Batch


@dataclass(frozen=True)
class States:
    """What an encoder says about a batch of texts."""

    hidden_BLH: Tensor
    """One vector per token; anything at padding."""
    summary_BH: Tensor
    """The encoder's own vector of the whole text: BERT's pooled [CLS], the last state of a recurrent encoder."""


Encode = Callable[[nn.Module, Tensor, Tensor, Tensor | None], States]
"""Module, input_ids_BL (padded on the right), lengths_B (at least 1) and token_type_ids_BL, where there are two texts
in a row, to states."""
Pool = Callable[[States, Tensor], Tensor]
"""States and mask_BL (true at tokens, false at padding) to one vector per text, shape [B, H]."""


class TaskModel(nn.Module):
    """An encoder with a task's head; parameters below ``encoder.`` are the pretrained ones."""

    encoder: nn.Module
    head: nn.Module

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Mean loss of a batch in nats, from its outputs and targets."""
        raise NotImplementedError


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
INITIALIZER_RANGE = 0.02
"""Standard deviation of a fresh head's weights, as in BERT (Devlin et al. 2019)."""


def make_linear_head(hidden_size: int, num_outputs: int, dropout: float) -> nn.Sequential:
    """Dropout and one linear layer (Devlin et al. 2019, sections 4.1 to 4.3)."""
    linear = nn.Linear(hidden_size, num_outputs)
    nn.init.normal_(linear.weight, std=INITIALIZER_RANGE)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(nn.Dropout(dropout), linear)


def gather_positions(values_BLH: Tensor, positions_BW: Tensor) -> Tensor:
    """The vectors at some positions of each row, shape [B, W, H]."""
    return torch.gather(values_BLH, 1, positions_BW[..., None].expand(-1, -1, values_BLH.shape[-1]))


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
