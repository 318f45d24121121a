"""Settings of the recurrent encoder and its language-model pretraining."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig


class RecurrentConfig(StageConfig):
    """Sizes of a recurrent encoder, its vocabulary, and how it is pretrained."""

    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    """Elman network, long short-term memory, or gated recurrent unit."""
    units: Literal["words", "pieces"] = "words"
    """What the encoder reads: words of a segmented corpus, or all pieces of a tokenizer, which NER and question
    answering need."""
    bidirectional: bool = True
    """Also read from the end; each direction is a stack of its own."""
    hidden_size: int = Field(default=128, ge=1)
    """Units per direction."""
    num_layers: int = Field(default=1, ge=1, le=8)
    """Stacked layers per direction."""
    embedding_size: int = Field(default=100, ge=1)
    """Numbers per word; must equal vector_size when word vectors are given."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of values dropped on embeddings, between layers and on outputs while training, also in fine-tuning."""
    min_count: int = Field(default=3, ge=1)
    """Occurrences a word must have in the training split. Word vectors bring their own vocabulary instead, and
    pieces the tokenizer's."""
    max_vocab_size: int = Field(default=30_000, ge=3)
    """Most vocabulary entries, padding and unknown word included; the most frequent words stay."""
    objective: Literal["none", "language_model"] = "none"
    """none: the initialisation is the result. language_model: predict the next word, each direction for itself."""
    num_train_steps: int = Field(default=500, ge=1)
    """Language-model training steps."""
    batch_size: int = Field(default=64, ge=1)
    """Windows per step."""
    max_seq_length: int = Field(default=32, ge=2)
    """Words per window; all windows have this length, so that nothing is padding."""
    learning_rate: float = Field(default=5e-3, gt=0)
    """Highest learning rate of AdamW; it falls linearly to zero."""
    warmup_steps: int = Field(default=20, ge=0)
    """Steps over which the learning rate rises."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay on matrices."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    num_sampled: int = Field(default=512, ge=0)
    """Noise words of the sampled softmax. 0, or at least the vocabulary's size: the full softmax."""
    tie_weights: bool = True
    """Use the word embeddings as output weights too."""
    checkpoint_every_steps: int = Field(default=200, ge=1)
    """Training steps between checkpoints."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Initialisation, order of windows, dropout, noise words."""
