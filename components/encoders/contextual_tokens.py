"""Vectors of spans from the tokens that overlap them: what every encoder but a bag of words does.

Legend of shape suffixes: N spans or words, L tokens of a text, D numbers per vector, which differ between layers, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.formats import EncoderFamily
from components.text.normalization import NormalizationConfig, normalize

if TYPE_CHECKING:
    from components.encoders.pieces import PieceEncoder

Span = tuple[int, int]
"""Start and end in code points of a text."""
Coverage = Literal["whole", "parts", "unknown"]
"""A word has a vector of its own, only its parts (characters, pieces) have, or nothing of it has."""
Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Tokens:
    """A text as tokens."""

    ids: tuple[int, ...]
    offsets: tuple[Span, ...]
    """Where each token lies in the original text."""


@dataclass(frozen=True)
class Table:
    """The static vectors of a vocabulary, without special tokens and pieces that continue a word."""

    words: tuple[str, ...]
    vectors_VD: Vectors
    ids: tuple[int, ...]
    """The encoder's id of every word."""

    @cached_property
    def rows(self) -> dict[int, int]:
        """Row of every id."""
        return {number: row for row, number in enumerate(self.ids)}


@dataclass(frozen=True)
class TokenEncoder:
    """An encoder that reads tokens."""

    family: EncoderFamily
    layers: tuple[str, ...]
    table: Table
    read: Callable[[Sequence[str]], list[Tokens]]
    lookup: Callable[[Sequence[int]], Vectors]
    """Static vectors of token ids, shape [L, D]."""
    run: Callable[[list[list[int]]], list[list[Vectors]]] | None = None
    """The layers above layer 0 for a batch: for each text the states [L, D] of each layer."""
    unknown_id: int | None = None
    """The id of tokens without a vector of their own."""
    max_tokens: int | None = None
    """Most tokens read at once; of a longer text, those around the span are read."""

    def span_vectors(self, texts: Sequence[str], spans: Sequence[Span], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """As ``ContextualEncoder``; equal windows go through the network once."""
        windows = [_window(*item, self.max_tokens) for item in zip(self.read(texts), spans, strict=True)]
        static = [self._static_vector(ids, places) for ids, places in windows]
        distinct = sorted({ids for ids, places in windows if places}, key=lambda ids: (len(ids), ids))
        states: dict[tuple[int, ...], list[Vectors]] = {}
        for start in range(0, len(distinct) if self.run else 0, batch_size):
            batch = distinct[start : start + batch_size]
            assert self.run is not None
            states.update(zip(batch, self.run([list(ids) for ids in batch]), strict=True))
        above = [
            [states[ids][layer][places].mean(axis=0) if places else None for ids, places in windows]
            for layer in range(len(self.layers) - 1)
        ]
        return tuple(_stack(rows) for rows in (static, *above))

    def word_vectors(self, words: Sequence[str], *, batch_size: int = 64) -> tuple[Vectors, ...]:
        """As ``ContextualEncoder``."""
        return self.span_vectors(words, [(0, len(word)) for word in words], batch_size=batch_size)

    def coverage(self, words: Sequence[str]) -> list[Coverage]:
        """As ``ContextualEncoder``."""
        found: list[Coverage] = []
        for tokens in self.read(words):
            known = [number for number in tokens.ids if number != self.unknown_id]
            found.append("unknown" if not known else "whole" if len(tokens.ids) == 1 else "parts")
        return found

    def table_rows(self, words: Sequence[str]) -> list[int | None]:
        """As ``ContextualEncoder``."""
        read = self.read(words)
        return [self.table.rows.get(tokens.ids[0]) if len(tokens.ids) == 1 else None for tokens in read]

    def _static_vector(self, ids: tuple[int, ...], places: list[int]) -> Vectors | None:
        known = [ids[place] for place in places if ids[place] != self.unknown_id]
        return self.lookup(known).mean(axis=0) if known else None


def read_units(
    texts: Sequence[str],
    recipe: NormalizationConfig,
    split: Callable[[str], list[str]],
    ids_of: Callable[[str], list[int]],
) -> list[Tokens]:
    """Texts as the ids of their words, with the words' places in the original text.

    Args:
        texts: Original texts.
        recipe: Normalisation before splitting.
        split: Gives words that lie in the normalised text in order, with nothing but white space between them.
        ids_of: Ids of one word; as many as it has characters where it is spelled.
    """
    return [_read_one(text, recipe, split, ids_of) for text in texts]


def read_pieces(
    texts: Sequence[str], encoder: PieceEncoder, pieces: Sequence[str], id_of: Callable[[str], int]
) -> list[Tokens]:
    """Texts as the ids that an encoder gives the pieces of a tokenizer.

    Args:
        texts: Original texts.
        encoder: Cuts texts into pieces.
        pieces: Every piece by the tokenizer's id.
        id_of: The encoder's id of a piece.
    """
    return [
        Tokens(tuple(id_of(pieces[number]) for number in item.ids), tuple(item.offsets))
        for item in encoder.encode_texts(texts)
    ]


def make_table(words: Sequence[str], vectors: Vectors) -> Table:
    """The plain words of a vocabulary with their vectors.

    Args:
        words: Every entry by id.
        vectors: A row for each entry.
    """
    kept = [number for number, word in enumerate(words) if _is_plain_word(word)]
    return Table(tuple(words[number] for number in kept), vectors[kept], tuple(kept))


def _is_plain_word(word: str) -> bool:
    # Neither a special token nor a piece that continues a word.
    return not word.startswith("##") and not (word.startswith("[") and word.endswith("]") and len(word) > 2)


def _read_one(
    text: str, recipe: NormalizationConfig, split: Callable[[str], list[str]], ids_of: Callable[[str], list[int]]
) -> Tokens:
    cleaned = normalize(text, recipe)
    ids: list[int] = []
    offsets: list[Span] = []
    position = 0
    for word in split(cleaned.text):
        start = cleaned.text.index(word, position)
        position = start + len(word)
        numbers = ids_of(word)
        spelled = len(numbers) == len(word) > 1
        for place, number in enumerate(numbers):
            within = (start + place, start + place + 1) if spelled else (start, position)
            ids.append(number)
            offsets.append(cleaned.original_span(*within))
    return Tokens(tuple(ids), tuple(offsets))


def _window(tokens: Tokens, span: Span, max_tokens: int | None) -> tuple[tuple[int, ...], list[int]]:
    """The token ids to read and the places of the span among them; as much text on either side as there is room for."""
    start, end = span
    places = [place for place, (first, last) in enumerate(tokens.offsets) if first < end and last > start]
    if not places or max_tokens is None or len(tokens.ids) <= max_tokens:
        return tokens.ids, places
    middle = (places[0] + places[-1] + 1) // 2
    first = min(max(0, middle - max_tokens // 2), len(tokens.ids) - max_tokens)
    inside = [place - first for place in places if first <= place < first + max_tokens]
    return tokens.ids[first : first + max_tokens], inside


def _stack(rows: Sequence[Vectors | None]) -> Vectors:
    size = next((len(row) for row in rows if row is not None), 1)
    return np.array([np.full(size, np.nan) if row is None else row for row in rows], dtype=np.float32)
