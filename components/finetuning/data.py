"""Labelled examples: checked as a whole before any model is loaded, then ordered into batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from components.errors import InputError
from components.examples import E, select_ids
from components.formats import Split, read_json
from components.text.normalization import NormalizationConfig

T = TypeVar("T")
POOL_BATCHES = 8
"""Batches drawn together and sorted by length: wide enough to save padding, narrow enough to keep the order random."""
NORMALIZATION_FILE = "normalization.json"


@dataclass(frozen=True)
class TaskData(Generic[E]):
    """The examples of one run and what the task knows about them."""

    labels: list[str]
    """Names of a model's outputs; a name's position is its index, for ever. Classes of a classification, IOB2 tags
    (``tag_names``) of NER, nothing for question answering."""
    train: list[E]
    validation: list[E]
    test: list[E]
    normalization: NormalizationConfig = field(default_factory=NormalizationConfig)
    """The recipe that texts go through before an encoder reads them."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What decoding, scoring and serving must know, as JSON values; goes into the model's ``task.json``."""
    num_unseen_labels: int = 0
    """Validation and test rows whose label is not in ``labels``: no model can be right about them."""


def read_rows(dataset: Path, split: Split, parse: Callable[[Path, int, dict[str, Any]], E]) -> list[E]:
    """The examples of one split.

    Args:
        dataset: Dataset artifact.
        split: Which split.
        parse: File, line and row to the checked example.

    Raises:
        InputError: With file and line: no JSON object, an id that is missing or repeats, an empty split, or what
            ``parse`` finds.
    """
    path = dataset / f"{split}.jsonl"
    return [parse(path, line, _row(path, line, text)) for line, text in _lines_by_id(path, split).values()]


def read_budget(
    dataset: Path, parse: Callable[[Path, int, dict[str, Any]], E], num_train_examples: int | None, seed: int
) -> list[E]:
    """The labelled budget of this run: the same examples as ``select_examples``, and only they are read as JSON.

    Raises:
        InputError: As ``read_rows``, or train has fewer examples.
    """
    path = dataset / "train.jsonl"
    lines = _lines_by_id(path, "train")
    if num_train_examples is not None and num_train_examples > len(lines):
        raise InputError(
            f"num_train_examples is {num_train_examples}, train has {len(lines)} examples",
            file=path,
            remedy="lower num_train_examples or add labelled examples",
        )
    chosen = (lines[name] for name in select_ids(lines, num_train_examples, seed))
    return [parse(path, line, _row(path, line, text)) for line, text in chosen]


_LEADING_ID = re.compile(r'\{"id": ("(?:[^"\\]|\\.)*")[,}]')
"""How a data set stage's rows begin: of a large split most rows are needed for their id only."""


def _lines_by_id(path: Path, split: Split) -> dict[str, tuple[int, str]]:
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a dataset written by a data set stage")
    lines: dict[str, tuple[int, str]] = {}
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line, text in enumerate(stream, 1):
            leading = _LEADING_ID.match(text)
            name = json.loads(leading[1]) if leading else _row(path, line, text)["id"]
            if name in lines:
                raise InputError(f"id {name!r} repeats the one of line {lines[name][0]}", file=path, line=line)
            lines[name] = line, text
    if not lines:
        raise InputError(f"the {split} split has no examples", file=path, remedy="add labelled examples to it")
    return lines


def _row(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise InputError(f"not a JSON value: {error}", file=path, line=line) from error
    if not isinstance(row, dict):
        raise InputError(f"a row is an object, not {str(row)[:40]!r}", file=path, line=line)
    check_fields(path, line, row, ("id",))
    return row


def check_fields(path: Path, line: int, row: dict[str, Any], fields: Sequence[str]) -> None:
    """Refuse a row that lacks a field, or has one that is not a string.

    Raises:
        InputError: With file and line.
    """
    if missing := [name for name in fields if name not in row]:
        raise InputError(
            f"a row needs the fields {', '.join(fields)}; {', '.join(missing)} missing", file=path, line=line
        )
    for name in fields:
        if not isinstance(row[name], str):
            raise InputError(
                f"{name} {row[name]!r} is a {type(row[name]).__name__}, not a string",
                file=path,
                line=line,
                remedy="labels are names, not numbers: quote the value" if name == "label" else "quote the value",
            )


def read_names(dataset: Path, least: int) -> list[str]:
    """The names in ``labels.json``: at least ``least`` distinct strings.

    Raises:
        InputError: A name is not a string, repeats, or there are too few.
    """
    path = dataset / "labels.json"
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a dataset written by a data set stage")
    names = read_json(path)
    if bad := [name for name in names if not isinstance(name, str)]:
        raise InputError(f"label {bad[0]!r} is not a string", file=path, remedy="write names in quotes")
    if len(set(names)) != len(names) or len(names) < least:
        raise InputError(f"{len(names)} labels, {len(set(names))} distinct; at least {least} needed", file=path)
    return list(names)


def read_normalization(folder: Path) -> NormalizationConfig:
    """The recipe in ``normalization.json`` of a data set or model folder; the default one where there is no file.

    Raises:
        InputError: The file holds no recipe.
    """
    path = folder / NORMALIZATION_FILE
    if not path.is_file():
        return NormalizationConfig()
    try:
        return NormalizationConfig(**read_json(path))
    except (TypeError, ValueError) as error:
        raise InputError(f"no normalisation recipe: {error}", file=path) from error


def grouped_batches(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch: shuffled, but of similar length inside a batch so that little is padding.

    Examples are shuffled, sorted by length within pools of ``POOL_BATCHES`` batches, and the batches shuffled again.

    Args:
        lengths: Length of each row in tokens.
        batch_size: Rows per batch; the last one may be smaller.
        seed: With ``epoch`` the only source of randomness, so that any step's batch can be found again.
        epoch: Number of the epoch, from 0.

    Returns:
        Lists of positions; every position occurs exactly once.
    """
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(lengths)).tolist()
    pool = batch_size * POOL_BATCHES
    ordered = [
        position
        for start in range(0, len(shuffled), pool)
        for position in sorted(shuffled[start : start + pool], key=lambda position: lengths[position])
    ]
    batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
    return [batches[index] for index in generator.permutation(len(batches))]


def blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of up to ``size`` items, one list in memory at a time."""
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block
