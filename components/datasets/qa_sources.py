"""Sources of questions: package data, local files and the hub, all as raw questions by split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.datasets.cloze import ClozeQuestion, build_questions
from components.datasets.cloze_articles import Article, read_articles
from components.datasets.hub import hub_splits
from components.datasets.packages import package_files
from components.datasets.qa_config import ClozeRules, QuestionAnsweringDatasetConfig
from components.datasets.questions import RawAnswer, RawQuestion, identifier
from components.datasets.rows import require_columns, source_names
from components.datasets.squad import read_squad
from components.errors import InputError
from components.formats import Split

HUB_COLUMNS = ("id", "question", "context", "answers")


@dataclass(frozen=True)
class QuestionSource:
    """Everything a configuration names, as it was read."""

    parts: dict[Split, list[RawQuestion]]
    built: dict[str, ClozeQuestion] = field(default_factory=dict)
    """For built questions what they were built from, by id."""
    num_duplicates: int = 0
    """Built questions that were left out because another has the same passage and wording."""


def read_questions(config: QuestionAnsweringDatasetConfig) -> QuestionSource:
    """Read everything the configuration names.

    Raises:
        InputError: A missing, damaged or ill-formed file, or a data set that cannot be loaded.
    """
    if config.source == "package":
        return _read_package(config.cloze)
    if config.source == "files":
        return QuestionSource(_read_files(config))
    return QuestionSource(_read_hub(config))


def _read_files(config: QuestionAnsweringDatasetConfig) -> dict[Split, list[RawQuestion]]:
    paths = config.split_files()
    source_names(list(paths.values()))  # refuses one file for two splits
    return {split: read_squad(path, config.encoding) for split, path in paths.items()}


# --- package ---------------------------------------------------------------------------------------------------------


def _read_package(rules: ClozeRules) -> QuestionSource:
    path = package_files("people_daily")[0]
    questions: dict[str, RawQuestion] = {}
    built: dict[str, ClozeQuestion] = {}
    num_duplicates = 0
    per_line: Counter[int] = Counter()
    for article in read_articles(path):
        for cloze in build_questions(article, rules):
            per_line[cloze.line] += 1
            question = _raw_question(cloze, article, path, per_line[cloze.line])
            if question.key in questions:
                num_duplicates += 1
                continue
            questions[question.key] = question
            built[question.id] = cloze
    return QuestionSource({"train": list(questions.values())}, built, num_duplicates)


def _raw_question(cloze: ClozeQuestion, article: Article, path: Path, number: int) -> RawQuestion:
    return RawQuestion(
        id=f"{path.name}:{cloze.line}.{number}",
        passage=cloze.passage,
        question=cloze.question,
        answers=tuple(RawAnswer(cloze.answer, start) for start in cloze.starts),
        is_impossible=False,
        article=article.text,
        file=str(path),
        line=cloze.line,
        place=f"question {number}",
    )


# --- hub -------------------------------------------------------------------------------------------------------------


def _read_hub(config: QuestionAnsweringDatasetConfig) -> dict[Split, list[RawQuestion]]:
    with hub_splits(config) as splits:
        return {split: _hub_questions(rows, name, str(config.hub_id)) for split, (name, rows) in splits.items()}


def _hub_questions(rows: Any, split: str, hub_id: str) -> list[RawQuestion]:
    columns = list(rows.column_names)
    require_columns(HUB_COLUMNS, columns, f"{hub_id} split {split}", None)
    wanted = [name for name in (*HUB_COLUMNS, "title", "is_impossible") if name in columns]
    return [_hub_question(row, number, split) for number, row in enumerate(rows.select_columns(wanted), 1)]


def _hub_question(row: dict[str, Any], number: int, split: str) -> RawQuestion:
    try:
        name = identifier(row["id"])
        answers = _hub_answers(row["answers"])
        for key in ("context", "question"):
            if not isinstance(row[key], str):
                raise ValueError(f"{key} is {row[key]!r}, expected a string")
    except ValueError as error:
        raise InputError(str(error), file=split, line=number, remedy="the columns must be those of SQuAD") from error
    impossible = row.get("is_impossible")
    return RawQuestion(
        id=name,
        passage=row["context"],
        question=row["question"],
        answers=answers,
        # SQuAD 2.0 on the hub has no such column: there, empty answers say it.
        is_impossible=not answers if impossible is None else bool(impossible),
        article=str(row.get("title") or row["context"]),
        file=split,
        line=number,
        place=f"row {number}",
    )


def _hub_answers(value: Any) -> tuple[RawAnswer, ...]:
    try:
        pairs = list(zip(value["text"], value["answer_start"], strict=True))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"answers is {value!r:.80}, expected {{'text': [...], 'answer_start': [...]}}") from error
    for text, start in pairs:
        if not isinstance(text, str) or isinstance(start, bool) or not isinstance(start, int):
            raise ValueError(f"answer {text!r} at {start!r}, expected a string and a whole number")
    return tuple(RawAnswer(text, start) for text, start in pairs)
