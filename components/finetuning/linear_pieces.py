"""What the bag-of-words readers know of a piece: its n-grams in the encoder's vocabulary, and its kind of character.

Legend of shape suffixes: V pieces of the tokenizer, P positions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from components.encoders.bag_of_words import BagOfWords, load_bag_of_words
from components.encoders.pieces import PieceEncoder, load_pieces
from components.errors import ConfigError
from components.text.normalization import NormalizationConfig

NOTHING = -1
"""Id of the place before the first and after the last piece; as a column, no feature."""
CHARACTER_CLASSES = ("other", "han", "han_numeral", "digit", "capital", "latin", "punctuation")
_HAN_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿两几")


@lru_cache(maxsize=1 << 16)
def character_class(character: str) -> int:
    """Index of a character's class in ``CHARACTER_CLASSES``; full-width forms count as what they are a form of."""
    folded = unicodedata.normalize("NFKC", character)[:1]
    category = unicodedata.category(folded) if folded else "Cn"
    if folded in _HAN_NUMERALS:
        name = "han_numeral"
    elif unicodedata.name(folded, "").startswith("CJK UNIFIED") or unicodedata.name(folded, "").startswith("CJK COMP"):
        name = "han"
    elif category == "Nd":
        name = "digit"
    elif category in ("Lu", "Lt"):
        name = "capital"
    elif category.startswith("L"):
        name = "latin"
    else:
        name = "punctuation" if category[0] in "PS" else "other"
    return CHARACTER_CLASSES.index(name)


@dataclass(frozen=True)
class PieceNgrams:
    """Single pieces and pairs of pieces that the encoder's vocabulary holds, found by the tokenizer's ids."""

    unigram_of_V: NDArray[np.int64]
    """For every id its number among the single pieces, else -1. One entry more than there are ids, the last one for
    ``NOTHING``: the border of a text is a unigram of its own."""
    unigram_weights: NDArray[np.float64]
    """Weight of every single piece and, last, of the border: 1 for one-hot, else inverse document frequencies."""
    bigram_keys: NDArray[np.int64]
    """Keys of the pairs, sorted; a pair's number is its place here."""
    bigram_weights: NDArray[np.float64]
    unknown_weight: float
    """Weight of an n-gram outside the vocabulary in matches between texts: rarer than the rarest inside."""

    @property
    def num_unigrams(self) -> int:
        """Single pieces and the border."""
        return len(self.unigram_weights)

    @property
    def num_bigrams(self) -> int:
        """Pairs of pieces."""
        return len(self.bigram_keys)

    def unigrams(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of single pieces, -1 where unknown; same shape as ``ids``."""
        return self.unigram_of_V[ids]

    def keys(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """What identifies a pair of ids; -1 when one of them is ``NOTHING``."""
        return np.where((left < 0) | (right < 0), NOTHING, left * len(self.unigram_of_V) + right)

    def bigrams(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of pairs by their keys, -1 where unknown; same shape as ``keys``."""
        if not len(self.bigram_keys):
            return np.full_like(keys, NOTHING)
        places = np.minimum(np.searchsorted(self.bigram_keys, keys), len(self.bigram_keys) - 1)
        return np.where(self.bigram_keys[places] == keys, places, NOTHING)

    def weights_of(self, numbers: NDArray[np.int64], *, bigrams: bool) -> NDArray[np.float64]:
        """Weights of numbered n-grams, ``unknown_weight`` for -1; same shape as ``numbers``."""
        weights = self.bigram_weights if bigrams else self.unigram_weights
        return np.concatenate([weights, [self.unknown_weight]])[numbers]


def piece_ngrams(bag: BagOfWords, vocab: Mapping[str, int]) -> PieceNgrams:
    """Number the n-grams of a bag of words; those of more than two pieces are left out.

    Args:
        bag: Fitted on pieces.
        vocab: Piece to id.
    """
    idf = np.ones(len(bag.features)) if bag.idf is None else bag.idf.astype(np.float64)
    unigram_of_V = np.full(len(vocab) + 1, NOTHING)
    unigram_weights: list[float] = []
    pairs: dict[int, float] = {}
    for feature, weight in zip(bag.features, idf.tolist(), strict=True):
        ids = [vocab[piece] for piece in feature.split(" ")]
        if len(ids) == 1:
            unigram_of_V[ids[0]] = len(unigram_weights)
            unigram_weights.append(weight)
        elif len(ids) == 2:
            pairs[ids[0] * (len(vocab) + 1) + ids[1]] = weight
    unigram_of_V[NOTHING] = len(unigram_weights)
    keys = np.array(sorted(pairs), dtype=np.int64)
    return PieceNgrams(
        unigram_of_V,
        np.array([*unigram_weights, 1.0]),
        keys,
        np.array([pairs[key] for key in keys.tolist()]),
        unknown_weight=1.0 if bag.idf is None else float(idf.max()),
    )


@dataclass(frozen=True)
class PieceBag:
    """A bag of words over pieces and the tokenizer it was fitted with."""

    bag: BagOfWords
    encoder: PieceEncoder
    ngrams: PieceNgrams


def load_piece_bag(folder: Path, normalization: NormalizationConfig) -> PieceBag:
    """Load a bag of words that was fitted on pieces.

    Raises:
        ConfigError: It was fitted on words, or on characters.
        ArtifactError: The folder holds another encoder, or a damaged one.
    """
    bag = load_bag_of_words(folder)
    if bag.settings.units != "pieces":
        raise ConfigError(
            f"{folder}: this bag of words counts words; ner and question_answering read pieces: "
            "fit it with units='pieces' and a tokenizer"
        )
    encoder = load_pieces(folder, normalization)
    return PieceBag(bag, encoder, piece_ngrams(bag, encoder.tokenizer.get_vocab()))


def code_matrix(columns: NDArray[np.int64], values: NDArray[np.float64] | None, num_columns: int) -> csr_matrix:
    """A sparse matrix from each row's columns.

    Args:
        columns: Shape [R, K]; -1 is no feature.
        values: Shape [R, K]; None for ones.
        num_columns: Width of the matrix.

    Returns:
        Shape [R, num_columns], float64.
    """
    present = columns >= 0
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    data = np.ones(int(indptr[-1])) if values is None else values[present]
    return csr_matrix((data, columns[present], indptr), shape=(len(columns), num_columns))
