"""How far shallow rules get on cloze questions: what a reader has to beat.

Every rule is told the asked type and all names of that type in the passage, which a reader is not. The sliding window
is that of Richardson et al. 2013 (MCTest, section 5) on character pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from components.datasets.cloze import QUESTION_WORDS, ClozeQuestion, context_match

WINDOW_CHARS = 30
"""Characters on either side of a name that the window rules compare with the question."""


def measure_baselines(questions: Sequence[ClozeQuestion]) -> dict[str, float]:
    """Share of questions that each rule answers, 0 to 1.

    Args:
        questions: At least one.

    Returns:
        By rule: ``random`` (expected), ``first``, ``most_frequent``, ``sliding_window`` (most character pairs of the
        question nearby), ``longest_common_substring`` (longest piece of the question nearby), ``beside_match`` (most
        characters directly beside the name as beside the question word).
    """
    shares = {
        name: sum(rule(question) == question.answer for question in questions) / len(questions)
        for name, rule in _RULES.items()
    }
    shares["random"] = sum(1 / len({name for _, name in q.candidates}) for q in questions) / len(questions)
    return {name: round(share, 4) for name, share in sorted(shares.items())}


def first_name(question: ClozeQuestion) -> str:
    """The first name of the asked type."""
    return question.candidates[0][1]


def most_frequent_name(question: ClozeQuestion) -> str:
    """The name of the asked type that occurs most often, the first of equals."""
    return Counter(name for _, name in question.candidates).most_common(1)[0][0]


def sliding_window_name(question: ClozeQuestion) -> str:
    """The name with most character pairs of the question around it."""
    asked = _pairs(question.question)
    return _best(question, lambda window: len(asked & _pairs(window)))


def common_substring_name(question: ClozeQuestion) -> str:
    """The name with the longest piece of the question around it."""
    return _best(question, lambda window: longest_common_substring(question.question, window))


def beside_match_name(question: ClozeQuestion) -> str:
    """The name whose direct neighbours are most those of the question word."""
    left, _, right = question.question.removesuffix("？").partition(QUESTION_WORDS[question.type])
    scored = [
        (context_match(question.passage, start, len(name), left, right), name) for start, name in question.candidates
    ]
    return max(scored, key=lambda pair: pair[0])[1]


def longest_common_substring(one: str, other: str) -> int:
    """Length of the longest string that occurs in both."""
    best = 0
    for start in range(len(one)):
        while start + best < len(one) and one[start : start + best + 1] in other:
            best += 1
    return best


def _best(question: ClozeQuestion, score: Callable[[str], int]) -> str:
    def around(start: int, name: str) -> str:
        return question.passage[max(0, start - WINDOW_CHARS) : start + len(name) + WINDOW_CHARS]

    return max(question.candidates, key=lambda candidate: score(around(*candidate)))[1]


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


_RULES: dict[str, Callable[[ClozeQuestion], str]] = {
    "first": first_name,
    "most_frequent": most_frequent_name,
    "sliding_window": sliding_window_name,
    "longest_common_substring": common_substring_name,
    "beside_match": beside_match_name,
}
