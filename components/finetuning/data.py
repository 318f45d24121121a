"""Labelled texts: checked as a whole before any model is loaded, then ordered into batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from components.errors import InputError
from components.examples import Example, select_examples
from components.formats import Split, read_json

UnseenLabel = Literal["stop", "count_as_wrong"]
POOL_BATCHES = 8
"""Batches drawn together and sorted by length: wide enough to save padding, narrow enough to keep the order random."""


@dataclass(frozen=True)
class TaskData:
    """The examples of one run; a label's position in ``labels`` is its class index, for ever."""

    labels: list[str]
    train: list[Example]
    validation: list[Example]
    test: list[Example]
    num_unseen_labels: int = 0
    """Validation and test rows whose label is not in ``labels``: no model can be right about them."""


def read_task_data(
    dataset: Path, num_train_examples: int | None, seed: int, unseen_label: UnseenLabel = "stop"
) -> TaskData:
    """Read and check every split, then draw the labelled budget from train.

    Args:
        dataset: Dataset artifact.
        num_train_examples: Labelled budget; None takes all of train.
        seed: Chooses the subset, the same one for every family of encoders.
        unseen_label: What to do with a validation or test label outside ``labels.json``.

    Raises:
        InputError: Naming file, line and value: a label outside ``labels.json`` or not a string, a repeated id, an
            empty split, fewer than two labels, or a budget that train cannot pay.
    """
    labels = read_label_names(dataset)
    train = read_split(dataset, "train", labels)
    if num_train_examples is not None and num_train_examples > len(train):
        raise InputError(
            f"num_train_examples is {num_train_examples}, train has {len(train)} examples",
            file=dataset / "train.jsonl",
            remedy="lower num_train_examples or add labelled examples",
        )
    chosen = select_examples(train, num_train_examples, seed)
    if len({example.label for example in chosen}) < 2:
        raise InputError(
            f"all {len(chosen)} training examples carry the label {chosen[0].label!r}: nothing to tell apart",
            file=dataset / "train.jsonl",
            remedy="raise num_train_examples, change seed or add examples of another label",
        )
    allowed = labels if unseen_label == "stop" else None
    validation, test = read_split(dataset, "validation", allowed), read_split(dataset, "test", allowed)
    num_unseen_labels = sum(example.label not in labels for example in [*validation, *test])
    return TaskData(labels, chosen, validation, test, num_unseen_labels)


def read_label_names(dataset: Path) -> list[str]:
    """The label names of a dataset, at least two distinct strings.

    Raises:
        InputError: A name is not a string, repeats, or there are fewer than two.
    """
    path = dataset / "labels.json"
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a dataset written by prepare_dataset")
    names = read_json(path)
    if bad := [name for name in names if not isinstance(name, str)]:
        raise InputError(f"label {bad[0]!r} is not a string", file=path, remedy="write names in quotes")
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"{len(names)} labels, {len(set(names))} distinct; at least two are needed", file=path)
    return list(names)


def read_split(dataset: Path, split: Split, labels: Sequence[str] | None) -> list[Example]:
    """The examples of one split, each checked against the label names; None allows any name.

    Raises:
        InputError: With file and line; see ``read_task_data``.
    """
    path = dataset / f"{split}.jsonl"
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a dataset written by prepare_dataset")
    allowed, lines = None if labels is None else set(labels), dict[str, int]()
    examples = []
    for line, row in _numbered_rows(path):
        example = _check_row(path, line, row, allowed)
        if example.id in lines:
            raise InputError(f"id {example.id!r} repeats the one of line {lines[example.id]}", file=path, line=line)
        lines[example.id] = line
        examples.append(example)
    if not examples:
        raise InputError(f"the {split} split has no examples", file=path, remedy="add labelled examples to it")
    return examples


def _numbered_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line, text in enumerate(stream, 1):
            try:
                yield line, json.loads(text)
            except ValueError as error:
                raise InputError(f"not a JSON value: {error}", file=path, line=line) from error


def _check_row(path: Path, line: int, row: Any, allowed: set[str] | None) -> Example:
    if not isinstance(row, dict) or not {"id", "text", "label"} <= row.keys():
        raise InputError("a row needs the fields id, text and label", file=path, line=line)
    for name in ("id", "text", "label"):
        if not isinstance(row[name], str):
            raise InputError(
                f"{name} {row[name]!r} is a {type(row[name]).__name__}, not a string",
                file=path,
                line=line,
                remedy="labels are names, not numbers: quote the value" if name == "label" else "quote the value",
            )
    if allowed is not None and row["label"] not in allowed:
        shown = ", ".join(repr(name) for name in sorted(allowed)[:20])
        raise InputError(
            f"label {row['label']!r} is not in labels.json: {shown}",
            file=path,
            line=line,
            remedy="correct the label, or set unseen_label: count_as_wrong if it is a validation or test label",
        )
    return Example(row["id"], row["text"], row["label"], bool(row.get("leaked", False)))


def grouped_batches(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch: shuffled, but of similar length inside a batch so that little is padding.

    Examples are shuffled, sorted by length within pools of ``POOL_BATCHES`` batches, and the batches shuffled again.

    Args:
        lengths: Length of each example in tokens.
        batch_size: Examples per batch; the last one may be smaller.
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


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cut a stream of texts into lists of up to ``size``, one in memory at a time."""
    stream = iter(texts)
    while window := list(islice(stream, size)):
        yield window
