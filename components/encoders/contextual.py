"""Vectors of words inside their sentences, layer by layer, from an encoder of any family.

Layer 0 is what an encoder knows of a word before it reads the context: one-hot features, Word2Vec's vector, the
embedding table of a recurrent network, BERT's word-piece embeddings without positions. It is static: a word has the
same vector everywhere. Every further layer has read the sentence. A span's vector is the mean over the tokens that
overlap it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from components.encoders.bag_of_words import BagOfWords, load_bag_of_words
from components.encoders.contextual_tokens import (
    Coverage,
    Span,
    Table,
    TokenEncoder,
    Tokens,
    Vectors,
    make_table,
    read_pieces,
    read_units,
)
from components.encoders.static import WordVectors, load_word_vectors
from components.formats import EncoderFamily, read_encoder_card
from components.text.normalization import NormalizationConfig, normalize


class ContextualEncoder(Protocol):
    """An encoder that gives the vectors of spans in context."""

    @property
    def family(self) -> EncoderFamily:
        """Kind of encoder."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers; the first is static, and only the first."""

    @property
    def table(self) -> Table | None:
        """Layer 0 of the whole vocabulary; None for a bag of words, where it is the identity matrix."""

    def span_vectors(self, texts: Sequence[str], spans: Sequence[Span], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """The vector of one span in each of N texts.

        Args:
            texts: N texts.
            spans: Start and end of the span in each, in code points.
            batch_size: Texts a forward pass.

        Returns:
            For every layer an array of shape [N, D], float32, where D may differ between layers. A row is NaN where no
            token overlaps the span, and in layer 0 also where no overlapping token has a vector of its own.
        """

    def word_vectors(self, words: Sequence[str], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """The vectors of N words, each alone; as ``span_vectors``."""

    def coverage(self, words: Sequence[str]) -> list[Coverage]:
        """How much of each word layer 0 knows."""

    def table_rows(self, words: Sequence[str]) -> list[int | None]:
        """The row of each word in ``table``; None for a word that is no entry of it."""


def load_contextual(folder: Path, *, normalization: NormalizationConfig | None = None) -> ContextualEncoder:
    """Load an encoder of any family; networks run in evaluation mode on the device of the environment.

    Args:
        folder: Encoder artifact.
        normalization: Recipe that texts go through before they become tokens; the default one unless given.

    Raises:
        ArtifactError: The folder holds no encoder, or a damaged one.
    """
    family: EncoderFamily = read_encoder_card(folder)["family"]
    recipe = normalization or NormalizationConfig()
    if family == "bag_of_words":
        return BagContexts(load_bag_of_words(folder), recipe)
    if family == "word2vec":
        return _static_contexts(folder, recipe)
    # Imported here: torch and transformers cost seconds that word vectors need not pay.
    from components.encoders.contextual_networks import bert_contexts, recurrent_contexts

    return recurrent_contexts(folder, recipe) if family == "recurrent" else bert_contexts(folder, recipe)


@dataclass(frozen=True)
class BagContexts:
    """A bag of words as an encoder with one layer: the features of the span, whatever surrounds it."""

    bag: BagOfWords
    recipe: NormalizationConfig
    family: EncoderFamily = "bag_of_words"
    layers: tuple[str, ...] = ("features",)
    table: Table | None = None

    @cached_property
    def _features(self) -> frozenset[str]:
        return frozenset(self.bag.features)

    def span_vectors(self, texts: Sequence[str], spans: Sequence[Span], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """As ``ContextualEncoder``; columns that are zero in all rows are left out, which changes no product."""
        words = [text[start:end] for text, (start, end) in zip(texts, spans, strict=True)]
        features = self.bag.transform([normalize(word, self.recipe).text for word in words]).tocsc()
        dense: Vectors = features[:, np.flatnonzero(np.diff(features.indptr))].toarray()
        if not dense.shape[1]:
            return (np.full((len(words), 1), np.nan, dtype=np.float32),)
        dense[~dense.any(axis=1)] = np.nan
        return (dense,)

    def word_vectors(self, words: Sequence[str], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """As ``ContextualEncoder``."""
        return self.span_vectors(words, [(0, len(word)) for word in words], batch_size=batch_size)

    def coverage(self, words: Sequence[str]) -> list[Coverage]:
        """As ``ContextualEncoder``; a word made of several features, such as its characters, is known in parts."""
        counts = np.diff(self.bag.transform([normalize(word, self.recipe).text for word in words]).indptr)
        return [
            "unknown" if not count else "whole" if self._is_feature(word) else "parts"
            for word, count in zip(words, counts, strict=True)
        ]

    def table_rows(self, words: Sequence[str]) -> list[int | None]:
        """As ``ContextualEncoder``: there is no table."""
        return [None] * len(words)

    def _is_feature(self, word: str) -> bool:
        spelling = word.lower() if self.bag.settings.lowercase else word
        return spelling in self._features or f"word:{spelling}" in self._features


def _static_contexts(folder: Path, recipe: NormalizationConfig) -> TokenEncoder:
    vectors = load_word_vectors(folder)
    unknown = len(vectors.words)

    def ids_of(unit: str) -> list[int]:
        if unit in vectors.index or vectors.oov_policy == "skip":
            return [vectors.index.get(unit, unknown)]
        spelled = [vectors.index.get(character, unknown) for character in unit]
        return spelled if any(number != unknown for number in spelled) else [unknown]

    return TokenEncoder(
        "word2vec",
        ("vectors",),
        make_table(vectors.words, vectors.vectors_VD),
        read=_static_reader(folder, vectors, recipe, ids_of),
        lookup=lambda ids: vectors.vectors_VD[list(ids)],
        unknown_id=unknown,
    )


def _static_reader(
    folder: Path, vectors: WordVectors, recipe: NormalizationConfig, ids_of: Callable[[str], list[int]]
) -> Callable[[Sequence[str]], list[Tokens]]:
    if vectors.units == "words":
        return lambda texts: read_units(texts, recipe, vectors.split, ids_of)
    # Imported here: transformers costs a second that vectors of words need not pay.
    from components.encoders.pieces import PieceSplitter

    splitter = PieceSplitter(folder)
    # A piece without a vector stays one token: spelling it would give a piece ##ing the vectors of its characters.
    return lambda texts: read_pieces(
        texts, splitter.encoder(recipe), splitter.pieces, lambda piece: vectors.index.get(piece, len(vectors.words))
    )
