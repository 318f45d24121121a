"""The bag-of-words reader: logistic regression on every piece of a passage, once for the start of the answer and once
for its end, over the features of ``linear_span_features``.

A span's score is the sum of the log-odds of its first and last piece. "No answer" is scored by a third logistic
regression on how much of the question is found in the passage at all, when training has questions without an answer.

Legend of shape suffixes: R rows, P pieces of a passage, D dense and K coded features.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from components.errors import TrainingError
from components.examples import Question
from components.finetuning.data import blocks, read_normalization
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreInputs, WeightReport
from components.finetuning.linear import copy_encoder, validation_score
from components.finetuning.linear_pieces import NOTHING, PieceBag, PieceNgrams, code_matrix, load_piece_bag
from components.finetuning.linear_questions import read_question
from components.finetuning.linear_span_features import (
    PassagePieces,
    SpanFeatures,
    column_sizes,
    rare_columns,
    read_passage,
    span_features,
)
from components.finetuning.outputs import SpanScores
from components.finetuning.passages import answer_pieces
from components.finetuning.tasks import Task
from components.text.sentences import Language

C_GRID = (0.01, 0.1, 1.0, 10.0)
"""Inverse regularisation strengths that validation chooses from."""
NULL_C = 1.0
MAX_ROWS = 200_000
"""Pieces to train on, beside all that begin or end a gold answer. Where there are more, every question gets an equal
share, drawn with the run's seed; those drawn stand for the others by their weight."""
MINIMUM_RARE_COUNT = 2
"""Training rows that must share a column of which there are very many."""
MAX_ITERATIONS = 200
TOLERANCE = 1e-4
NEVER = -1e4
"""Score of "no answer" from a model that has seen no question without an answer: below every span, and finite."""
BLOCK = 64
"""Questions whose pieces are held at a time."""


@dataclass(frozen=True)
class SpanHead:
    """Two linear layers over the features of a piece, and one over those of a question."""

    dense_2D: NDArray[np.float64]
    """Start and end, like every array here that begins with 2."""
    columns: NDArray[np.int64]
    """Coded columns that have a weight."""
    coded_2K: NDArray[np.float64]
    bias_2: NDArray[np.float64]
    null_weight: NDArray[np.float64]
    null_bias: NDArray[np.float64]
    """Shape [1]."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What is saved, by field name."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @property
    def num_parameters(self) -> int:
        """Learned numbers."""
        return int(self.dense_2D.size + self.coded_2K.size + 2 + self.null_weight.size + 1)


class SpanScorer:
    """A head with its weights laid out so that scoring is a look-up."""

    def __init__(self, head: SpanHead, num_columns: int) -> None:
        self.head = head
        # One column more, for "no feature" (-1).
        self._coded = np.zeros((num_columns + 1, 2))
        self._coded[head.columns] = head.coded_2K.T

    def score(self, features: SpanFeatures, passage: PassagePieces) -> SpanScores:
        """Scores of one question's passage."""
        head = self.head
        scores_P2 = features.dense_PD.astype(np.float64) @ head.dense_2D.T
        scores_P2 += self._coded[features.codes_PK].sum(axis=1) + head.bias_2
        null = float(features.match @ head.null_weight + head.null_bias[0])
        return SpanScores(passage.offsets_P2, scores_P2[:, 0].copy(), scores_P2[:, 1].copy(), null)


def question_features(
    piece_bag: PieceBag, examples: Sequence[Question], language: Language
) -> Iterator[tuple[Question, PassagePieces, SpanFeatures]]:
    """Passage and features of every question, in order; a passage is read once per block of questions.

    Args:
        piece_bag: Vocabulary and tokenizer.
        examples: Questions with their passages; answers are not read.
        language: Rules for question words and sentences.
    """
    for block in blocks(examples, BLOCK):
        texts = list(dict.fromkeys(example.text for example in block))
        encoded = zip(texts, piece_bag.encoder.encode_texts(texts), strict=True)
        passages = {text: read_passage(text, pieces, language) for text, pieces in encoded}
        questions = piece_bag.encoder.encode_texts([example.question for example in block])
        for example, pieces in zip(block, questions, strict=True):
            question, passage = read_question(example.question, pieces, language), passages[example.text]
            yield example, passage, span_features(piece_bag.ngrams, question, passage)


def fit_spans(inputs: FittingInputs) -> Fitted:
    """Fit the reader; C is given or chosen on validation.

    Args:
        inputs: Encoder, data and settings.

    Raises:
        ConfigError: The encoder counts words.
        TrainingError: No training question has an answer that lies in pieces of its passage.
    """
    started = time.perf_counter()
    piece_bag = load_piece_bag(inputs.encoder, inputs.data.normalization)
    language, num_columns = inputs.facts["language"], sum(column_sizes(piece_bag.ngrams))
    rows = _training_rows(piece_bag, inputs.data.train, language, inputs.config.seed)
    heads = _heads(inputs, piece_bag.ngrams, rows)
    scorers = [SpanScorer(head, num_columns) for _, head in heads]
    outputs: list[list[SpanScores]] = [[] for _ in heads]
    for _, passage, features in question_features(piece_bag, inputs.data.validation, language):
        for scores, scorer in zip(outputs, scorers, strict=True):
            scores.append(scorer.score(features, passage))
    # max keeps the first of equals: the smaller C wins a tie.
    best = max(range(len(heads)), key=lambda number: validation_score(inputs, outputs[number]))
    C, head = heads[best]
    seconds = time.perf_counter() - started
    copy_encoder(inputs)
    save_file(head.tensors(), inputs.model_dir / HEAD)
    return Fitted(
        WeightReport(loaded=("vocabulary", "weights")),
        num_parameters=piece_bag.bag.num_parameters + head.num_parameters,
        metrics={
            "train_seconds": seconds,
            "best_C": C,
            "num_rows_train": float(len(rows.weight_R)),
            **{
                f"num_{reason}": float(len(rows.unused.get(reason, [])))
                for reason in ("answer_without_place", "passage_without_pieces")
            },
        },
        unused=rows.unused,
    )


def restore_spans(model_dir: Path, facts: Mapping[str, Any], task: Task, batch_size: int) -> ScoreInputs:
    """The scoring function of a saved reader."""
    piece_bag = load_piece_bag(model_dir, read_normalization(model_dir))
    scorer = SpanScorer(SpanHead(**load_file(model_dir / HEAD)), sum(column_sizes(piece_bag.ngrams)))

    def score(examples: Sequence[Question]) -> list[SpanScores]:
        rows = question_features(piece_bag, examples, facts["language"])
        return [scorer.score(features, passage) for _, passage, features in rows]

    return score


# --- training --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Pieces to train on."""

    dense_RD: NDArray[np.float32]
    codes_RK: NDArray[np.int64]
    is_border_R2: NDArray[np.bool_]
    """Whether some gold answer starts, and ends, at the piece."""
    weight_R: NDArray[np.float64]
    match: NDArray[np.float64]
    """Features of every question for "no answer", shape [N, NUM_MATCH]."""
    answerable: NDArray[np.bool_]
    unused: dict[str, list[str]]
    """Ids of questions that nothing is learned from, by reason."""


def gold_borders(example: Question, passage: PassagePieces) -> NDArray[np.bool_]:
    """Which pieces start and end some gold answer; shape [P, 2]."""
    borders_P2 = np.zeros((len(passage.ids), 2), dtype=bool)
    for answer in example.answers:
        if answer.start is None:
            continue
        span = answer_pieces(passage.pieces, answer.start, answer.start + len(answer.text))
        if span is not None:
            borders_P2[span, (0, 1)] = True
    return borders_P2


def _training_rows(piece_bag: PieceBag, examples: Sequence[Question], language: Language, seed: int) -> _Rows:
    generator = np.random.default_rng(seed)
    most = max(1, MAX_ROWS // len(examples))
    dense, codes, borders, weights = [], [], [], []
    matches, answerable = [], []
    unused: dict[str, list[str]] = {}
    for example, passage, features in question_features(piece_bag, examples, language):
        matches.append(features.match)
        answerable.append(bool(example.answers))
        borders_P2 = gold_borders(example, passage)
        if not borders_P2.any():
            if example.answers:
                reason = "answer_without_place" if len(passage.ids) else "passage_without_pieces"
                unused.setdefault(reason, []).append(example.id)
            continue
        chosen, weight = _choose(borders_P2[:, 0] | borders_P2[:, 1], most, generator)
        dense.append(features.dense_PD[chosen])
        codes.append(features.codes_PK[chosen])
        borders.append(borders_P2[chosen])
        weights.append(weight)
    if not dense:
        raise TrainingError(
            f"none of {len(examples)} training questions has an answer that lies in pieces of its passage. "
            "Remedy: use the tokenizer that the encoder was fitted with, and answers with a place in the passage."
        )
    return _Rows(
        np.concatenate(dense), np.concatenate(codes), np.concatenate(borders), np.concatenate(weights),
        np.array(matches), np.array(answerable), unused,
    )  # fmt: skip


def _choose(
    is_gold_P: NDArray[np.bool_], most: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Positions of all gold pieces and of up to ``most`` others, and their weights."""
    gold, others = np.flatnonzero(is_gold_P), np.flatnonzero(~is_gold_P)
    drawn = others if len(others) <= most else np.sort(generator.choice(others, most, replace=False))
    weight = len(others) / len(drawn) if len(drawn) else 1.0
    return np.concatenate([gold, drawn]), np.concatenate([np.ones(len(gold)), np.full(len(drawn), weight)])


def _heads(inputs: FittingInputs, ngrams: PieceNgrams, rows: _Rows) -> list[tuple[float, SpanHead]]:
    """A fitted head for every C, each starting from the one before."""
    kept = _kept_columns(ngrams, rows.codes_RK)
    place = np.full(sum(column_sizes(ngrams)) + 1, NOTHING)
    place[kept] = np.arange(len(kept))
    coded = code_matrix(place[rows.codes_RK], None, len(kept))
    features = csr_matrix(hstack([csr_matrix(rows.dense_RD.astype(np.float64)), coded], format="csr"))
    null_weight, null_bias = _fit_null(rows)
    grid = C_GRID if inputs.config.C is None else (inputs.config.C,)
    sides = [_fit_side(features, rows.is_border_R2[:, side], rows.weight_R, grid) for side in (0, 1)]
    heads = []
    for number, C in enumerate(grid):
        weight_2F, bias_2 = (np.stack([side[number][part] for side in sides]) for part in (0, 1))
        num_dense = rows.dense_RD.shape[1]
        head = SpanHead(weight_2F[:, :num_dense], kept, weight_2F[:, num_dense:], bias_2, null_weight, null_bias)
        heads.append((C, head))
    return heads


def _kept_columns(ngrams: PieceNgrams, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    rare = rare_columns(ngrams)
    counts = np.bincount(codes[codes >= 0], minlength=len(rare))
    return np.flatnonzero(counts >= np.where(rare, MINIMUM_RARE_COUNT, 1))


def _fit_side(
    features: csr_matrix, targets: NDArray[np.bool_], weights: NDArray[np.float64], grid: Sequence[float]
) -> list[tuple[NDArray[np.float64], np.float64]]:
    """Weights and bias for every C."""
    if targets.all():
        return [(np.zeros(features.shape[1]), np.float64(0.0)) for _ in grid]
    solver = LogisticRegression(max_iter=MAX_ITERATIONS, tol=TOLERANCE, warm_start=True)
    fitted = []
    for C in grid:
        solver.set_params(C=C).fit(features, targets, sample_weight=weights)
        fitted.append((solver.coef_[0].copy(), np.float64(solver.intercept_[0])))
    return fitted


def _fit_null(rows: _Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log-odds of "no answer" from how well the question is found; ``NEVER`` when training has no such question."""
    if rows.answerable.all():
        return np.zeros(rows.match.shape[1]), np.array([NEVER])
    solver = LogisticRegression(C=NULL_C, max_iter=MAX_ITERATIONS, tol=TOLERANCE).fit(rows.match, ~rows.answerable)
    return solver.coef_[0].copy(), solver.intercept_.copy()
