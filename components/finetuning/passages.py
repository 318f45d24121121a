"""A question and the windows of its passage: where the answer lies, and how the windows' scores become one passage's.

A window's output has one column for "no answer here" and one for each piece. Windows that hold the answer learn its
first and last piece; windows that do not, learn column 0. Of an answerable question whose answer fits in no window
nothing is learned: it is counted and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from components.artifacts import digest_bytes
from components.errors import InputError
from components.examples import Question
from components.finetuning.config import SPECIAL_TOKENS_OF_A_PAIR
from components.finetuning.outputs import SpanScores
from components.finetuning.readers import RowOutput
from components.finetuning.rows import Rows
from components.finetuning.windows import cut_windows, window_of_most_context

if TYPE_CHECKING:
    from components.encoders.pieces import PieceEncoder, Pieces

NULL_COLUMN = 0


@dataclass(frozen=True)
class Passage:
    """A question with its passage in windows."""

    question: list[int]
    """The tokenizer's pieces."""
    pieces: Pieces
    windows: list[tuple[int, int]]
    """Start and end of each window in pieces; none for a passage without pieces."""

    def owned(self) -> list[NDArray[np.int64]]:
        """For each window the pieces it speaks for."""
        owner = window_of_most_context(self.windows, len(self.pieces.ids))
        return [np.flatnonzero(owner == number) for number in range(len(self.windows))]


def read_passages(
    encoder: PieceEncoder, examples: Sequence[Question], max_seq_length: int, max_question_length: int, overlap: int
) -> list[Passage]:
    """Questions and passages in pieces, cut into windows that leave room for the question.

    Every family uses the same windows, those of ``[CLS] question [SEP] window [SEP]``, so that what one rung gets to
    see another does too.

    Raises:
        InputError: A question is longer than ``max_question_length``; with id, length and limit.
    """
    questions = encoder.encode_texts([example.question for example in examples])
    passages = []
    for example, question, pieces in zip(
        examples, questions, encoder.encode_texts([example.text for example in examples]), strict=True
    ):
        if len(question.ids) > max_question_length:
            raise InputError(
                f"question {example.id} has {len(question.ids)} pieces, the limit is {max_question_length}",
                remedy="raise max_question_length (and max_seq_length) or shorten the question",
            )
        room = max_seq_length - SPECIAL_TOKENS_OF_A_PAIR - len(question.ids)
        windows = cut_windows(len(pieces.ids), room, overlap) if pieces.ids else []
        passages.append(Passage(question.ids, pieces, windows))
    return passages


def answer_pieces(pieces: Pieces, start: int, end: int) -> tuple[int, int] | None:
    """First and last piece that overlap ``passage[start:end]``; None when no piece does."""
    offsets = np.asarray(pieces.offsets, dtype=np.int64).reshape(-1, 2)
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


@dataclass(frozen=True)
class Targets:
    """What the windows of one question learn."""

    columns: dict[int, tuple[int, int]]
    """Number of a window to the columns of start and end."""
    problem: str = ""
    """Why nothing is learned."""
    num_left_out: int = 0
    """Windows without the answer that are not trained on."""


def make_targets(example: Question, passage: Passage, *, keep_all: bool) -> Targets:
    """Where each window's answer is: that of the first gold answer which lies whole in some window.

    Args:
        example: Gold question.
        passage: The same in windows.
        keep_all: Learn from every window without the answer. Otherwise one per question is drawn by its id: a set
            without unanswerable questions needs them only to tell windows apart.
    """
    if not passage.windows:
        return Targets({}, "passage_without_pieces")
    if not example.answers:
        return Targets(dict.fromkeys(range(len(passage.windows)), (NULL_COLUMN, NULL_COLUMN)))
    spans = [
        answer_pieces(passage.pieces, answer.start, answer.start + len(answer.text))
        for answer in example.answers
        if answer.start is not None
    ]
    placed = [span for span in spans if span is not None]
    if not placed:
        return Targets({}, "answer_without_place")
    for first, last in placed:
        holding = {
            number: (first - start + 1, last - start + 1)
            for number, (start, end) in enumerate(passage.windows)
            if start <= first and last < end
        }
        if holding:
            return _with_empty_windows(example, passage, holding, keep_all=keep_all)
    return Targets({}, "answer_in_no_window")


def _with_empty_windows(
    example: Question, passage: Passage, holding: dict[int, tuple[int, int]], *, keep_all: bool
) -> Targets:
    empty = [number for number in range(len(passage.windows)) if number not in holding]
    kept = empty
    if empty and not keep_all:
        kept = [empty[int(digest_bytes(example.id.encode())[:8], 16) % len(empty)]]
    columns = holding | dict.fromkeys(kept, (NULL_COLUMN, NULL_COLUMN))
    return Targets(columns, num_left_out=len(empty) - len(kept))


def assemble_spans(made: Rows, outputs: Sequence[RowOutput]) -> list[SpanScores]:
    """Scores of every passage's pieces, each from the window of most context; "no answer" from the window that
    believes in it least.

    Args:
        made: Rows, whose contexts are the passages.
        outputs: For each row, shape [1 + pieces in the window, 2]: column 0, then the pieces; start and end.
    """
    scores = [np.full((len(passage.pieces.ids), 2), -np.inf, dtype=np.float32) for passage in made.contexts]
    nulls = [np.inf] * len(made.contexts)
    for row, output in zip(made.rows, outputs, strict=True):
        scores[row.example][row.places] = output[row.sources]
        nulls[row.example] = min(nulls[row.example], float(output[NULL_COLUMN].sum()))
    return [
        SpanScores(
            np.asarray(passage.pieces.offsets, dtype=np.int64).reshape(-1, 2),
            columns[:, 0],
            columns[:, 1],
            null if np.isfinite(null) else 0.0,
        )
        for passage, columns, null in zip(made.contexts, scores, nulls, strict=True)
    ]
