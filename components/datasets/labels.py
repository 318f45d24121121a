"""Label names: always strings, one set for all splits, decided before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from components.datasets.rows import LabelledText
from components.errors import InputError
from components.examples import SPLITS
from components.formats import Split

FloatPolicy = Literal["refuse", "to_integer", "text"]
_DECIMAL = re.compile(r"[+-]?[0-9]+\.[0-9]*")
_MAX_SHOWN = 12


def label_name(
    value: Any, *, float_labels: FloatPolicy, allowed: Collection[str] | None, file: str | Path, line: int
) -> str:
    """The label of a row as a string.

    Labels are names, never numbers: ``010``, ``1e3``, ``yes`` and ``12:30`` stay as written. Whole numbers of JSON and
    Parquet become their decimal digits. A decimal such as ``1.0`` usually is a class index that a table program turned
    into a float because a value was missing, so it needs a policy.

    Args:
        value: The raw value.
        float_labels: Policy for decimals: refuse, to_integer (1.0 becomes 1) or text (1.0 stays 1.0).
        allowed: The only names accepted, or None.
        file: File for the error.
        line: 1-based line for the error.

    Raises:
        InputError: Empty, of another type, a decimal against the policy, or not among the allowed names.
    """
    name = _as_text(value, file, line)
    if not name:
        raise InputError("label is empty", file=file, line=line, remedy="label the row or remove it")
    if _DECIMAL.fullmatch(name) and float_labels != "text" and (allowed is None or name not in allowed):
        name = _from_decimal(name, float_labels, file, line)
    if allowed is not None and name not in allowed:
        raise InputError(
            f"label {name!r} is not one of {show(allowed)}",
            file=file,
            line=line,
            remedy="correct the row, or add the name to labels",
        )
    return name


def _as_text(value: Any, file: str | Path, line: int) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InputError(f"label {value!r} holds a lone surrogate", file=file, line=line, remedy="correct the row")
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(
            f"label {value!r} is a {type(value).__name__}", file=file, line=line, remedy="write labels as strings"
        )
    return str(value)


def _from_decimal(name: str, policy: FloatPolicy, file: str | Path, line: int) -> str:
    whole, _, fraction = name.partition(".")
    if policy == "to_integer" and not fraction.strip("0"):
        return str(int(whole))
    remedy = "classification needs class names, not measurements"
    if not fraction.strip("0"):
        remedy = "set float_labels: to_integer (1.0 becomes 1) or text (1.0 is the name)"
    raise InputError(f"label {name!r} is a decimal number", file=file, line=line, remedy=remedy)


def show(names: Collection[str]) -> str:
    """Label names for a message: sorted, and cut when there are many."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MAX_SHOWN} more" if len(ordered) > _MAX_SHOWN else ""
    return ", ".join(map(repr, ordered[:_MAX_SHOWN])) + more


def label_set(
    examples: Mapping[Split, Sequence[LabelledText]], allowed: Collection[str] | None, *, stop_on_unseen: bool
) -> tuple[list[str], int]:
    """The one label set of all splits, sorted by code point, and how many held-out rows fall outside the train labels.

    Args:
        examples: Examples of every split.
        allowed: The configured names, or None to take those of the training split.
        stop_on_unseen: Refuse a validation or test label that no training example has; otherwise such rows stay and
            count as wrong, since no model can predict them.

    Raises:
        InputError: Fewer than two labels in train, or an unseen label under ``stop_on_unseen``.
    """
    in_train = {example.label for example in examples["train"]}
    if len(in_train) < 2:
        raise InputError(
            f"the training split has {len(examples['train'])} examples with {len(in_train)} label(s): {show(in_train)}",
            remedy="classification needs at least two labels; check label_column and the split fractions",
        )
    unseen = [(split, example) for split in SPLITS[1:] for example in examples[split] if example.label not in in_train]
    if unseen and stop_on_unseen:
        split, example = unseen[0]
        raise InputError(
            f"{example.place}: label {example.label!r} of the {split} split is not in the training split, which has "
            f"{show(in_train)}; {len(unseen)} such row(s)",
            remedy="correct the rows, add training examples, or set unseen_label: count_as_wrong",
        )
    return sorted(allowed if allowed is not None else in_train), len(unseen)
