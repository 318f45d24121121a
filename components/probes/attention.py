"""Where BERT's heads look from a word (Clark et al. 2019, "What does BERT look at?").

Attention shows where information is taken from, not why a prediction is made (Jain & Wallace 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components.encoders.transformer import load_transformer


@dataclass(frozen=True)
class WordAttention:
    """Attention from one word of a sentence."""

    tokens: tuple[str, ...]
    """Pieces with special tokens."""
    weights: NDArray[np.float64]
    """Shape [layers, heads, L]: the mean over the word's pieces; rows sum to one."""


class AttentionReader:
    """A BERT that shows its attention weights."""

    def __init__(self, folder: Path) -> None:
        """Load an encoder folder."""
        loaded = load_transformer(folder)
        self._model, self.tokenizer = loaded.model, loaded.tokenizer
        # The fast kernels never form the weights; the plain ones give the same numbers and show them.
        self._model.set_attn_implementation("eager")
        self.max_length: int = loaded.model.config.max_position_embeddings

    def read(self, text: str, start: int, end: int) -> WordAttention | None:
        """Attention from ``text[start:end]``; None when no piece of the text lies there or the text is too long."""
        encoded = self.tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        offsets = encoded.pop("offset_mapping")[0].tolist()
        rows = [row for row, (low, high) in enumerate(offsets) if low < end and high > start]
        if not rows or len(offsets) > self.max_length:
            return None
        with torch.inference_mode():
            found = self._model(**encoded, output_attentions=True).attentions
        weights = torch.stack([layer[0][:, rows].mean(dim=1) for layer in found])
        tokens = tuple(self.tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist()))
        return WordAttention(tokens, weights.double().numpy())
