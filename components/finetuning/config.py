"""Settings of fine-tuning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig

Pooling = Literal["auto", "cls", "mean", "last", "max"]


class FinetuningConfig(StageConfig):
    """How a task head, and the encoder under it, are fitted to labelled examples.

    Fields that a family of encoders has no use for are left alone by it: the linear families (bag of words, word
    vectors) read ``seed``, ``num_train_examples``, ``C`` and ``best_epoch_metric``.
    """

    task: Literal["classification"] = "classification"
    """Task to fine-tune for."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Chooses the labelled subset, the initial head, dropout and the order of the batches."""
    num_train_examples: int | None = Field(None, ge=2)
    """Labelled budget: the same examples for every rung with the same seed; empty means all of train."""
    unseen_label: Literal["stop", "count_as_wrong"] = "stop"
    """What to do with a validation or test label outside ``labels.json``: refuse, or keep the row, which no model can
    get right."""
    max_seq_length: int = Field(128, ge=4, le=8192)
    """Longest text in the encoder's own tokens, special tokens included; longer texts are cut and counted."""
    num_epochs: int | None = Field(None, ge=1)
    """Passes over the labelled examples, of which the best by validation is kept; empty means the family's: 10 for
    recurrent encoders, 8 for BERT."""
    batch_size: int = Field(16, ge=1)
    """Texts per training step."""
    learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate; empty means the family's: 2e-3 for recurrent encoders, 2e-5 · (768 / hidden_size)² up to 3e-4
    for BERT."""
    encoder_learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate of the encoder below the head; empty means the same as ``learning_rate``."""
    weight_decay: float = Field(0.01, ge=0, le=1)
    """Decoupled weight decay on matrices."""
    warmup_ratio: float = Field(0.1, ge=0, lt=1)
    """Share of all steps in which the learning rate rises to its peak."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout before the head and on the encoder's hidden states (attention weights are left whole)."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target probability spread over all labels."""
    freeze: Literal["none", "embeddings", "encoder"] = "none"
    """Part of the encoder that keeps its pretrained weights."""
    pooling: Pooling = "auto"
    """How token states become one vector: cls (BERT), last (recurrent), mean or max; auto is cls or max."""
    C: float | None = Field(None, gt=0)
    """Inverse regularisation of the logistic regression on the linear families; empty tries 0.01 to 100."""
    best_epoch_metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """Validation metric that decides which epoch, or which C, is kept; the earlier or smaller one wins a tie."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of the training steps; predictions are always made in float32."""
