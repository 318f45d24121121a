"""Normalisation: one written recipe, each rule its own function, every change counted and traceable.

A rule takes a text and returns the new text with its edits. Edits compose into offsets, so that a position in the
normalised text leads back to the original. All positions are code points. Rules run in the order of ``RULES``:
surrogates, HTML, control characters, invisible characters, NFKC, white space. Without HTML the recipe is idempotent.

Two things are counted and left alone: U+FFFD (text lost before it got here) and the literal strings ``[CLS]``,
``[SEP]``, ``[MASK]``, ``[PAD]``, ``[UNK]`` in user text, which the tokenizer must treat as plain text.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from components.contract import StageConfig
from components.errors import InputError
from components.text.edits import Edits, apply_edits, substitute
from components.text.markup import strip_html

RULES = ("surrogates", "html", "control_characters", "invisible_characters", "nfkc", "whitespace")
"""Counters of the rules that change the text, in their order."""
COUNTED_ONLY = ("replacement_characters", "special_token_strings")
"""Counters of things that are left in the text."""


class NormalizationConfig(StageConfig):
    """Which rules change the text; the order is fixed."""

    nfkc: bool = True
    """Unicode NFKC: full-width letters, digits and punctuation become half-width, U+338F becomes kg, and so on."""
    remove_invisible: bool = True
    """Remove characters without a glyph: zero-width space and joiners, soft hyphen, byte-order mark, word joiner,
    directional marks, variation selectors, Hangul fillers."""
    control_characters: Literal["remove", "space", "keep"] = "remove"
    """What becomes of NUL, BEL and the like. Unless kept, tabs and line breaks become spaces."""
    surrogates: Literal["refuse", "replace"] = "refuse"
    """A lone surrogate (half a character, from broken JSON escapes) stops the run or becomes U+FFFD."""
    html: bool = False
    """Remove tags, scripts and styles and decode entities once; `a<b` stays."""
    squeeze_whitespace: bool = True
    """Make every run of white space one space and strip both ends."""


@dataclass(frozen=True)
class Normalized:
    """A normalised text, what each rule changed, and the way back to the original positions."""

    text: str
    counts: dict[str, int]
    """Rule name to number of characters, tags, entities or runs it changed; rules that changed nothing are absent."""
    original_length: int
    edits: tuple[Edits, ...] = field(default=(), repr=False)

    @cached_property
    def _spans(self) -> tuple[Sequence[int], Sequence[int]]:
        starts: Sequence[int] = range(self.original_length)
        ends: Sequence[int] = range(1, self.original_length + 1)
        for edits in self.edits:
            starts, ends = apply_edits(starts, ends, edits)
        return starts, ends

    @property
    def offsets(self) -> Sequence[int]:
        """For each character of ``text`` the index of the original character it came from; never decreasing."""
        return self._spans[0]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text that became ``text[start:end]``.

        Args:
            start: First character in the normalised text, in code points.
            end: One past the last character; greater than ``start``.

        Returns:
            Start and end in the original text, in code points.
        """
        return self._spans[0][start], self._spans[1][end - 1]


_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAK_CHARACTERS = "\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029"
_BREAK = re.compile(f"[{_BREAK_CHARACTERS}]")
_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{_BREAK_CHARACTERS}]")
_INVISIBLE_CHARACTERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_INVISIBLE_CHARACTERS}]")
_SUSPICIOUS = re.compile(f"[\ud800-\udfff\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd{_INVISIBLE_CHARACTERS}]")
"""One search that finds nothing in clean text and spares it the rules for odd characters."""
_WHITESPACE = re.compile(r"\A\s+|\s++\Z|\s{2,}|[^\S ]")
_SPECIAL_TOKEN = re.compile(r"\[(?:CLS|SEP|MASK|PAD|UNK)\]")


def replace_surrogates(text: str) -> tuple[str, Edits]:
    """Make each lone surrogate U+FFFD: it is no character and no encoder accepts it."""
    return substitute(text, _SURROGATE, lambda match: "\ufffd")


def replace_controls(text: str, *, filler: str) -> tuple[str, Edits]:
    """Make tabs and line breaks spaces and every other control character ``filler``."""
    return substitute(text, _CONTROL, lambda match: " " if _BREAK.match(match.group()) else filler)


def remove_invisible(text: str) -> tuple[str, Edits]:
    """Remove characters without a glyph, which otherwise become tokens of their own or vanish in the tokenizer."""
    return substitute(text, _INVISIBLE, lambda match: "")


def fold_compatibility(text: str) -> tuple[str, Edits]:
    """Unicode NFKC (Unicode Standard Annex 15), aligned to its input.

    Normalisation acts on a character and the marks that follow it, so each such cluster is one edit. Where every
    character maps to one character, as with full-width forms, positions do not move and there is no edit.
    """
    folded = unicodedata.normalize("NFKC", text)
    if len(folded) == len(text) and folded == text.translate(_FOLD_TABLE):
        return folded, []
    edits: Edits = []
    for start, end in _clusters(text):
        new = unicodedata.normalize("NFKC", text[start:end])
        if new != text[start:end]:
            edits.append((start, end, len(new)))
    if len(text) + sum(length - (end - start) for start, end, length in edits) != len(folded):
        return folded, [(0, len(text), len(folded))]
    return folded, edits


class _FoldTable(dict[int, str]):
    """Code point to its NFKC, filled as characters are met; ``str.translate`` looks characters up in it."""

    def __missing__(self, code_point: int) -> str:
        self[code_point] = folded = unicodedata.normalize("NFKC", chr(code_point))
        return folded


_FOLD_TABLE = _FoldTable()


@lru_cache(maxsize=65536)
def _attaches(character: str) -> bool:
    """Whether NFKC may merge the character into the one before it: marks, and Hangul vowels and final consonants."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


def _clusters(text: str) -> list[tuple[int, int]]:
    starts = [index for index, character in enumerate(text) if index == 0 or not _attaches(character)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def squeeze_whitespace(text: str) -> tuple[str, Edits]:
    """Make every run of white space one space and strip both ends."""

    def replacement(match: re.Match[str]) -> str:
        return "" if match.start() == 0 or match.end() == len(text) else " "

    return substitute(text, _WHITESPACE, replacement)


def refuse_surrogates(text: str, *, file: str | Path | None = None, line: int | None = None) -> None:
    """Stop at the first lone surrogate.

    Raises:
        InputError: With file, line and column (1-based, code points).
    """
    if (match := _SURROGATE.search(text)) is not None:
        raise InputError(
            f"lone surrogate U+{ord(match.group()):04X} at column {match.start() + 1}",
            file=file,
            line=line,
            remedy="repair the text, or set normalization surrogates to 'replace' to get U+FFFD",
        )


def normalize(
    text: str, config: NormalizationConfig, *, file: str | Path | None = None, line: int | None = None
) -> Normalized:
    """Apply the recipe to one text.

    Args:
        text: Any string.
        config: Which rules apply.
        file: Source file, for messages only.
        line: Source line, for messages only.

    Returns:
        The text, the counts per rule, and offsets back to ``text`` (computed when first asked for).

    Raises:
        InputError: A lone surrogate under the policy ``refuse``.
    """
    state = _State(text)
    suspicious = _SUSPICIOUS.search(text) is not None
    if suspicious:
        if config.surrogates == "refuse":
            refuse_surrogates(text, file=file, line=line)
        state.apply("surrogates", replace_surrogates)
    if config.html and ("<" in text or "&" in text):
        state.apply("html", strip_html)
        # Decoded entities may be anything, such as &shy; or &#7;.
        suspicious = _SUSPICIOUS.search(state.text) is not None
    if suspicious:
        _apply_character_rules(state, config)
    if config.nfkc and not unicodedata.is_normalized("NFKC", state.text):
        state.fold()
    if config.squeeze_whitespace:
        state.apply("whitespace", squeeze_whitespace)
    if "[" in state.text:
        state.count("special_token_strings", len(_SPECIAL_TOKEN.findall(state.text)))
    return Normalized(state.text, state.counts, len(text), tuple(state.edits))


def _apply_character_rules(state: _State, config: NormalizationConfig) -> None:
    state.count("replacement_characters", state.text.count("\ufffd"))
    if config.control_characters != "keep":
        filler = " " if config.control_characters == "space" else ""
        state.apply("control_characters", lambda text: replace_controls(text, filler=filler))
    if config.remove_invisible:
        state.apply("invisible_characters", remove_invisible)


class _State:
    """A text on its way through the rules."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[Edits] = []
        self.counts: dict[str, int] = {}

    def count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number

    def apply(self, name: str, rule: Callable[[str], tuple[str, Edits]]) -> None:
        self.text, edits = rule(self.text)
        self.count(name, len(edits))
        if edits:
            self.edits.append(edits)

    def fold(self) -> None:
        before = self.text
        self.text, edits = fold_compatibility(before)
        changed = sum(end - start for start, end, _ in edits) if edits else sum(map(operator.ne, before, self.text))
        self.count("nfkc", changed)
        if edits:
            self.edits.append(edits)
