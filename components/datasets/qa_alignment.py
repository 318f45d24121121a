"""The answers of questions in their passages: the policy for misaligned ones, and the report that names each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from components.datasets.alignment import Alignment, align
from components.datasets.questions import RawAnswer, RawQuestion
from components.examples import Answer

Policy = Literal["repair", "stop", "skip_answer"]


@dataclass(frozen=True)
class Misaligned:
    """An answer that is not where its offset says."""

    id: str
    file: str
    place: str
    given_start: int
    expected: str
    """The answer's text."""
    found: str
    """What the passage holds there."""
    nearest: int | None
    """Where the nearest occurrence is, in code points; None where there is none."""
    unit: str | None
    """The unit in which the offset would be right."""
    outcome: Literal["repaired", "unplaced", "skipped"]

    def describe(self) -> str:
        """In words, for a message."""
        where = "nowhere in the passage" if self.nearest is None else f"nearest at {self.nearest}"
        unit = f"; the offset counts {self.unit}, expected are code points" if self.unit else ""
        return f"answer {self.expected[:40]!r} at {self.given_start}: found {self.found!r}, {where}{unit}"


def align_answers(
    question: RawQuestion, policy: Policy, counts: Counter[str], misaligned: list[Misaligned]
) -> tuple[Answer, ...]:
    """The answers with checked starts; misaligned ones are treated by the policy, counted and named.

    Returns:
        The answers to keep, in their order; a repaired one has the text of the passage.
    """
    kept = []
    for number, answer in enumerate(question.answers):
        alignment = align(question.passage, answer.text, answer.start)
        if alignment.outcome == "exact":
            counts["num_answers_exact"] += 1
            kept.append(Answer(alignment.text, alignment.start))
            continue
        outcome: Literal["repaired", "unplaced", "skipped"] = (
            "skipped" if policy == "skip_answer" else alignment.outcome
        )
        counts[f"num_answers_{outcome}"] += 1
        misaligned.append(_finding(question, number, answer, alignment, outcome))
        if outcome != "skipped":
            kept.append(Answer(alignment.text, alignment.start))
    return tuple(kept)


def _finding(
    question: RawQuestion,
    number: int,
    answer: RawAnswer,
    alignment: Alignment,
    outcome: Literal["repaired", "unplaced", "skipped"],
) -> Misaligned:
    return Misaligned(
        id=question.id,
        file=question.file,
        place=f"{question.place}.answers[{number}]",
        given_start=answer.start,
        expected=answer.text,
        found=alignment.found,
        nearest=alignment.nearest,
        unit=alignment.unit,
        outcome=outcome,
    )


def refuse_misaligned(questions: Sequence[RawQuestion], misaligned: Sequence[Misaligned]) -> None:
    """Stop at misaligned answers: name the first, count the others.

    Raises:
        InputError: There is one.
    """
    if misaligned:
        first = misaligned[0]
        question = next(q for q in questions if q.id == first.id)
        raise question.error(
            f"{first.describe()}; {len(misaligned)} such answer(s)",
            "correct the offsets, or set misaligned: repair or skip_answer",
        )


def report_rows(misaligned: Sequence[Misaligned], names: dict[str, str]) -> list[dict[str, Any]]:
    """Rows for ``misaligned.jsonl``, with the short names of files."""
    return [{**asdict(finding), "file": names.get(finding.file, finding.file)} for finding in misaligned]
