"""Traditional and Simplified Chinese: conversion by OpenCC that keeps every offset.

OpenCC (Kuo 2010) converts phrase by phrase, so that 頭髮 and 發財 come out as 头发 and 发财. Its plain tables ``t2s``
and ``s2t`` exchange characters one for one and leave the choice of words alone (``tw2sp`` and the like would not).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from components.errors import InputError

ScriptConversion = Literal["none", "t2s", "s2t"]
"""none: as written; t2s: Traditional to Simplified; s2t: Simplified to Traditional."""


@dataclass(frozen=True)
class Converted:
    """A converted text and what the conversion did to it."""

    text: str
    num_changed: int
    """Characters that differ from the original."""
    by_character: bool
    """Whether phrases would have changed the length, so that single characters were converted instead."""


def convert_script(text: str, conversion: ScriptConversion) -> str:
    """The text in the other script, with exactly as many code points: every offset stays valid.

    Args:
        text: Any text; characters that have no counterpart stay.
        conversion: Direction; ``none`` returns the text itself.

    Returns:
        The converted text. Where converting by phrase would change the number of code points, every character is
        converted on its own, and one whose counterpart is not a single code point stays.

    Raises:
        InputError: A lone surrogate, which is no text.
    """
    return convert_counted(text, conversion).text


def convert_counted(text: str, conversion: ScriptConversion) -> Converted:
    """As ``convert_script``, with the number of changed characters and which way was taken."""
    if conversion == "none" or text.isascii():
        return Converted(text, 0, False)
    _refuse_surrogates(text)
    convert = _converter(conversion)
    result = convert(text)
    by_character = len(result) != len(text)
    if by_character:
        result = "".join(_convert_character(character, convert) for character in text)
    return Converted(result, sum(map(str.__ne__, text, result)), by_character)


def _convert_character(character: str, convert: Callable[[str], str]) -> str:
    converted = convert(character)
    return converted if len(converted) == 1 else character


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"lone surrogate U+{ord(text[error.start]):04X} at character {error.start + 1} of {text[:20]!r}",
            remedy="repair the text: a surrogate is half a character",
        ) from error


@lru_cache(maxsize=2)
def _converter(conversion: str) -> Callable[[str], str]:
    try:
        import opencc
    except ImportError as error:
        raise InputError("package opencc is not installed", remedy="pip install opencc") from error
    convert: Callable[[str], str] = opencc.OpenCC(conversion).convert
    return convert
