"""Sentence boundaries for Chinese and English, and the rule that cuts sentences which are too long.

Chinese: a sentence ends after 。！？ (or their half-width forms, which NFKC produces) or a six-dot ellipsis, and keeps
the closing quotes and brackets that follow. English: after . ! ? when white space and a capital, digit or opening
quote follow and the word before is no abbreviation. No character but white space at the boundaries is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Language = Literal["zh", "en"]

_CLOSING = "”’」』）)】》〉〕］]｝}"
_ZH_END = re.compile(r"(?:[。｡！？!?]+(?:…+|\.{3,})?|…{2,}|\.{6,})")
_ASCII_END = re.compile(r"[!?]+\Z")
_ZH_FINAL = re.compile(rf"[。｡！？!?…][{re.escape(_CLOSING)}\"']*\s*\Z")
_EN_END = re.compile(rf"[.!?。！？]+[{re.escape(_CLOSING)}\"']*(?=\s+[A-Z0-9\"'“‘(\[]|\s*\Z)|[。！？]+")
_EN_WORD_BEFORE = re.compile(r"(\S+)\Z")
_ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|prof|sr|jr|st|gen|col|capt|lt|sgt|rep|sen|gov|rev|hon|pres|vs|etc|e\.g|i\.e|cf|al|fig|eq"
    r"|no|vol|pp|inc|ltd|co|corp|dept|univ|approx|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|u\.s"
    r"|u\.k|u\.n|a\.m|p\.m|ph\.d"
)
_WEAK_BREAK = re.compile(r"[，,、；;：:—]+[”’」』）)】》\"']*|\s+")


def split_sentences(text: str, language: Language, *, max_sentence_chars: int | None = None) -> list[str]:
    """Split a text into sentences.

    Args:
        text: Normalised text; a line break always ends a sentence.
        language: Whose rules to use.
        max_sentence_chars: Cut longer sentences (see ``cut_sentence``); None leaves them whole.

    Returns:
        Sentences without white space at their ends, none empty, whose characters are those of ``text`` in order.
    """
    ends = _zh_ends if language == "zh" else _en_ends
    sentences: list[str] = []
    for line in text.split("\n"):
        start = 0
        for end in ends(line):
            sentences.append(line[start:end].strip())
            start = end
        sentences.append(line[start:].strip())
    sentences = [sentence for sentence in sentences if sentence]
    if max_sentence_chars is None:
        return sentences
    return [piece for sentence in sentences for piece in cut_sentence(sentence, max_sentence_chars)]


def cut_sentence(sentence: str, max_sentence_chars: int) -> list[str]:
    """Cut a sentence into pieces of at most ``max_sentence_chars``.

    Each piece ends at the last comma, colon, semicolon, dash or white space in the second half of the allowed length,
    and where there is none exactly at the allowed length.

    Args:
        sentence: One sentence.
        max_sentence_chars: Longest piece, at least 1.

    Returns:
        The pieces; one when the sentence is short enough.
    """
    pieces: list[str] = []
    start = 0
    while len(sentence) - start > max_sentence_chars:
        middle, limit = start + max_sentence_chars // 2, start + max_sentence_chars
        breaks = [match.end() for match in _WEAK_BREAK.finditer(sentence, middle, limit)]
        end = breaks[-1] if breaks else limit
        pieces.append(sentence[start:end].strip())
        start = end
    pieces.append(sentence[start:].strip())
    return [piece for piece in pieces if piece]


def ends_sentence(text: str) -> bool:
    """Whether a text ends with sentence-final punctuation, closing quotes and brackets aside."""
    return _ZH_FINAL.search(text[-16:]) is not None


def has_sentence_end(text: str) -> bool:
    """Whether a text holds Chinese sentence-final punctuation anywhere."""
    return _ZH_END.search(text) is not None


def _zh_ends(line: str) -> Iterator[int]:
    start = 0
    for match in _ZH_END.finditer(line):
        end = match.end()
        if end <= start or _inside_ascii_word(line, match):
            continue
        while end < len(line) and (line[end] in _CLOSING or _closes_ascii_quote(line, start, end)):
            end += 1
        yield end
        start = end


def _inside_ascii_word(line: str, match: re.Match[str]) -> bool:
    """Whether a half-width mark stands between ASCII letters or digits, as in a web address."""
    if _ASCII_END.match(match.group()) is None or match.start() == 0 or match.end() == len(line):
        return False
    before, after = line[match.start() - 1], line[match.end()]
    return before.isascii() and before.isalnum() and after.isascii() and after.isalnum()


def _closes_ascii_quote(line: str, start: int, position: int) -> bool:
    """Whether a straight quote closes: the sentence holds an odd number of them before it."""
    return line[position] in "\"'" and line.count(line[position], start, position) % 2 == 1


def _en_ends(line: str) -> Iterator[int]:
    for match in _EN_END.finditer(line):
        word = _EN_WORD_BEFORE.search(line, max(0, match.start() - 24), match.start())
        if match.group() == "." and word is not None and _is_abbreviation(word.group()):
            continue
        yield match.end()


def _is_abbreviation(word: str) -> bool:
    bare = word.lstrip("(\"'“‘[").lower()
    return _ABBREVIATION.fullmatch(bare) is not None or (len(bare) == 1 and bare.isalpha() and bare != "i")
