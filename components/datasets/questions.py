"""Questions as they are read, and the checks that every source shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from components.datasets.rows import text_key
from components.errors import InputError
from components.text.normalization import refuse_surrogates


@dataclass(frozen=True)
class RawAnswer:
    """An answer as it was read."""

    text: str
    start: int
    """Where the source says the text starts in the passage, in code points; may be wrong."""


@dataclass(frozen=True)
class RawQuestion:
    """A question as it was read: its offsets are not checked yet."""

    id: str
    passage: str
    question: str
    answers: tuple[RawAnswer, ...]
    is_impossible: bool
    article: str
    """What the passage is a part of; equal for all passages of one article."""
    file: str
    line: int | None
    """1-based line in the file, if known; 1-based row for hub data."""
    place: str
    """Position in the file, such as ``data[0].paragraphs[3].qas[1]``."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to ask, or nothing to ask about."""
        return not (self.passage.strip() and self.question.strip())

    @property
    def key(self) -> str:
        """What makes two questions the same: passage and question without white space."""
        return f"{text_key(self.passage)}\0{text_key(self.question)}"

    def error(self, message: str, remedy: str) -> InputError:
        """An error that names this question."""
        return InputError(f"{self.place} (id {self.id!r}): {message}", file=self.file, line=self.line, remedy=remedy)


_CORRECT = "correct the question, or set inconsistent: drop"


def check_consistent(question: RawQuestion, counts: Counter[str], *, stop: bool) -> RawQuestion | None:
    """The question without empty answers, or None when it cannot be used; what is dropped is counted.

    Args:
        question: As it was read.
        counts: Receives ``num_answers_empty``.
        stop: Refuse instead.

    Raises:
        InputError: Under ``stop``, an empty answer, a question marked impossible that has answers, or one without
            answers that is not.
    """
    problem = _problem(question)
    if problem is not None and stop:
        raise question.error(problem, _CORRECT)
    kept = tuple(answer for answer in question.answers if answer.text.strip())
    counts["num_answers_empty"] += len(question.answers) - len(kept)
    cleaned = replace(question, answers=kept)
    return cleaned if _problem(cleaned) is None else None


def _problem(question: RawQuestion) -> str | None:
    for number, answer in enumerate(question.answers):
        if not answer.text.strip():
            return f"answers[{number}] has an empty text"
    if question.is_impossible and question.answers:
        return f"marked is_impossible, but has {len(question.answers)} answer(s)"
    if not question.is_impossible and not question.answers:
        return "has no answer and is not marked is_impossible"
    return None


def check_texts(question: RawQuestion) -> None:
    """Refuse lone surrogates anywhere in a question.

    Raises:
        InputError: With file, line and column.
    """
    for text in (question.passage, question.question, *(answer.text for answer in question.answers)):
        refuse_surrogates(text, file=question.file, line=question.line)


def refuse_repeated_ids(questions: Iterable[RawQuestion]) -> None:
    """Refuse a data set in which two questions have one id: one prediction would overwrite the other.

    Raises:
        InputError: Naming both places.
    """
    seen: dict[str, RawQuestion] = {}
    for question in questions:
        if (first := seen.setdefault(question.id, question)) is not question:
            where = f"{first.file}:{first.line}" if first.line is not None else first.file
            raise question.error(
                f"the id is used at {where} ({first.place}) already", "give every question of every split its own id"
            )


def identifier(value: Any) -> str:
    """An id as text: a string that is not blank, or a whole number.

    Raises:
        ValueError: Anything else.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise ValueError(f"id is {value!r}, expected a string")
    return str(value)
