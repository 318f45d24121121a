"""Where BERT's heads look from a word (Clark et al. 2019, "What does BERT look at?").

Attention shows where information is taken from, not why a prediction is made (Jain & Wallace 2019).

Legend of shape suffixes: L length.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from components.encoders.transformer import load_transformer

LeftOut = Literal["no_token", "no_word", "unknown", "too_long"]
"""Why a sentence cannot be looked at: it has no token at all, none where the word is, none that the encoder knows
there, or more than the encoder has positions."""


@dataclass(frozen=True)
class WordAttention:
    """Attention from one word of a sentence."""

    tokens: tuple[str, ...]
    """Pieces with special tokens."""
    weights: NDArray[np.float64]
    """Shape [layers, heads, L]: the mean over the word's pieces; rows sum to one."""
    places: tuple[int, ...]
    """Where the word's pieces are among the tokens."""

    @property
    def entropy(self) -> float:
        """Mean entropy of the heads, in nats: 0 for heads that look at one piece, log L for heads that look at all."""
        return float(-(self.weights * np.log(np.maximum(self.weights, 1e-12))).sum(-1).mean())


class AttentionReader:
    """A BERT that shows its attention weights."""

    def __init__(self, folder: Path) -> None:
        """Load an encoder folder."""
        loaded = load_transformer(folder)
        self._model, self.tokenizer = loaded.model, loaded.tokenizer
        # The fast kernels never form the weights; the plain ones give the same numbers and show them.
        self._model.set_attn_implementation("eager")
        self.max_length: int = loaded.model.config.max_position_embeddings

    def read(self, text: str, start: int, end: int) -> WordAttention | LeftOut:
        """Attention from ``text[start:end]``, or why there is none to see."""
        encoded = self.tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        offsets = encoded.pop("offset_mapping")[0].tolist()
        ids = encoded["input_ids"][0].tolist()
        rows = [row for row, (low, high) in enumerate(offsets) if low < end and high > start]
        if not rows:
            return "no_word"
        if all(ids[row] == self.tokenizer.unk_token_id for row in rows):
            return "unknown"
        if len(ids) > self.max_length:
            return "too_long"
        with torch.inference_mode():
            found = self._model(**encoded, output_attentions=True).attentions
        weights = torch.stack([layer[0][:, rows].mean(dim=1) for layer in found])
        tokens = tuple(self.tokenizer.convert_ids_to_tokens(ids))
        return WordAttention(tokens, weights.double().numpy(), tuple(rows))
