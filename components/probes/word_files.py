"""The word lists behind the probes of meaning, shipped or the user's: read line by line, refused with file and line.

Lists of words are tables with tabs; analogies have word2vec's own format (Mikolov et al. 2013); words in context are
JSON lines or a table. A line that begins with # and an empty line are skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.formats import numbered_rows
from components.text.sentences import Language

ListFile = Path | Traversable
"""A user's file, or one that ships."""


@dataclass(frozen=True)
class WordPair:
    """Two words and how similar people find them."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Triple:
    """A word that is nearer to one word than to another."""

    anchor: str
    near: str
    far: str


@dataclass(frozen=True)
class Analogy:
    """``a`` is to ``b`` as ``c`` is to ``d``; all four differ."""

    section: str
    a: str
    b: str
    c: str
    d: str


@dataclass(frozen=True)
class SenseContext:
    """An ambiguous word in a sentence, with its sense there."""

    id: str
    """``file:line``."""
    word: str
    sense: str
    text: str
    span: tuple[int, int]
    """Where the word lies in ``text``, in code points."""


def shipped_list(name: str) -> Traversable:
    """A list that comes with this package."""
    return resources.files("components.probes") / "lists" / name


def read_word_pairs(file: ListFile) -> list[WordPair]:
    """Read ``word, word, score`` lines.

    Raises:
        InputError: A line has another shape, a score is no finite number, or there is no pair.
    """
    pairs = []
    for line, (first, second, score) in _rows(file, 3, "word, word, score"):
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"score {score!r} is no number", file=str(file), line=line, remedy="give a finite number")
        pairs.append(WordPair(first, second, value))
    return _not_empty(pairs, file, "pairs of words")


def read_triples(file: ListFile) -> list[Triple]:
    """Read ``anchor, nearer word, farther word`` lines.

    Raises:
        InputError: A line has another shape or repeats a word, or there is no triple.
    """
    triples = []
    for line, words in _rows(file, 3, "anchor, nearer word, farther word"):
        if len(set(words)) != 3:
            raise InputError(f"{words} repeats a word", file=str(file), line=line, remedy="give three different words")
        triples.append(Triple(*words))
    return _not_empty(triples, file, "triples")


def read_analogies(file: ListFile) -> list[Analogy]:
    """Read word2vec's analogies: ``: section`` lines, else four words separated by white space.

    Raises:
        InputError: A line has another number of words, or there is no analogy.
    """
    section, analogies = "", []
    for line, text in _lines(file):
        if text.startswith(":"):
            section = text[1:].strip()
            continue
        words = text.split()
        if len(words) != 4:
            raise InputError(
                f"{text!r} has {len(words)} words, expected 4", file=str(file), line=line,
                remedy="write four words separated by spaces, or ': section'",
            )  # fmt: skip
        # A question whose answer is one of its own words cannot be answered, as these are no candidates.
        if words[3] not in words[:3]:
            analogies.append(Analogy(section, *words))
    return _not_empty(analogies, file, "analogies")


def read_contexts(file: ListFile, language: Language) -> list[SenseContext]:
    """Read ambiguous words in context from JSON lines (``.jsonl``) or a table with a header.

    Args:
        file: JSON lines {"word", "sense", "tokens", "index"}, or columns word, sense, text and perhaps index.
        language: English tokens are joined by spaces, Chinese ones by nothing.

    Raises:
        InputError: A line has another shape, or the place of the word in it is not clear.
    """
    contexts = _from_json_lines(file, language) if isinstance(file, Path) and file.suffix == ".jsonl" else None
    return _not_empty(contexts if contexts is not None else _from_table(file, language), file, "contexts")


def _from_json_lines(file: Path, language: Language) -> list[SenseContext]:
    _require_file(file)
    contexts = []
    for line, row in numbered_rows(file):
        try:
            word, sense, tokens, index = row["word"], row["sense"], row["tokens"], row["index"]
            target = tokens[index]
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"not {{word, sense, tokens, index}} with an index among the tokens: {type(error).__name__} {error}",
                file=file, line=line, remedy="give a token list and the 0-based index of the word in it",
            ) from error  # fmt: skip
        if not all(isinstance(value, str) and value for value in (word, sense, target, *tokens)) or index < 0:
            raise InputError("words, senses and tokens must be non-empty strings", file=file, line=line)
        contexts.append(_from_tokens(f"{file.name}:{line}", word, sense, tokens, index, language))
    return contexts


def _from_tokens(name: str, word: str, sense: str, tokens: list[str], index: int, language: Language) -> SenseContext:
    space = " " if language == "en" else ""
    start = len(space.join([*tokens[:index], ""]))
    return SenseContext(name, word, sense, space.join(tokens), (start, start + len(tokens[index])))


def _from_table(file: ListFile, language: Language) -> list[SenseContext]:
    lines = _lines(file)
    number, header = next(lines, (1, ""))
    columns = header.split("\t")
    if columns not in (["word", "sense", "text"], ["word", "sense", "index", "text"]):
        raise InputError(
            f"header {columns}", file=str(file), line=number,
            remedy="start with the columns word, sense, text or word, sense, index, text, separated by tabs",
        )  # fmt: skip
    contexts = []
    for line, text in lines:
        cells = _cells(file, line, text, len(columns), ", ".join(columns))
        row = dict(zip(columns, cells, strict=True))
        if "index" in row:
            contexts.append(_indexed(file, line, row))
        else:
            span = _only_occurrence(file, line, row["text"], row["word"], language)
            contexts.append(SenseContext(f"{file.name}:{line}", row["word"], row["sense"], row["text"], span))
    return contexts


def _indexed(file: ListFile, line: int, row: dict[str, str]) -> SenseContext:
    tokens = row["text"].split(" ")
    if not row["index"].isdecimal() or int(row["index"]) >= len(tokens) or not tokens[int(row["index"])]:
        raise InputError(
            f"index {row['index']!r} for a text of {len(tokens)} tokens", file=str(file), line=line,
            remedy="count the tokens that single spaces separate, from 0",
        )  # fmt: skip
    return _from_tokens(f"{file.name}:{line}", row["word"], row["sense"], tokens, int(row["index"]), "en")


def _only_occurrence(file: ListFile, line: int, text: str, word: str, language: Language) -> tuple[int, int]:
    pattern = rf"(?<!\w){re.escape(word)}(?!\w)" if language == "en" else re.escape(word)
    found = [match.span() for match in re.finditer(pattern, text)]
    if len(found) != 1:
        raise InputError(
            f"word {word!r} occurs {len(found)} times in {text!r}", file=str(file), line=line,
            remedy="use it exactly once, or give its place in a column index",
        )  # fmt: skip
    return found[0]


def _rows(file: ListFile, width: int, shape: str) -> Iterator[tuple[int, list[str]]]:
    for line, text in _lines(file):
        yield line, _cells(file, line, text, width, shape)


def _cells(file: ListFile, line: int, text: str, width: int, shape: str) -> list[str]:
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) != width or not all(cells):
        raise InputError(
            f"{text!r} has {len(cells)} columns", file=str(file), line=line,
            remedy=f"write {shape}, separated by tabs and none of them empty",
        )  # fmt: skip
    return cells


def _lines(file: ListFile) -> Iterator[tuple[int, str]]:
    """Line numbers and lines; empty lines and comments are skipped."""
    _require_file(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error}", file=str(file), remedy="save it as UTF-8") from error
    for number, line in enumerate(text.split("\n"), 1):
        content = line.removesuffix("\r")
        if content.strip() and not content.startswith("#"):
            yield number, content


def _require_file(file: ListFile) -> None:
    if not file.is_file():
        raise InputError("no such file", file=str(file), remedy="give the path of a word list")


def _not_empty(items: list[Any], file: ListFile, what: str) -> list[Any]:
    if not items:
        raise InputError(f"holds no {what}", file=str(file), remedy="add lines, or leave the file out")
    return items
