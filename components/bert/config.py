"""Settings of BERT pretraining."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.errors import ConfigError

Size = Literal["tiny", "mini", "small", "base", "large"]

SIZES: dict[Size, tuple[int, int]] = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Layers and hidden size: Devlin et al. 2019, section 3, and the smaller models of Turc et al. 2019, table 1."""
HEAD_SIZE = 64
"""Width of an attention head in every BERT of both papers."""


class PretrainingConfig(StageConfig):
    """BERT pretraining: masked language modelling and next sentence prediction (Devlin et al. 2019, section 3.1)."""

    size: Size = "tiny"
    """Preset of layers and hidden size; the explicit sizes below override it one by one."""
    num_hidden_layers: int | None = Field(default=None, ge=1)
    """Transformer layers; empty takes the preset's."""
    hidden_size: int | None = Field(default=None, ge=8)
    """Width of the model; empty takes the preset's."""
    num_attention_heads: int | None = Field(default=None, ge=1)
    """Attention heads; empty gives heads of 64."""
    intermediate_size: int | None = Field(default=None, ge=8)
    """Width of the feed-forward layer; empty gives four times `hidden_size`."""
    position_embeddings: Literal["learned", "none"] = "learned"
    """Learned absolute positions, or none at all: then the model sees a bag of tokens (a control)."""
    init_from: str | None = None
    """Continue from this checkpoint, a local folder or hub id, instead of random weights; it then sets all sizes."""
    embedding_std: float = Field(default=0.06, gt=0.0, le=1.0)
    """Standard deviation that warm-started token embeddings are scaled to; 0.04 to 0.08 works."""

    max_seq_length: int = Field(default=128, ge=8, le=4096)
    """Pieces of a row and of the longest sentence pair, special tokens included; also the number of positions."""
    short_seq_probability: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of pairs made shorter than `max_seq_length` on purpose (Devlin et al.'s data creation)."""
    nsp: bool = True
    """Train next sentence prediction beside masked language modelling."""
    masking: Literal["character", "whole_word"] = "character"
    """Mask pieces one by one, or all pieces of a word together (Cui et al. 2021); needs the segmented corpus."""
    mlm_probability: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share of pieces to predict; of these 80 % become [MASK], 10 % a random piece, 10 % stay."""

    num_train_steps: int = Field(default=1000, ge=0)
    """Optimiser steps; 0 writes the initial weights, the control that shows what pretraining adds."""
    max_minutes: float | None = Field(default=None, gt=0.0)
    """Train for this long instead of `num_train_steps`; the result then depends on the machine."""
    batch_size: int = Field(default=64, ge=1)
    """Rows of `max_seq_length` pieces in a step."""
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    """Pieces that a step's batch is worked off in, to save memory; the result stays the same but for rounding."""
    learning_rate: float = Field(default=1e-3, gt=0.0)
    """Peak learning rate of AdamW."""
    warmup_steps: int = Field(default=100, ge=0)
    """Steps of linear warm-up; a linear decay to zero follows."""
    weight_decay: float = Field(default=0.01, ge=0.0)
    """Decoupled weight decay of matrices."""
    max_grad_norm: float = Field(default=1.0, gt=0.0)
    """Gradients are scaled down to this norm."""
    hidden_dropout_prob: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Dropout while pretraining. 0: few passes over the data cannot overfit, and attention takes its fast path."""
    attention_probs_dropout_prob: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Dropout on attention weights while pretraining."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of matrix products; auto takes bfloat16 where the hardware has it. Weights stay float32."""
    num_eval_rows: int = Field(default=512, ge=1)
    """Rows of held-out text to evaluate on, at most."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of initial weights, data order, masks and dropout."""

    @model_validator(mode="after")
    def _check_sizes(self) -> PretrainingConfig:
        sizes = (self.num_hidden_layers, self.hidden_size, self.num_attention_heads, self.intermediate_size)
        if self.init_from is not None and any(size is not None for size in sizes):
            raise ConfigError(f"init_from={self.init_from} sets all sizes. Remedy: leave the explicit sizes empty.")
        hidden_size, heads = self.model_sizes()["hidden_size"], self.model_sizes()["num_attention_heads"]
        if hidden_size % heads:
            raise ConfigError(
                f"hidden_size {hidden_size} is no multiple of num_attention_heads {heads}. "
                f"Remedy: hidden_size {hidden_size - hidden_size % heads or heads}, or other heads."
            )
        if self.batch_size % self.gradient_accumulation_steps:
            raise ConfigError(
                f"batch_size {self.batch_size} is no multiple of "
                f"gradient_accumulation_steps {self.gradient_accumulation_steps}"
            )
        return self

    @property
    def trains(self) -> bool:
        """Whether there is any training: without it the artifact holds the initial weights, the control."""
        return self.num_train_steps > 0 or self.max_minutes is not None

    def model_sizes(self) -> dict[str, int]:
        """The preset with the explicit sizes put in, under the names of ``transformers.BertConfig``."""
        layers, width = SIZES[self.size]
        hidden_size = self.hidden_size or width
        return {
            "num_hidden_layers": self.num_hidden_layers or layers,
            "hidden_size": hidden_size,
            "num_attention_heads": self.num_attention_heads or max(1, hidden_size // HEAD_SIZE),
            "intermediate_size": self.intermediate_size or 4 * hidden_size,
        }

    def external_files(self) -> list[Path]:
        """The local checkpoint that ``init_from`` names, file by file; none for a hub id."""
        folder = Path(self.init_from) if self.init_from else None
        if folder is None or not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if path.is_file())
