"""Fixed vectors as an encoder, and the modules that relate a token to its neighbours.

Legend of shape suffixes: B rows, L tokens of the longest, D vector size, F features of a token, H states of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from components.encoders.recurrent import RecurrentSettings, make_stacks, run_stacks

OFFSETS = (-2, -1, 0, 1, 2)
"""Neighbours that a reader without a recurrent layer sees beside a token (Collobert et al. 2011, section 3.3.1)."""
WINDOW_STATES = 128
"""States of a token after a window of features."""


class WordVectorEncoder(nn.Module):
    """A table of fixed vectors, scaled so that an entry's deviation is about 1."""

    def __init__(self, table_VD: NDArray[np.float32]) -> None:
        super().__init__()
        known = table_VD[np.abs(table_VD).sum(axis=1) > 0]
        scale = float(known.std()) if known.size else 1.0
        weight_VD = torch.from_numpy(table_VD / (scale or 1.0))
        self.embedding = nn.Embedding(len(weight_VD), weight_VD.shape[1], _weight=weight_VD, _freeze=True)

    def forward(self, input_ids_BL: Tensor) -> Tensor:
        """The vectors of ids, shape [B, L, D]."""
        vectors_BLD: Tensor = self.embedding(input_ids_BL)
        return vectors_BLD


def neighbours(values_BLF: Tensor, mask_BL: Tensor, offsets: Sequence[int] = OFFSETS) -> Tensor:
    """Each token's values beside those of its neighbours, zeros beyond the text; shape [B, L, len(offsets) · F]."""
    masked_BLF = values_BLF * mask_BL[..., None]
    reach = max(abs(offset) for offset in offsets)
    padded_BLF = nn.functional.pad(masked_BLF, (0, 0, reach, reach))
    length = values_BLF.shape[1]
    return torch.cat([padded_BLF[:, reach + offset : reach + offset + length] for offset in offsets], dim=-1)


class WindowContext(nn.Module):
    """One layer over a window of features: what stands in for a recurrent layer above fixed vectors."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(input_size * len(OFFSETS), WINDOW_STATES)

    @classmethod
    def make(cls, input_size: int) -> tuple[nn.Module, int]:
        """The module and the size of its states."""
        return cls(input_size), WINDOW_STATES

    def forward(self, values_BLF: Tensor, mask_BL: Tensor) -> Tensor:
        """States, shape [B, L, H]."""
        return torch.relu(self.layer(neighbours(values_BLF, mask_BL)))


class RecurrentContext(nn.Module):
    """One more recurrent layer, of the cell and size of the encoder below."""

    def __init__(self, settings: RecurrentSettings, input_size: int) -> None:
        super().__init__()
        one_layer = RecurrentSettings(settings.cell, settings.bidirectional, settings.hidden_size)
        self.stacks = make_stacks(one_layer, input_size)

    @classmethod
    def make(cls, settings: RecurrentSettings, input_size: int) -> tuple[nn.Module, int]:
        """The module and the size of its states."""
        return cls(settings, input_size), settings.hidden_size * (1 + settings.bidirectional)

    def forward(self, values_BLF: Tensor, mask_BL: Tensor) -> Tensor:
        """States, shape [B, L, H]."""
        return run_stacks(self.stacks, values_BLF, mask_BL.sum(dim=1))[0]
