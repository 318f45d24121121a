"""Features of every piece of a passage as the border of an answer: a sliding window whose weights are learned.

The sliding window of Richardson et al. (2013, section 5.1) scores a place by the inverse counts of the words that it
shares with the question, its distance-based variant by how near they are. Here the idf-weighted share of the question
in windows of four widths on the left, on the right and around a piece are features, beside what the logistic
regression baseline of SQuAD has that needs no parser (Rajpurkar et al. 2016, section 5.2): matching words and pairs of
words by sentence, and lexicalised features, the question word crossed with the piece.

Legend of shape suffixes: P pieces of the passage, U distinct n-grams of the question, S sentences, D dense features,
K coded features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.encoders.pieces import Pieces
from components.finetuning.linear_pieces import CHARACTER_CLASSES, NOTHING, PieceNgrams, character_class
from components.finetuning.linear_questions import CONTEXT, KINDS, QuestionPieces
from components.text.sentences import Language, split_sentences

WIDTHS = (4, 8, 16, 32)
"""Pieces in a window on one side."""
REACH = 2
"""Neighbours whose identity and match with the question a piece is described by."""
NUM_DENSE = 2 * 3 * len(WIDTHS) + 2 * REACH + 1 + 2 + 6 + 2 * CONTEXT + 3
NUM_MATCH = 4 + 2 * len(WIDTHS)
_NUM_CLASSES = len(CHARACTER_CLASSES) + 1
"""The last one is the border of the passage."""


@dataclass(frozen=True)
class PassagePieces:
    """A passage as the reader sees it."""

    pieces: Pieces
    ids: NDArray[np.int64]
    offsets_P2: NDArray[np.int64]
    classes: NDArray[np.int64]
    """Class of each piece's first character."""
    starts_S: NDArray[np.int64]
    """First piece of every sentence that has pieces; begins with 0."""


@dataclass(frozen=True)
class SpanFeatures:
    """Features of every piece of one passage for one question."""

    dense_PD: NDArray[np.float32]
    """Numbers from 0 to 1."""
    codes_PK: NDArray[np.int64]
    """Columns of features that are there or not; -1 for none."""
    match: NDArray[np.float64]
    """How well the question is found anywhere, shape [``NUM_MATCH``]: what speaks against "no answer"."""


def read_passage(text: str, pieces: Pieces, language: Language) -> PassagePieces:
    """Classes of characters and borders of sentences.

    Args:
        text: The passage.
        pieces: Its pieces, with offsets into ``text``.
        language: Whose sentences.
    """
    offsets_P2 = np.array(pieces.offsets, dtype=np.int64).reshape(-1, 2)
    classes = np.array([character_class(text[start]) for start, _ in pieces.offsets], dtype=np.int64)
    begins, reached = [0], 0
    for sentence in split_sentences(text, language):
        reached = text.index(sentence, reached)
        begins.append(reached)
        reached += len(sentence)
    starts_S = np.unique(np.searchsorted(offsets_P2[:, 0], begins))
    ids = np.array(pieces.ids, dtype=np.int64)
    return PassagePieces(pieces, ids, offsets_P2, classes, starts_S[starts_S < len(offsets_P2)])


def column_sizes(ngrams: PieceNgrams) -> list[int]:
    """Number of columns of every coded feature, in the order of ``SpanFeatures.codes_PK``."""
    kinds = len(KINDS)
    return [
        *[ngrams.num_unigrams] * (2 * REACH + 1),
        *[ngrams.num_bigrams] * 2,
        *[_NUM_CLASSES] * 3,
        *[kinds * _NUM_CLASSES] * 3,
        *[kinds * ngrams.num_unigrams] * 3,
        _NUM_CLASSES**3,
        kinds * _NUM_CLASSES**3,
    ]


def rare_columns(ngrams: PieceNgrams) -> NDArray[np.bool_]:
    """Which columns are so many that one occurrence says nothing: pairs, and question words with single pieces."""
    sizes = column_sizes(ngrams)
    many = {2 * REACH + 1, 2 * REACH + 2} | set(range(len(sizes) - 5, len(sizes) - 2))
    return np.repeat([number in many for number in range(len(sizes))], sizes)


def span_features(ngrams: PieceNgrams, question: QuestionPieces, passage: PassagePieces) -> SpanFeatures:
    """Features of every piece of a passage for one question.

    Args:
        ngrams: N-grams and weights of the encoder.
        question: The question.
        passage: The passage; without any piece the features have no rows.
    """
    num_pieces = len(passage.ids)
    if not num_pieces:
        empty = np.zeros((0, len(column_sizes(ngrams))), dtype=np.int64)
        return SpanFeatures(np.zeros((0, NUM_DENSE), dtype=np.float32), empty, np.zeros(NUM_MATCH))
    found = [_found(ngrams, question, passage, bigrams=bigrams) for bigrams in (False, True)]
    windows = np.column_stack([_window_shares(item, num_pieces) for item in found])
    sentences, best = _sentence_features(found, passage)
    dense = np.column_stack(
        [windows, _exact_matches(found), sentences, _alignment(question, passage), _position(passage)]
    )
    around = windows[:, 2::3].max(axis=0)
    match = np.concatenate([[item.share(0, num_pieces) for item in found], best, around])
    return SpanFeatures(dense.astype(np.float32), _codes(ngrams, question, passage), match)


@dataclass(frozen=True)
class _Found:
    """Where the question's distinct n-grams are in a passage."""

    hits_PU: NDArray[np.bool_]
    """N-gram u begins at piece p."""
    before_PU: NDArray[np.int32]
    """Occurrences that begin before piece p; shape [P + 1, U]."""
    weights_U: NDArray[np.float64]
    """Shares of the question, with sum 1."""
    length: int

    def counts(self, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int32]:
        """Occurrences that lie in pieces ``first`` to ``end`` - 1 as a whole; shape [windows, U]."""
        last = np.maximum(end - self.length + 1, first)
        return self.before_PU[last] - self.before_PU[first]

    def share(self, first: int, end: int) -> float:
        """Share of the question's n-grams in one window."""
        return float(((self.counts(np.array([first]), np.array([end])) > 0) @ self.weights_U)[0])


def _found(ngrams: PieceNgrams, question: QuestionPieces, passage: PassagePieces, *, bigrams: bool) -> _Found:
    if bigrams:
        asked = ngrams.keys(question.ids[:-1], question.ids[1:])
        here = ngrams.keys(passage.ids, np.append(passage.ids[1:], NOTHING))
    else:
        asked, here = question.ids, passage.ids
    wanted = np.unique(asked[asked != NOTHING])
    numbers = ngrams.bigrams(wanted) if bigrams else ngrams.unigrams(wanted)
    weights = ngrams.weights_of(numbers, bigrams=bigrams)
    hits_PU = here[:, None] == wanted[None, :]
    before_PU = np.zeros((len(here) + 1, len(wanted)), dtype=np.int32)
    np.cumsum(hits_PU, axis=0, out=before_PU[1:])
    return _Found(hits_PU, before_PU, weights / max(weights.sum(), 1e-12), 2 if bigrams else 1)


def _window_shares(found: _Found, num_pieces: int) -> NDArray[np.float64]:
    """Shares of the question left of, right of and around each piece, itself left out, for every width; [P, 12]."""
    places = np.arange(num_pieces)
    columns = []
    for width in WIDTHS:
        left = found.counts(np.maximum(places - width, 0), places)
        right = found.counts(places + 1, np.minimum(places + 1 + width, num_pieces))
        columns += [(counts > 0) @ found.weights_U for counts in (left, right, left + right)]
    return np.column_stack(columns)


def _exact_matches(found: list[_Found]) -> NDArray[np.float64]:
    """Whether each piece and its neighbours, and the pairs it ends and begins, are in the question; [P, 7]."""
    single, pair = (np.asarray(item.hits_PU.any(axis=1), dtype=np.float64) for item in found)
    padded = np.pad(single, REACH)
    columns = [padded[shift : shift + len(single)] for shift in range(2 * REACH + 1)]
    return np.column_stack([*columns, np.concatenate([[0.0], pair[:-1]]), pair])


def _sentence_features(found: list[_Found], passage: PassagePieces) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each piece's sentence: shares of the question, whether it is the best, it and its neighbours against the best.

    Returns:
        Shape [P, 6], and the best sentence's two shares, shape [2].
    """
    num_pieces, starts = len(passage.ids), passage.starts_S
    ends = np.append(starts[1:], num_pieces)
    shares_S2 = np.column_stack([(item.counts(starts, ends) > 0) @ item.weights_U for item in found])
    total_S = shares_S2.sum(axis=1)
    best = int(total_S.argmax())
    relative_S = total_S / max(total_S[best], 1e-12)
    padded = np.pad(relative_S, 1)
    is_best = np.arange(len(starts)) == best
    table_S6 = np.column_stack([shares_S2, is_best, relative_S, padded[:-2], padded[2:]])
    return np.repeat(table_S6, ends - starts, axis=0), shares_S2[best]


def _alignment(question: QuestionPieces, passage: PassagePieces) -> NDArray[np.float64]:
    """Whether the 1, 2, 3 pieces on each side are those beside the question word; [P, 2 * CONTEXT].

    A piece between the same neighbours as the question word takes its place: distance 0 in the words of Richardson et
    al.
    """
    num_pieces = len(passage.ids)
    padded = np.concatenate([np.full(CONTEXT, NOTHING), passage.ids, np.full(CONTEXT, NOTHING)])
    columns = []
    for direction, wanted in ((-1, question.left), (1, question.right)):
        same = np.ones(num_pieces, dtype=bool)
        for step in range(1, CONTEXT + 1):
            begin = CONTEXT + direction * step
            here = padded[begin : begin + num_pieces]
            same = same & (here == wanted[step - 1]) if step <= len(wanted) else np.zeros(num_pieces, dtype=bool)
            columns.append(same)
    return np.column_stack(columns).astype(np.float64)


def _position(passage: PassagePieces) -> NDArray[np.float64]:
    """Relative and logarithmic position in the passage, and whether a sentence begins here; [P, 3]."""
    places = np.arange(len(passage.ids))
    begins = np.isin(places, passage.starts_S)
    return np.column_stack([places / len(places), np.log1p(places) / 10.0, begins])


def _codes(ngrams: PieceNgrams, question: QuestionPieces, passage: PassagePieces) -> NDArray[np.int64]:
    """Identity of the piece and its neighbours, their classes, and both crossed with the question word; [P, K]."""
    num_pieces, kind = len(passage.ids), question.kind
    around = [slice(shift, shift + num_pieces) for shift in range(2 * REACH + 1)]
    ids = np.pad(passage.ids, REACH, constant_values=NOTHING)
    classes = np.pad(passage.classes, REACH, constant_values=_NUM_CLASSES - 1)
    unigrams = ngrams.unigrams(ids)
    pairs = ngrams.bigrams(ngrams.keys(ids[:-1], ids[1:]))
    before, own, after = (classes[around[shift]] for shift in (REACH - 1, REACH, REACH + 1))
    shape = (before * _NUM_CLASSES + own) * _NUM_CLASSES + after
    near = [unigrams[around[shift]] for shift in (REACH - 1, REACH, REACH + 1)]
    local = [
        *[unigrams[part] for part in around],
        *[pairs[around[shift]] for shift in (REACH - 1, REACH)],
        *[before, own, after],
        *[kind * _NUM_CLASSES + item for item in (before, own, after)],
        *[np.where(item >= 0, kind * ngrams.num_unigrams + item, NOTHING) for item in near],
        shape,
        kind * _NUM_CLASSES**3 + shape,
    ]
    starts = np.concatenate([[0], np.cumsum(column_sizes(ngrams))[:-1]])
    return np.column_stack(
        [np.where(item >= 0, begin + item, NOTHING) for begin, item in zip(starts, local, strict=True)]
    )
