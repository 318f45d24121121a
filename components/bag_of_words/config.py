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

    units: Literal["words", "pieces"] = "words"
    """words: of the segmenter. pieces: WordPiece tokens, which named-entity recognition and question answering read on
    every rung; needs a tokenizer, and the tokenizer alone decides on letter case."""
    weighting: Literal["one_hot", "tfidf"] = "tfidf"
    """one_hot: a feature is present or not. tfidf: weighed by frequency in the text and rarity across texts."""
    analyzer: Literal["word", "char", "char_wb", "word_char"] = "word"
    """Features: words of the segmenter, character n-grams (char_wb: within words), or words and characters."""
    ngram_range: NgramRange | None = None
    """Shortest and longest n-gram of words or pieces; empty means single words, and pieces with pairs of pieces."""
    char_ngram_range: NgramRange = (1, 3)
    """Shortest and longest character n-gram, for the analyzers that use characters."""
    sublinear_tf: bool = True
    """Use 1 + log(count) for the count of a feature in a text; TF-IDF only."""
    lowercase: bool = True
    """Fold Latin letters of words and characters to lower case."""
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
        for name in ("unit_ngram_range", "char_ngram_range"):
            low, high = getattr(self, name)
            name = name.removeprefix("unit_")
            if not 1 <= low <= high <= 10:
                raise ConfigError(f"{name} is ({low}, {high}); it must satisfy 1 <= shortest <= longest <= 10")
        return self

    @model_validator(mode="after")
    def _check_units(self) -> BagOfWordsConfig:
        if self.units == "pieces" and self.analyzer != "word":
            raise ConfigError(
                f"units='pieces' counts n-grams of pieces, analyzer={self.analyzer!r} counts characters: "
                "set analyzer='word', or units='words'"
            )
        return self

    @property
    def unit_ngram_range(self) -> tuple[int, int]:
        """``ngram_range``, or what it is when empty."""
        if self.ngram_range is not None:
            return self.ngram_range
        return (1, 2) if self.units == "pieces" else (1, 1)
