"""Settings of the bag-of-words rungs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.errors import ConfigError
from components.text.segmentation import SegmenterConfig

NgramRange = Annotated[tuple[int, int], Field(strict=False)]
"""Shortest and longest n-gram; YAML and JSON spell it as a list of two."""


class BagOfWordsConfig(StageConfig):
    """How labelled texts become one-hot or TF-IDF features."""

    weighting: Literal["one_hot", "tfidf"] = "tfidf"
    """one_hot: a feature is present or not. tfidf: weighed by frequency in the text and rarity across texts."""
    analyzer: Literal["word", "char", "char_wb", "word_char"] = "word"
    """Features: words of the segmenter, character n-grams (char_wb: within words), or words and characters."""
    ngram_range: NgramRange = (1, 1)
    """Shortest and longest word n-gram."""
    char_ngram_range: NgramRange = (1, 3)
    """Shortest and longest character n-gram, for the analyzers that use characters."""
    sublinear_tf: bool = True
    """Use 1 + log(count) for the count of a feature in a text; TF-IDF only."""
    lowercase: bool = True
    """Fold Latin letters to lower case."""
    min_count: int = Field(default=1, ge=1)
    """Training texts a feature must occur in."""
    max_features: int | None = Field(default=None, ge=1)
    """Keep only the most frequent features; empty keeps all."""
    segmenter: SegmenterConfig = SegmenterConfig()
    """The word segmenter."""
    num_train_examples: int | None = Field(default=None, ge=1)
    """Labelled texts the vocabulary may be learned from: the same subset that fine-tuning gets. Empty: all."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Chooses the subset."""

    @model_validator(mode="after")
    def _check_ranges(self) -> BagOfWordsConfig:
        for name in ("ngram_range", "char_ngram_range"):
            low, high = getattr(self, name)
            if not 1 <= low <= high <= 10:
                raise ConfigError(f"{name} is ({low}, {high}); it must satisfy 1 <= shortest <= longest <= 10")
        return self
