"""Labelled examples of every task, as the data set stages write them and everything later reads them.

A data set artifact holds ``train.jsonl``, ``validation.jsonl``, ``test.jsonl`` (one example a line), ``task.json`` with
the task's name, and ``labels.json`` for tasks that have labels. Offsets count code points of the example's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from components.artifacts import digest_bytes
from components.errors import ArtifactError
from components.formats import Split, read_json, read_jsonl, write_json, write_jsonl

TaskName = Literal["classification", "ner", "question_answering"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
SOURCE_SENTENCES = "source_sentences.jsonl"
"""Beside a data set of built questions: the sentence each was made from, which its passage lacks; id and text."""
OUTSIDE = "O"
"""The tag of a token in no entity."""


@dataclass(frozen=True)
class Example:
    """A labelled text, or pair of texts; ``id`` is ``file:line`` of its source line and survives to the prediction."""

    id: str
    text: str
    label: str
    leaked: bool = False
    """A copy or near copy of this text was in the training or validation split before the audit removed it."""
    text_pair: str | None = None
    """The second text of a pair, such as an answer to a question or a hypothesis to a premise."""


@dataclass(frozen=True)
class TaggedText:
    """A text whose tokens carry tags: B-TYPE, I-TYPE or O (IOB2; Ramshaw & Marcus 1995, Tjong Kim Sang 2002)."""

    id: str
    text: str
    tokens: tuple[tuple[int, int], ...]
    """Start and end of every token in ``text``, in order, never empty: characters for Chinese, words for English."""
    tags: tuple[str, ...]
    """One tag a token, a legal sequence: I-TYPE follows B-TYPE or I-TYPE only."""
    leaked: bool = False
    """As in ``Example``."""

    def words(self) -> list[str]:
        """The tokens as strings."""
        return [self.text[start:end] for start, end in self.tokens]


@dataclass(frozen=True)
class Answer:
    """One gold answer."""

    text: str
    start: int | None
    """Where ``text`` starts in the passage; None when it is nowhere, so that no span can be trained on."""


@dataclass(frozen=True)
class Question:
    """A question over a passage; no answers at all mean that the passage does not answer it (SQuAD 2.0)."""

    id: str
    text: str
    """The passage."""
    question: str
    answers: tuple[Answer, ...]
    leaked: bool = False
    """As in ``Example``."""


AnyExample: TypeAlias = Example | TaggedText | Question
E = TypeVar("E", Example, TaggedText, Question)


def _parse_example(row: dict[str, Any]) -> Example:
    return Example(**row)


def _parse_tagged(row: dict[str, Any]) -> TaggedText:
    tokens = tuple((start, end) for start, end in row["tokens"])
    return TaggedText(**{**row, "tokens": tokens, "tags": tuple(row["tags"])})


def _parse_question(row: dict[str, Any]) -> Question:
    return Question(**{**row, "answers": tuple(Answer(**answer) for answer in row["answers"])})


_PARSERS: dict[TaskName, Callable[[dict[str, Any]], AnyExample]] = {
    "classification": _parse_example,
    "ner": _parse_tagged,
    "question_answering": _parse_question,
}


def write_task(dataset: Path, task: TaskName) -> None:
    """Write ``task.json``: which task a data set is for."""
    write_json(dataset / "task.json", {"task": task})


def read_task(dataset: Path) -> TaskName:
    """The task of a data set.

    Raises:
        ArtifactError: The folder is no data set artifact.
    """
    path = dataset / "task.json"
    if not path.is_file():
        raise ArtifactError(f"{dataset} holds no task.json: not a data set artifact")
    task = read_json(path)["task"]
    if task not in _PARSERS:
        raise ArtifactError(f"{path}: unknown task {task!r}, expected one of {', '.join(_PARSERS)}")
    return task  # type: ignore[no-any-return]


def write_examples(dataset: Path, split: Split, examples: Iterable[AnyExample]) -> int:
    """Write ``<split>.jsonl``; returns the number of examples."""
    return write_jsonl(dataset / f"{split}.jsonl", (asdict(example) for example in examples))


def parse_example(task: TaskName, row: dict[str, Any]) -> AnyExample:
    """The example in one row of a task's data set."""
    return _PARSERS[task](row)


def read_any_examples(dataset: Path, split: Split) -> list[AnyExample]:
    """Read the examples of one split, of whatever task the data set is for."""
    task = read_task(dataset)
    return [parse_example(task, row) for row in read_jsonl(dataset / f"{split}.jsonl")]


def read_examples(dataset: Path, split: Split) -> list[Example]:
    """Read the classification examples of one split."""
    return [_parse_example(row) for row in read_jsonl(dataset / f"{split}.jsonl")]


def select_examples(examples: list[E], num_examples: int | None, seed: int) -> list[E]:
    """The labelled budget of a run: the first ``num_examples`` in the order of SHA-256(seed, id).

    The same seed gives every rung the same subset, and a smaller subset is contained in every larger one.
    """
    by_id = {example.id: example for example in examples}
    return [by_id[name] for name in select_ids(by_id, num_examples, seed)]


def select_ids(ids: Iterable[str], num_examples: int | None, seed: int) -> list[str]:
    """The ids of the labelled budget, in its order; see ``select_examples``."""
    return sorted(ids, key=lambda name: digest_bytes(f"{seed}:{name}".encode()))[:num_examples]


def write_labels(dataset: Path, labels: Iterable[str]) -> None:
    """Write ``labels.json``: the names, sorted, whose positions are the indices; classes, or entity types for NER."""
    write_json(dataset / "labels.json", sorted(labels))


def read_labels(dataset: Path) -> list[str]:
    """The names in ``labels.json``: classes of a classification, entity types of NER."""
    return [str(label) for label in read_json(dataset / "labels.json")]


def tag_names(entity_types: Iterable[str]) -> list[str]:
    """All IOB2 tags of the entity types: O first, then B- and I- of each type in order; a position is a tag's index."""
    return [OUTSIDE, *(f"{prefix}-{name}" for name in entity_types for prefix in ("B", "I"))]
