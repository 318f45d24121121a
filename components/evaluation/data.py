"""Gold items and predictions of any task, matched one to one by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from components.errors import InputError
from components.examples import OUTSIDE, AnyExample, Example, Question, TaggedText, TaskName, parse_example
from components.formats import numbered_rows
from components.scoring.entities import entities_of

View = Literal["all", "never_leaked"]
Tags = tuple[str, ...]
SHOWN_IDS = 5


@dataclass(frozen=True)
class PredictedAnswer:
    """The predicted answer to one question as far as scoring needs it; "" says that there is none."""

    text: str
    start: int
    end: int


_GOLD_FIELDS: dict[TaskName, dict[str, type]] = {
    "classification": {"id": str, "label": str},
    "ner": {"id": str, "text": str, "tokens": list, "tags": list},
    "question_answering": {"id": str, "text": str, "question": str, "answers": list},
}
_PREDICTED_FIELDS: dict[TaskName, dict[str, type]] = {
    "classification": {"id": str, "label": str},
    "ner": {"id": str, "tags": list},
    "question_answering": {"id": str, "answer": str, "start": int, "end": int},
}
_PREDICTED: dict[TaskName, Callable[[dict[str, Any]], Any]] = {
    "classification": lambda row: row["label"],
    "ner": lambda row: tuple(row["tags"]),
    "question_answering": lambda row: PredictedAnswer(row["answer"], row["start"], row["end"]),
}


def read_gold(path: Path, task: TaskName) -> list[AnyExample]:
    """The gold items of a ``test.jsonl``, in its order.

    Raises:
        InputError: The file is absent or empty, a row is not as expected, or an id repeats; with the line.
    """
    lines = dict[str, int]()
    items = []
    for line, row in _rows(path, _GOLD_FIELDS[task]):
        _check_new(path, line, row["id"], lines)
        item = _parse_gold(path, line, task, row)
        if isinstance(item, TaggedText) and len(item.tags) != len(item.tokens):
            raise InputError(f"{item.id}: {len(item.tags)} tags for {len(item.tokens)} tokens", file=path, line=line)
        items.append(item)
    if not items:
        raise InputError("no test items", file=path, remedy="add labelled examples to the test split")
    return items


def read_matched(path: Path, gold: Sequence[AnyExample], task: TaskName) -> list[Any]:
    """What is predicted for every gold item, in the order of ``gold``: a label, tags, or a ``PredictedAnswer``.

    Raises:
        InputError: A gold item has no prediction or several, a prediction belongs to no gold item, or one does not fit
            its item: another number of tags than tokens, or an answer that is not where it claims to be; names the ids.
    """
    lines, found = dict[str, int](), dict[str, Any]()
    for line, row in _rows(path, _PREDICTED_FIELDS[task]):
        _check_new(path, line, row["id"], lines)
        found[row["id"]] = _PREDICTED[task](row)
    wanted = {item.id for item in gold}
    _refuse(path, "test items have no prediction", [item.id for item in gold if item.id not in found], len(gold))
    _refuse(path, "predictions belong to no test item", [name for name in found if name not in wanted], len(found))
    for item in gold:
        if problem := _misfit(item, found[item.id]):
            raise InputError(f"{item.id}: {problem}", file=path, line=lines[item.id])
    return [found[item.id] for item in gold]


def read_train_entities(dataset: Path) -> frozenset[tuple[str, str]]:
    """Surface and type of every entity of a tagged data set's training split.

    Raises:
        InputError: There is no training split, or a row is not as expected.
    """
    path = dataset / "train.jsonl"
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _train_entities(path, changed)


@lru_cache(maxsize=4)
def _train_entities(path: Path, changed: int) -> frozenset[tuple[str, str]]:
    """Read once for all runs that a process evaluates: the training split may be large."""
    seen = set[tuple[str, str]]()
    for _, row in _rows(path, _GOLD_FIELDS["ner"]):
        text, tokens = row["text"], row["tokens"]
        seen.update(
            (text[tokens[start][0] : tokens[end - 1][1]], name) for name, start, end in entities_of(row["tags"])
        )
    return frozenset(seen)


def select_view(gold: Sequence[AnyExample], view: View) -> NDArray[np.intp]:
    """Positions of the items in a view: all of them, or those that training and pretraining never saw a copy of."""
    return np.array([number for number, item in enumerate(gold) if view == "all" or not item.leaked], dtype=np.intp)


def _parse_gold(path: Path, line: int, task: TaskName, row: dict[str, Any]) -> AnyExample:
    try:
        return parse_example(task, row)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not an example of {task}: {error}", file=path, line=line) from error


def _misfit(item: AnyExample, predicted: Any) -> str:
    """Why a prediction cannot be one for its item; "" when it can."""
    if isinstance(item, Example):
        return ""
    if isinstance(item, Question):
        span = item.text[predicted.start : predicted.end]
        if predicted.text in ("", span):
            return ""
        return f"the answer is {predicted.text!r}, but {predicted.start}:{predicted.end} of the passage is {span!r}"
    if len(predicted) != len(item.tokens):
        return f"{len(predicted)} tags predicted for {len(item.tokens)} tokens; every token must be scored"
    odd = {tag for tag in predicted if tag != OUTSIDE and not (isinstance(tag, str) and tag[:2] in ("B-", "I-"))}
    return f"tags {', '.join(sorted(map(repr, odd)))} are not IOB2" if odd else ""


def _rows(path: Path, fields: dict[str, type]) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise InputError("no such file", file=path)
    for line, row in numbered_rows(path):
        if not isinstance(row, dict) or not all(isinstance(row.get(name), kind) for name, kind in fields.items()):
            raise InputError(f"a row needs {_spell(fields)}", file=path, line=line)
        yield line, row


def _spell(fields: dict[str, type]) -> str:
    """Such as "the strings id and text and the lists tokens and tags"."""
    names = {str: "strings", list: "lists", int: "numbers"}
    groups: dict[str, list[str]] = {}
    for name, kind in fields.items():
        groups.setdefault(names[kind], []).append(name)
    return " and ".join(f"the {kind} {' and '.join(members)}" for kind, members in groups.items())


def _check_new(path: Path, line: int, name: str, lines: dict[str, int]) -> None:
    if name in lines:
        raise InputError(f"id {name!r} repeats the one of line {lines[name]}", file=path, line=line)
    lines[name] = line


def _refuse(path: Path, problem: str, names: list[str], total: int) -> None:
    if names:
        shown = ", ".join(map(repr, names[:SHOWN_IDS])) + (" …" if len(names) > SHOWN_IDS else "")
        raise InputError(
            f"{len(names)} of {total} {problem}: {shown}", file=path, remedy="predict exactly this test split"
        )
