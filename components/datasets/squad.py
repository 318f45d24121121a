"""SQuAD-shaped JSON (Rajpurkar et al. 2016, 2018), as CMRC-2018 (Cui et al. 2019) and DRCD (Shao et al. 2018) have it.

``{"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}],
"is_impossible"}]}]}]}``. Offsets count code points. Other keys are ignored.
"""

from __future__ import annotations

import bisect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.datasets.encodings import decode, read_bytes
from components.datasets.questions import RawAnswer, RawQuestion, identifier
from components.errors import InputError

_SHAPE = 'SQuAD shape is {"data": [{"paragraphs": [{"context": ..., "qas": [{"id", "question", "answers"}]}]}]}'
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)')
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}


def read_squad(path: Path, encoding: str = "utf-8") -> list[RawQuestion]:
    """All questions of a file, in order.

    Args:
        path: JSON file, also ``.gz``.
        encoding: Its encoding, decoded strictly.

    Raises:
        InputError: Not JSON, another shape, or a missing id; with the line where known and the place in the file.
    """
    text = decode(read_bytes(path), encoding, path).text
    try:
        root = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON ({error.msg} at column {error.colno})", file=path, line=error.lineno, remedy=_SHAPE
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})", file=path, remedy=_SHAPE) from error
    reader = _Reader(path, _lines_of_ids(text))
    questions = list(reader.questions(root))
    if not questions:
        raise InputError("holds no question", file=path, remedy=_SHAPE)
    return questions


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _lines_of_ids(text: str) -> dict[str, list[int]]:
    """The 1-based lines on which an ``"id"`` with a value stands, by value, in order."""
    breaks = [match.start() for match in re.finditer("\n", text)]
    lines: dict[str, list[int]] = defaultdict(list)
    for match in _ID.finditer(text):
        lines[str(json.loads(match[1]))].append(bisect.bisect_left(breaks, match.start()) + 1)
    return lines


@dataclass(frozen=True)
class _Reader:
    """Walks one parsed file; the path and lines are what errors are placed by."""

    path: Path
    lines: dict[str, list[int]]

    def questions(self, root: Any) -> Iterator[RawQuestion]:
        self._expect(root, dict, "the file")
        for number, article in enumerate(self._get(root, "data", list, "the file")):
            place = f"data[{number}]"
            self._expect(article, dict, place)
            paragraphs = self._get(article, "paragraphs", list, place)
            key = _article_key(paragraphs)
            for index, paragraph in enumerate(paragraphs):
                yield from self._paragraph(paragraph, f"{place}.paragraphs[{index}]", key)

    def _paragraph(self, paragraph: Any, place: str, article: str) -> Iterator[RawQuestion]:
        self._expect(paragraph, dict, place)
        passage = self._get(paragraph, "context", str, place)
        for index, row in enumerate(self._get(paragraph, "qas", list, place)):
            yield self._question(row, f"{place}.qas[{index}]", passage, article)

    def _question(self, row: Any, place: str, passage: str, article: str) -> RawQuestion:
        self._expect(row, dict, place)
        try:
            name = identifier(row.get("id"))
        except ValueError as error:
            raise self._error(place, str(error), "give every question its own id") from error
        impossible = self._get(row, "is_impossible", bool, place) if "is_impossible" in row else False
        answers = self._get(row, "answers", list, place) if "answers" in row or not impossible else []
        found = self.lines.get(name)
        return RawQuestion(
            id=name,
            passage=passage,
            question=self._get(row, "question", str, place),
            answers=tuple(self._answer(answer, f"{place}.answers[{n}]") for n, answer in enumerate(answers)),
            is_impossible=impossible,
            article=article,
            file=str(self.path),
            line=found.pop(0) if found and len(found) > 1 else found[0] if found else None,
            place=place,
        )

    def _answer(self, answer: Any, place: str) -> RawAnswer:
        self._expect(answer, dict, place)
        return RawAnswer(self._get(answer, "text", str, place), self._get(answer, "answer_start", int, place))

    def _get(self, record: dict[str, Any], key: str, kind: type, place: str) -> Any:
        if key not in record:
            raise self._error(place, f"no {key!r}, found {', '.join(map(repr, record)) or 'nothing'}", _SHAPE)
        value = record[key]
        return self._expect(value, kind, f"{place}.{key}" if place != "the file" else key)

    def _expect(self, value: Any, kind: type, place: str) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._error(place, f"{json.dumps(value, ensure_ascii=False)[:40]} is not {_KINDS[kind]}", _SHAPE)
        return value

    def _error(self, place: str, message: str, remedy: str) -> InputError:
        return InputError(f"{place}: {message}", file=self.path, remedy=remedy)


def _article_key(paragraphs: list[Any]) -> str:
    """The passages of an article: what its split is decided by."""
    return "\0".join(str(row.get("context")) if isinstance(row, dict) else "" for row in paragraphs)
