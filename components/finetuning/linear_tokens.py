"""The bag-of-words tagger: logistic regression over the pieces around a token.

A token is described by the single pieces and pairs of pieces at offsets -2 … +2 around the piece that carries its
label, each n-gram at each offset a feature of its own (weight 1, or the encoder's inverse document frequency), and by
the kind of its first character: the window features of maximum-entropy taggers (Ratnaparkhi 1996; Chieu & Ng 2003,
section 4; for Chinese characters Ng & Low 2004) without their gazetteers and history features. How tags follow one
another is left to decoding.

Legend of shape suffixes: R tokens with pieces, K features of a token.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from components.errors import TrainingError
from components.examples import TaggedText
from components.finetuning.data import read_normalization
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreInputs, WeightReport
from components.finetuning.linear import ABSENT_LABEL_BIAS, LinearHead, copy_encoder, head_of, validation_score
from components.finetuning.linear_pieces import (
    CHARACTER_CLASSES,
    NOTHING,
    PieceBag,
    PieceNgrams,
    character_class,
    code_matrix,
    load_piece_bag,
)
from components.finetuning.outputs import TokenScores, outside_row
from components.finetuning.tasks import Task

C_GRID = (0.01, 0.1, 1.0, 10.0)
"""Inverse regularisation strengths that validation chooses from."""
REACH = 2
"""Pieces to the left and right that a token is described by."""
MINIMUM_BIGRAM_COUNT = 2
"""Training tokens that must share a pair at an offset: a pair seen once says nothing about other tokens."""
MAX_ITERATIONS = 300
TOLERANCE = 1e-4
MINIMUM_KNOWN = 0.5
"""Smallest share of training tokens whose own piece the encoder knows; below it, they do not belong together."""


@dataclass(frozen=True)
class TokenRows:
    """Features of all tokens that have pieces, from one or many texts."""

    columns_RK: NDArray[np.int64]
    """Column of each feature; -1 for none."""
    values_RK: NDArray[np.float64]
    token_R: NDArray[np.int64]
    """Number of the token among all tokens of the texts, those without pieces included."""
    num_tokens: int


def num_columns(ngrams: PieceNgrams) -> int:
    """Width of the token features: single pieces at 5 offsets, pairs at 4, classes of characters."""
    return (2 * REACH + 1) * ngrams.num_unigrams + 2 * REACH * ngrams.num_bigrams + len(CHARACTER_CLASSES)


def first_bigram_column(ngrams: PieceNgrams) -> int:
    """Where the columns of pairs begin."""
    return (2 * REACH + 1) * ngrams.num_unigrams


def token_rows(piece_bag: PieceBag, examples: Sequence[TaggedText]) -> TokenRows:
    """Features of every token that a piece stands for.

    Args:
        piece_bag: Vocabulary and tokenizer.
        examples: Texts with their tokens; tags are not read.
    """
    words = [example.words() for example in examples]
    encoded = piece_bag.encoder.encode_token_lists(words)
    # All texts in one row, with enough border between them that no window reaches into a neighbour.
    border = [NOTHING] * REACH
    ids, places, tokens, classes = list(border), [], [], []
    num_tokens = 0
    for text_words, pieces in zip(words, encoded, strict=True):
        for position, (word, first) in enumerate(zip(text_words, pieces.first, strict=True)):
            if first is not None:
                places.append(len(ids) + first)
                tokens.append(num_tokens + position)
                classes.append(character_class(word[0]))
        num_tokens += len(text_words)
        ids.extend(pieces.ids)
        ids.extend(border)
    rows = _window_columns(piece_bag.ngrams, np.array(ids, dtype=np.int64), np.array(places, dtype=np.int64))
    class_columns = num_columns(piece_bag.ngrams) - len(CHARACTER_CLASSES) + np.array(classes, dtype=np.int64)
    return TokenRows(
        np.column_stack([rows[0], class_columns]),
        np.column_stack([rows[1], np.ones(len(places))]),
        np.array(tokens, dtype=np.int64),
        num_tokens,
    )


def _window_columns(
    ngrams: PieceNgrams, ids: NDArray[np.int64], places_R: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns and values of the pieces, then of the pairs, around each place; shapes [R, 9]."""
    columns, values = [], []
    for number, offset in enumerate(range(-REACH, REACH + 1)):
        found = ngrams.unigrams(ids[places_R + offset])
        columns.append(np.where(found >= 0, number * ngrams.num_unigrams + found, NOTHING))
        values.append(ngrams.weights_of(found, bigrams=False))
    start = first_bigram_column(ngrams)
    for number, offset in enumerate(range(-REACH, REACH)):
        found = ngrams.bigrams(ngrams.keys(ids[places_R + offset], ids[places_R + offset + 1]))
        columns.append(np.where(found >= 0, start + number * ngrams.num_bigrams + found, NOTHING))
        values.append(ngrams.weights_of(found, bigrams=True))
    return np.column_stack(columns), np.column_stack(values)


def fit_tokens(inputs: FittingInputs) -> Fitted:
    """Fit the tagger; C is given or chosen on validation.

    Args:
        inputs: Encoder, data and settings.

    Raises:
        ConfigError: The encoder counts words.
        TrainingError: Most training tokens are unknown to the encoder.
    """
    started = time.perf_counter()
    piece_bag = load_piece_bag(inputs.encoder, inputs.data.normalization)
    rows = token_rows(piece_bag, inputs.data.train)
    num_unknown = _check_known(inputs, piece_bag, rows)
    kept = _kept_columns(piece_bag.ngrams, rows)
    features = _matrix(rows, kept, num_columns(piece_bag.ngrams))
    targets = _targets(inputs.data.train, inputs.data.labels)[rows.token_R]
    validation = token_rows(piece_bag, inputs.data.validation)
    validation_features = _matrix(validation, kept, num_columns(piece_bag.ngrams))
    best: tuple[float, float, LinearHead] | None = None
    for C, head in _heads(inputs, features, targets):
        outputs = _outputs(inputs.data.validation, validation, head.logits(validation_features))
        score = validation_score(inputs, outputs)
        if best is None or score > best[0]:
            best = (score, C, head)
    assert best is not None
    _, C, head = best
    seconds = time.perf_counter() - started
    copy_encoder(inputs)
    save_file({"columns": kept, "weight": head.weight, "bias": head.bias}, inputs.model_dir / HEAD)
    return Fitted(
        WeightReport(loaded=("vocabulary", "weights")),
        num_parameters=piece_bag.bag.num_parameters + head.weight.size + head.bias.size,
        metrics={
            "train_seconds": seconds,
            "best_C": C,
            "num_rows_train": float(len(targets)),
            "num_unknown_tokens": float(num_unknown),
            "num_tokens_without_pieces_train": float(rows.num_tokens - len(targets)),
        },
    )


def restore_tokens(model_dir: Path, facts: Mapping[str, Any], task: Task, batch_size: int) -> ScoreInputs:
    """The scoring function of a saved tagger."""
    piece_bag = load_piece_bag(model_dir, read_normalization(model_dir))
    tensors = load_file(model_dir / HEAD)
    head, kept = LinearHead(tensors["weight"], tensors["bias"]), tensors["columns"]

    def score(examples: Sequence[TaggedText]) -> list[TokenScores]:
        rows = token_rows(piece_bag, examples)
        return _outputs(examples, rows, head.logits(_matrix(rows, kept, num_columns(piece_bag.ngrams))))

    return score


def _check_known(inputs: FittingInputs, piece_bag: PieceBag, rows: TokenRows) -> int:
    """Number of training tokens whose own piece is outside the vocabulary, or that have none."""
    known = int((rows.columns_RK[:, REACH] >= 0).sum())
    if known < MINIMUM_KNOWN * rows.num_tokens or not known:
        raise TrainingError(
            f"{inputs.encoder}: only {known} of {rows.num_tokens} training tokens are in its vocabulary. "
            "Remedy: use the data set and the tokenizer that the encoder was fitted with."
        )
    return rows.num_tokens - known


def _kept_columns(ngrams: PieceNgrams, rows: TokenRows) -> NDArray[np.int64]:
    counts = np.bincount(rows.columns_RK[rows.columns_RK >= 0], minlength=num_columns(ngrams))
    least = np.ones(len(counts), dtype=np.int64)
    start = first_bigram_column(ngrams)
    least[start : start + 2 * REACH * ngrams.num_bigrams] = MINIMUM_BIGRAM_COUNT
    return np.flatnonzero(counts >= least)


def _matrix(rows: TokenRows, kept: NDArray[np.int64], width: int) -> csr_matrix:
    """Shape [R, number of kept columns]."""
    # One entry more, so that "no feature" (-1) stays that.
    place = np.full(width + 1, NOTHING)
    place[kept] = np.arange(len(kept))
    return code_matrix(place[rows.columns_RK], rows.values_RK, len(kept))


def _targets(examples: Sequence[TaggedText], tags: Sequence[str]) -> NDArray[np.int64]:
    index = {tag: position for position, tag in enumerate(tags)}
    return np.array([index[tag] for example in examples for tag in example.tags], dtype=np.int64)


def _heads(inputs: FittingInputs, features: csr_matrix, targets: NDArray[np.int64]) -> list[tuple[float, LinearHead]]:
    """A fitted head for every C, each starting from the one before."""
    num_labels = len(inputs.data.labels)
    if len(np.unique(targets)) < 2:
        bias = np.full(num_labels, ABSENT_LABEL_BIAS)
        bias[targets[0]] = 0.0
        return [(C_GRID[0], LinearHead(np.zeros((num_labels, features.shape[1])), bias))]
    solver = LogisticRegression(max_iter=MAX_ITERATIONS, tol=TOLERANCE, warm_start=True)
    grid = C_GRID if inputs.config.C is None else (inputs.config.C,)
    return [(C, head_of(solver.set_params(C=C).fit(features, targets), num_labels)) for C in grid]


def _outputs(examples: Sequence[TaggedText], rows: TokenRows, logits: NDArray[np.float64]) -> list[TokenScores]:
    """Log-probabilities of the tags: a row for every token, that of ``outside_row`` where no piece stands for it."""
    scores = np.tile(outside_row(logits.shape[1]), (rows.num_tokens, 1))
    scores[rows.token_R] = log_softmax(logits, axis=1)
    borders = np.cumsum([len(example.tokens) for example in examples])[:-1]
    return [TokenScores(part) for part in np.split(scores, borders)]
