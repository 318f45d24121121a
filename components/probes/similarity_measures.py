"""The measurements of the probe of similarity on one encoder: every list, every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.encoders.contextual import BagContexts, ContextualEncoder
from components.encoders.contextual_tokens import Coverage
from components.errors import ConfigError
from components.probes.intervals import Share, binomial_share
from components.probes.meaning_config import SimilarityProbeConfig
from components.probes.similarity import (
    Correlation,
    Orthogonality,
    Vectors,
    analogy_credits,
    correlate,
    cosines,
    nearest,
    orthogonality,
    triple_credits,
)
from components.probes.word_files import (
    Analogy,
    ListFile,
    Triple,
    WordPair,
    read_analogies,
    read_triples,
    read_word_pairs,
    shipped_list,
)
from components.text.normalization import normalize

SAMPLE_WORDS = 1000
"""Words of the vocabulary, evenly spread, whose vectors are compared pair by pair."""
NUM_NEIGHBOUR_WORDS = 8


@dataclass(frozen=True)
class WordLists:
    """Everything that is asked."""

    pairs: dict[str, list[WordPair]]
    """By name of the file."""
    triples: list[Triple]
    analogies: list[Analogy]

    def words(self) -> list[str]:
        """Every word of the lists once, in order."""
        named = [word for pairs in self.pairs.values() for pair in pairs for word in (pair.first, pair.second)]
        named += [word for triple in self.triples for word in (triple.anchor, triple.near, triple.far)]
        named += [word for item in self.analogies for word in (item.a, item.b, item.c, item.d)]
        return list(dict.fromkeys(named))


@dataclass(frozen=True)
class Analogies:
    """Accuracy on analogies whose words are all known."""

    accuracy: Share
    without_offset: Share
    """Taking the nearest word of c instead."""
    chance: float
    num_candidates: int


@dataclass(frozen=True)
class LayerSimilarity:
    """What was found at one layer; None where too little is known or nothing can be ranked."""

    layer: str
    correlations: dict[str, Correlation | None]
    triples: Share | None
    analogies: Analogies | None
    """Among the words of the lists."""


def read_lists(config: SimilarityProbeConfig) -> WordLists:
    """Read the lists of a configuration.

    Raises:
        ConfigError: There is no list at all, or two files of word pairs have one name.
        InputError: A list cannot be used.
    """
    shipped: list[list[ListFile]] = [
        [shipped_list(f"{name}_{config.language}.{ending}")] if config.shipped_lists else []
        for name, ending in (("similarity", "tsv"), ("triples", "tsv"), ("analogies", "txt"))
    ]
    files = [
        [*own, *(Path(name) for name in given)]
        for own, given in zip(shipped, (config.word_pairs, config.triples, config.analogies), strict=True)
    ]
    if not any(files):
        raise ConfigError("the probe has no word lists. Remedy: set shipped_lists: true, or name files.")
    names = [file.name for file in files[0]]
    if len(set(names)) != len(names):
        raise ConfigError(f"word_pairs {', '.join(names)}: two files have one name. Remedy: rename one.")
    return WordLists(
        {file.name: read_word_pairs(file) for file in files[0]},
        [triple for file in files[1] for triple in read_triples(file)],
        [item for file in files[2] for item in read_analogies(file)],
    )


@dataclass(frozen=True)
class KnownWords:
    """The words of the lists as vectors."""

    rows: dict[str, int]
    coverage: list[Coverage]
    layers: tuple[Vectors, ...]
    """For each layer the vectors of all words; NaN where unknown."""

    def take(self, layer: int, words: Sequence[str]) -> Vectors:
        """The vectors of some words at a layer."""
        return self.layers[layer][[self.rows[word] for word in words]]


def know_words(encoder: ContextualEncoder, words: Sequence[str], batch_size: int) -> KnownWords:
    """The vectors of the words, each alone."""
    layers = encoder.word_vectors(words, batch_size=batch_size)
    # A word that layer 0 knows nothing of has no vector further up either: a network makes one for any [UNK].
    unknown = ~np.isfinite(layers[0]).all(axis=1)
    for vectors in layers[1:]:
        vectors[unknown] = np.nan
    return KnownWords({word: row for row, word in enumerate(words)}, encoder.coverage(words), layers)


def measure_layer(name: str, layer: int, known: KnownWords, lists: WordLists) -> LayerSimilarity:
    """Everything that is asked of one layer."""
    correlations = {}
    for file, pairs in lists.pairs.items():
        first = known.take(layer, [pair.first for pair in pairs])
        second = known.take(layer, [pair.second for pair in pairs])
        correlations[file] = correlate(cosines(first, second), np.array([pair.score for pair in pairs]))
    return LayerSimilarity(
        name, correlations, _triples(layer, known, lists.triples), _list_analogies(layer, known, lists.analogies)
    )


def _triples(layer: int, known: KnownWords, triples: Sequence[Triple]) -> Share | None:
    columns = [[triple.anchor for triple in triples], [triple.near for triple in triples], [t.far for t in triples]]
    credits = triple_credits(*(known.take(layer, column) for column in columns))
    credits = credits[np.isfinite(credits)]
    return binomial_share(float(credits.sum()), len(credits)) if len(credits) else None


def _list_analogies(layer: int, known: KnownWords, analogies: Sequence[Analogy]) -> Analogies | None:
    """Among the words of the analogies alone, so that encoders with different vocabularies are asked one question."""
    words = list(dict.fromkeys(word for item in analogies for word in (item.a, item.b, item.c, item.d)))
    vectors = known.take(layer, words)
    kept = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    place: dict[str, int | None] = dict.fromkeys(words)
    place |= {words[row]: number for number, row in enumerate(kept)}
    return _solve(vectors[kept], [[place[word] for word in (item.a, item.b, item.c, item.d)] for item in analogies])


def vocabulary_analogies(encoder: ContextualEncoder, analogies: Sequence[Analogy]) -> Analogies | None:
    """Among the encoder's whole vocabulary, at layer 0; for analogies whose four words are entries of it."""
    if encoder.table is None or not analogies:
        return None
    columns = [[item.a for item in analogies], [item.b for item in analogies], [item.c for item in analogies],
               [item.d for item in analogies]]  # fmt: skip
    rows = [encoder.table_rows(column) for column in columns]
    return _solve(encoder.table.vectors_VD, [list(question) for question in zip(*rows, strict=True)])


def _solve(vectors: Vectors, questions: Sequence[Sequence[int | None]]) -> Analogies | None:
    # Different spellings can be one entry, as in a vocabulary without capitals; then there is no question.
    usable = [row for row in questions if None not in row and row[3] not in row[:3]]
    if not usable or len(vectors) < 5:
        return None
    numbers = np.array(usable, dtype=np.intp)
    right, alone = (_share(analogy_credits(vectors, numbers, offset=offset)) for offset in (True, False))
    return Analogies(right, alone, 1 / (len(vectors) - 3), len(vectors))


def _share(credits: NDArray[np.float64]) -> Share:
    return binomial_share(float(credits.sum()), len(credits))


def angles(encoder: ContextualEncoder) -> Orthogonality | None:
    """Orthogonality among words spread evenly over the vocabulary, at layer 0."""
    if encoder.table is not None:
        rows = _spread(len(encoder.table.words))
        return orthogonality(encoder.table.vectors_VD[rows])
    assert isinstance(encoder, BagContexts)
    return orthogonality(_known_rows(encoder))


def _known_rows(encoder: BagContexts) -> Vectors:
    """One-hot vectors of features that are words and, read alone, stay one word."""
    features = [feature.removeprefix("word:") for feature in encoder.bag.features if not feature.startswith("char:")]
    # A full-width letter, say, is a feature that no normalised text has.
    plain = [word for word in features if " " not in word and normalize(word, encoder.recipe).text == word]
    spread = [plain[row] for row in _spread(len(plain))]
    whole = [word for word, known in zip(spread, encoder.coverage(spread), strict=True) if known == "whole"]
    return encoder.word_vectors(whole)[0] if whole else np.zeros((0, 1), dtype=np.float32)


def _spread(count: int) -> list[int]:
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, SAMPLE_WORDS))}) if count else []


def neighbours(
    encoder: ContextualEncoder, config: SimilarityProbeConfig, lists: WordLists
) -> list[tuple[str, list[tuple[str, float]]]]:
    """The nearest words of the chosen ones that are entries of the vocabulary."""
    if encoder.table is None:
        return []
    anchors = tuple(dict.fromkeys(triple.anchor for triple in lists.triples))
    words = list(config.neighbour_words or anchors)
    known = [(word, row) for word, row in zip(words, encoder.table_rows(words), strict=True) if row is not None]
    if not config.neighbour_words:
        known = known[:NUM_NEIGHBOUR_WORDS]
    found = nearest(encoder.table.vectors_VD, [row for _, row in known], config.num_neighbours)
    names = encoder.table.words
    return [
        (word, [(names[row], cosine) for row, cosine in rows]) for (word, _), rows in zip(known, found, strict=True)
    ]
