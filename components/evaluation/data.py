"""Gold labels and predictions, matched one to one by id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from components.errors import InputError

View = Literal["all", "never_leaked"]
SHOWN_IDS = 5


@dataclass(frozen=True)
class GoldItem:
    """One test item as far as scoring needs it."""

    id: str
    label: str
    leaked: bool


def read_gold(path: Path) -> list[GoldItem]:
    """The gold items of a ``test.jsonl``, in its order.

    Raises:
        InputError: The file is absent or empty, a row is not as expected, or an id repeats; with the line.
    """
    lines = dict[str, int]()
    items = []
    for line, row in _rows(path, ("id", "label")):
        _check_new(path, line, row["id"], lines)
        items.append(GoldItem(row["id"], row["label"], bool(row.get("leaked", False))))
    if not items:
        raise InputError("no test items", file=path, remedy="add labelled examples to the test split")
    return items


def read_matched(path: Path, gold: list[GoldItem]) -> list[str]:
    """The predicted label of every gold item, in the order of ``gold``.

    Raises:
        InputError: A gold item has no prediction or several, or a prediction belongs to no gold item; names the ids.
    """
    lines, labels = dict[str, int](), dict[str, str]()
    for line, row in _rows(path, ("id", "label")):
        _check_new(path, line, row["id"], lines)
        labels[row["id"]] = row["label"]
    wanted = {item.id for item in gold}
    _refuse(path, "test items have no prediction", [item.id for item in gold if item.id not in labels], len(gold))
    _refuse(path, "predictions belong to no test item", [name for name in labels if name not in wanted], len(labels))
    return [labels[item.id] for item in gold]


def select_view(gold: list[GoldItem], view: View) -> NDArray[np.intp]:
    """Positions of the items in a view: all of them, or those that training and pretraining never saw a copy of."""
    return np.array([number for number, item in enumerate(gold) if view == "all" or not item.leaked], dtype=np.intp)


def _rows(path: Path, names: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise InputError("no such file", file=path)
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line, text in enumerate(stream, 1):
            try:
                row = json.loads(text)
            except ValueError as error:
                raise InputError(f"not a JSON value: {error}", file=path, line=line) from error
            if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in names):
                raise InputError(f"a row needs the strings {' and '.join(names)}", file=path, line=line)
            yield line, row


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
