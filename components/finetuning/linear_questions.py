"""Which question word a question has, and what stands beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.encoders.pieces import Pieces
from components.finetuning.linear_pieces import NOTHING
from components.text.sentences import Language

QUESTION_WORDS: dict[Language, dict[str, str]] = {
    "zh": {
        "how_many": r"多少|多大|多长|多高|多远|多久|多重|多深|第几|几(?!乎|何)",
        "when": r"何时|何年|何月|何日|什么时候|什么时间|什么年代|什么日期|哪一?[年月日天]|几[年月日号点时]",
        "where": r"哪里|哪儿|何处|何地|什么地[方点区]|哪个?[国省市县州区]|哪一?个?(?:国家|城市|地方|地区|省份|洲)",
        "organization": r"(?:什么|哪一?[个家所支])(?:机构|公司|组织|单位|部门|学校|大学|企业|团体|政党|球队)|哪[家所]",
        "who": r"谁|何人|哪一?位|什么人|哪一?个人|哪些人",
        "why": r"为什么|为何|何故|什么原因|因何",
        "how": r"如何|怎样|怎么样?|怎",
        "which": r"哪一?[个些种项部条座]?",
        "what": r"什么|何(?:种|物|事|谓|者)|何(?=[？?])|啥",
    },
    "en": {
        "how_many": r"how (?:many|much|long|old|far|tall|high|large|big|deep|often|fast)",
        "when": r"when|(?:what|which) (?:year|date|day|month|time|century|decade)",
        "where": r"where|(?:what|which) (?:country|city|state|place|town|location|region|continent)",
        "organization": r"(?:what|which) (?:company|organi[sz]ation|team|university|school|agency|party|institution)",
        "who": r"who|whom|whose",
        "why": r"why",
        "how": r"how",
        "which": r"which",
        "what": r"what",
    },
}
"""Question words by what they ask for, as regular expressions; at one place the kind listed first wins."""
KINDS = (*QUESTION_WORDS["zh"], "none")
"""What a question may ask for; the last one when it has no question word."""
CONTEXT = 3
"""Pieces on each side of the question word that are compared with the passage."""


def _pattern(language: Language) -> re.Pattern[str]:
    groups = "|".join(f"(?P<{kind}>{words})" for kind, words in QUESTION_WORDS[language].items())
    return re.compile(groups if language == "zh" else rf"\b(?:{groups})\b", re.IGNORECASE)


_PATTERNS: dict[Language, re.Pattern[str]] = {language: _pattern(language) for language in QUESTION_WORDS}


@dataclass(frozen=True)
class QuestionPieces:
    """A question as the reader sees it."""

    ids: NDArray[np.int64]
    """Pieces other than the question word, with ``NOTHING`` in its place; all of them when there is nothing else."""
    left: NDArray[np.int64]
    """Up to ``CONTEXT`` pieces before the question word, nearest first."""
    right: NDArray[np.int64]
    """Up to ``CONTEXT`` pieces after it, nearest first."""
    kind: int
    """Index into ``KINDS``."""


def find_question_word(question: str, language: Language) -> tuple[str, int, int]:
    """Kind, start and end of the first question word; ``none`` at 0:0 when there is none.

    Args:
        question: The question as it was asked.
        language: Whose question words to look for.
    """
    match = _PATTERNS[language].search(question)
    if match is None:
        return "none", 0, 0
    assert match.lastgroup is not None
    return match.lastgroup, *match.span()


def read_question(question: str, pieces: Pieces, language: Language) -> QuestionPieces:
    """Take a question apart at its question word.

    Args:
        question: The question as it was asked.
        pieces: Its pieces, with offsets into ``question``.
        language: Whose question words to look for.
    """
    kind, start, end = find_question_word(question, language)
    before = [piece for piece, (_, last) in zip(pieces.ids, pieces.offsets, strict=True) if last <= start]
    after = [piece for piece, (first, _) in zip(pieces.ids, pieces.offsets, strict=True) if first >= end]
    ids = [*before, NOTHING, *after] if before or after else pieces.ids
    if kind == "none":
        before, after = [], []
    return QuestionPieces(
        np.array(ids, dtype=np.int64),
        np.array(before[::-1][:CONTEXT], dtype=np.int64),
        np.array(after[:CONTEXT], dtype=np.int64),
        KINDS.index(kind),
    )
