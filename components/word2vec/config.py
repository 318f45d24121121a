"""Settings of Word2Vec training, in gensim's words."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.contract import StageConfig


class Word2VecConfig(StageConfig):
    """How word vectors are trained (Mikolov et al. 2013)."""

    sg: Literal[0, 1] = 1
    """0: CBOW predicts a word from the mean of its window. 1: skip-gram predicts each word of the window."""
    vector_size: int = Field(default=100, ge=1)
    """Numbers per vector."""
    window: int = Field(default=5, ge=1)
    """Words looked at on each side; gensim draws the actual number per word from 1 to this."""
    negative: int = Field(default=5, ge=1)
    """Noise words per true pair in negative sampling."""
    ns_exponent: float = Field(default=0.75, ge=0, le=1)
    """Noise words are drawn by count to this power."""
    min_count: int = Field(default=3, ge=1)
    """Occurrences a word must have in the training split."""
    sample: float = Field(default=1e-4, ge=0, le=1)
    """Frequent words above this share are dropped at random while training; 0 keeps all."""
    epochs: int = Field(default=5, ge=1)
    """Passes over the corpus."""
    alpha: float | None = Field(default=None, gt=0)
    """First learning rate; it falls linearly to min_alpha. Empty: 0.05 for CBOW and 0.025 for skip-gram, as in
    the original word2vec tool."""
    min_alpha: float = Field(default=1e-4, gt=0)
    """Last learning rate."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Initialisation, window and noise draws."""
    workers: int = Field(default=1, ge=1, le=64)
    """Training threads. One gives the same bytes every time; more are faster and not reproducible."""
    units: Literal["words", "pieces"] = "words"
    """words: the segmented corpus. pieces: WordPiece tokens, for starting BERT's embeddings from them."""
    oov_policy: Literal["characters", "skip"] = "characters"
    """What an unknown word counts as when a text is encoded: its known characters, or nothing."""
    max_memory_mib: int = Field(default=2048, ge=1)
    """Refuse to train when the two weight tables would be larger than this, in MiB."""
