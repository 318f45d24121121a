"""Extractive question answering: examples, serving inputs, decoding, the no-answer threshold, validation scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from components.errors import InputError
from components.examples import Question, parse_example
from components.finetuning.config import QuestionAnsweringConfig
from components.finetuning.data import TaskData, check_fields, read_budget, read_normalization, read_rows
from components.finetuning.inputs import fields_of
from components.finetuning.outputs import SpanScores
from components.finetuning.spans import best_spans
from components.predictions import AnswerCandidate, AnswerPrediction
from components.scoring.answers import answer_scores
from components.text.normalization import NormalizationConfig

THRESHOLD = "no_answer_threshold"
"""Fact of a model: an answer whose ``no_answer_score`` is above it becomes ""; None never does that."""


def read_question_answering(dataset: Path, config: QuestionAnsweringConfig) -> TaskData[Question]:
    """Draw the labelled budget from train and check it, and all of the other splits.

    Args:
        dataset: Dataset artifact.
        config: Settings.

    Raises:
        InputError: Naming file, line and id: an answer that is not where it is said to be, an empty question or
            passage, a repeated id, an empty split, no answer to train on, or a budget that train cannot pay.
    """
    chosen = read_budget(dataset, _parse, config.num_train_examples, config.seed)
    validation, test = read_rows(dataset, "validation", _parse), read_rows(dataset, "test", _parse)
    if not any(answer.start is not None for example in chosen for answer in example.answers):
        raise InputError(
            f"none of the {len(chosen)} training questions has an answer with a place in its passage",
            file=dataset / "train.jsonl",
            remedy="raise num_train_examples, change seed or add questions with answers",
        )
    facts = {
        "language": config.language,
        "max_answer_length": config.max_answer_length,
        "num_candidates": config.num_candidates,
        "unanswerable": any(not example.answers for example in chosen),
        "threshold_metric": config.best_epoch_metric,
        THRESHOLD: None,
    }
    return TaskData([], chosen, validation, test, read_normalization(dataset), facts)


def _parse(path: Path, line: int, row: dict[str, Any]) -> Question:
    check_fields(path, line, row, ("id", "text", "question"))
    try:
        example = parse_example("question_answering", row)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a row needs id, text, question and answers: {error}", file=path, line=line) from error
    assert isinstance(example, Question)
    for name, text in (("question", example.question), ("text", example.text)):
        if not text.strip():
            raise InputError(f"{example.id}: {name} is empty", file=path, line=line)
    for answer in example.answers:
        found = None if answer.start is None else example.text[answer.start : answer.start + len(answer.text)]
        if found is not None and (found != answer.text or not answer.text):
            raise InputError(
                f"{example.id}: answer {answer.text!r} is said to start at {answer.start}, where {found!r} stands",
                file=path,
                line=line,
                remedy="correct start, in code points, or set it to null",
            )
    return example


def parse_question(position: int, value: Any, facts: Mapping[str, Any], normalization: NormalizationConfig) -> Question:
    """A serving input: ``{"question", "text"}``, where the passage may also be called ``context``; without answers.

    Raises:
        InputError: Naming the position.
    """
    if isinstance(value, Mapping) and "context" in value and "text" not in value:
        value = {"text" if name == "context" else name: item for name, item in value.items()}
    fields = fields_of(position, value, required=("question", "text"))
    if not fields["question"].strip():
        raise InputError(f"input {position} has an empty question")
    return Question(str(position), fields["text"], fields["question"], ())


def decode_answers(
    examples: Sequence[Question], outputs: Sequence[SpanScores], facts: Mapping[str, Any]
) -> list[AnswerPrediction]:
    """The best spans of every passage; "" where "no answer" beats them by more than the threshold.

    Args:
        examples: N questions; their answers are not read.
        outputs: Scores of every passage's pieces.
        facts: ``max_answer_length`` and ``num_candidates``, and the threshold, if there is one.
    """
    predictions = [
        _decode(example, output, facts["max_answer_length"], facts["num_candidates"])
        for example, output in zip(examples, outputs, strict=True)
    ]
    return apply_threshold(predictions, facts.get(THRESHOLD))


def _decode(example: Question, output: SpanScores, max_answer_length: int, num_candidates: int) -> AnswerPrediction:
    candidates = []
    for first, last, score in best_spans(output, max_answer_length, num_candidates):
        start, end = int(output.offsets_P2[first, 0]), int(output.offsets_P2[last, 1])
        candidates.append(AnswerCandidate(example.text[start:end], start, end, score))
    if not candidates:
        return AnswerPrediction(example.id, "", 0, 0, 0.0, ())
    best = candidates[0]
    no_answer_score = float(output.null) - best.score
    return AnswerPrediction(example.id, best.text, best.start, best.end, no_answer_score, tuple(candidates))


def apply_threshold(predictions: Sequence[AnswerPrediction], threshold: float | None) -> list[AnswerPrediction]:
    """The predictions, those above the threshold without their answer."""
    if threshold is None:
        return list(predictions)
    return [
        replace(item, answer="", start=0, end=0) if item.no_answer_score > threshold else item for item in predictions
    ]


def tune_threshold(
    examples: Sequence[Question], predictions: Sequence[AnswerPrediction], facts: Mapping[str, Any]
) -> tuple[dict[str, Any], list[AnswerPrediction]]:
    """Choose the no-answer threshold that scores best on these questions (Rajpurkar et al. 2018, section 6).

    The candidates are all that make a difference: below the lowest score, and each score. A model trained on no
    unanswerable question keeps None, and always answers.

    Args:
        examples: Gold questions.
        predictions: Predictions without a threshold.
        facts: ``language``, ``unanswerable`` and ``threshold_metric``.

    Returns:
        The facts with the threshold, and the predictions after it; the highest threshold wins a tie.
    """
    if not facts["unanswerable"] or not predictions:
        return dict(facts), list(predictions)
    metric = 0 if facts["threshold_metric"] == "exact_match" else 1
    answered = np.array(
        [_scores(e, p.answer, facts["language"])[metric] for e, p in zip(examples, predictions, strict=True)]
    )
    silent = np.array([_scores(example, "", facts["language"])[metric] for example in examples])
    scores = np.array([item.no_answer_score for item in predictions])
    order = np.argsort(-scores, kind="stable")
    # Silencing the questions with the k highest scores, for k = 0 … N; only where the score really falls after k.
    gains = np.concatenate([[0.0], np.cumsum((silent - answered)[order])])
    borders = np.concatenate([scores[order], [scores.min() - 1.0]])
    possible = np.concatenate([[True], borders[1:] < borders[:-1]])
    best = int(np.argmax(np.where(possible, gains, -np.inf)))
    threshold = float(borders[best])
    return {**facts, THRESHOLD: threshold}, apply_threshold(predictions, threshold)


def _scores(example: Question, answer: str, language: str) -> tuple[float, float]:
    exact_match, f1 = answer_scores(answer, [item.text for item in example.answers], language)  # type: ignore[arg-type]
    return float(exact_match), float(f1)


def score_answers(
    examples: Sequence[Question], predictions: Sequence[AnswerPrediction], facts: Mapping[str, Any]
) -> dict[str, float]:
    """Mean exact match and F1, each the best over a question's gold answers, by the language's definition."""
    rows = [_scores(e, p.answer, facts["language"]) for e, p in zip(examples, predictions, strict=True)]
    exact_match, f1 = np.mean(rows, axis=0) if rows else (0.0, 0.0)
    return {"f1": float(f1), "exact_match": float(exact_match)}
