"""Checks of what a caller gives a model to predict; every message names the input's position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import InputError
from components.text.normalization import NormalizationConfig, normalize


def check_text(position: int, value: Any, name: str = "text") -> str:
    """The value, if it is a string that can be written as UTF-8.

    Raises:
        InputError: Naming the position.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} {position} is a {type(value).__name__}, not a string", remedy="give strings")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} {position} holds a lone surrogate at character {error.start}",
            remedy="repair the text's encoding",
        ) from error
    return value


def fields_of(position: int, value: Any, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, str]:
    """The string fields of an input that is an object; a field that is None counts as absent.

    Raises:
        InputError: It is no object, lacks a field, or has one it should not have; names the position.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"input {position} is a {type(value).__name__}, not an object with {', '.join(required)}")
    present = {name: item for name, item in value.items() if item is not None}
    missing = [name for name in required if name not in present]
    unknown = sorted(map(str, present.keys() - {*required, *optional}))
    if missing or unknown:
        raise InputError(
            f"input {position} needs {', '.join(required)}"
            + (f"; {', '.join(missing)} missing" if missing else "")
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
        )
    return {name: check_text(position, item, name) for name, item in present.items()}


def clean_text(position: int, text: str, normalization: NormalizationConfig) -> str:
    """The text after the recipe.

    Raises:
        InputError: Naming the position.
    """
    try:
        return normalize(text, normalization).text
    except InputError as error:
        raise InputError(f"input {position}: {error}") from error
