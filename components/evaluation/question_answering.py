"""Scoring of answers: exact match and F1 by the definition of the language, and where the answers are wrong.

Columns of a question's counts: 1, F1, exact match; the same three if it has an answer; the same if it has none, where
an answer is right exactly when it is "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.evaluation.data import PredictedAnswer
from components.evaluation.reference import Reference
from components.examples import Question
from components.scoring.answers import answer_scores, answer_tokens
from components.text.sentences import Language

Sums = NDArray[Any]
Values = NDArray[np.float64]
NUM_WORST = 20
"""Worst answers that ``scores.json`` shows."""
SHOWN_GOLDS = 3
NO_ANSWER = "no answer"
OTHER = "other"
_LENGTHS = ((1, "1"), (3, "2-3"), (7, "4-7"), (15, "8-15"), (10**9, "16+"))
"""Upper bounds of buckets of answer lengths, in tokens of the metric, and their names."""
_QUESTION_WORDS: dict[Language, dict[str, re.Pattern[str]]] = {
    "zh": {
        "为什么": re.compile("为什么|为何|为什麼|為什麼|為何|为甚|為甚|何以"),
        "怎么": re.compile("怎么|怎样|如何|怎麼|怎樣"),
        "多少": re.compile("多少|多大|多长|多高|多远|多久|多重|多長|多遠|几|幾"),
        "何时": re.compile("何时|何時|什么时候|什麼時候|哪一?年|哪天|哪一天|何年|什么时间|什麼時間|哪个?月"),
        "哪里": re.compile("哪里|哪裡|哪儿|何处|何處|何地|什么地方|什麼地方"),
        "谁": re.compile("谁|誰|何人|什么人|什麼人"),
        "哪": re.compile("哪"),
        "什么": re.compile("什么|什麼|甚么|甚麼|何"),
    },
    "en": {
        "how many": re.compile(r"\bhow (?:many|much)\b"),
        **{word: re.compile(rf"\b{word}\b") for word in ("why", "when", "where", "which", "who", "how", "what")},
    },
}
"""Kind of question by the word it asks with; the first pattern that is found decides."""


def answer_counts(
    items: Sequence[Question], predicted: Sequence[PredictedAnswer], reference: Reference
) -> NDArray[np.float64]:
    """Counts of N questions, shape [N, 9]."""
    counts = np.zeros((len(items), 9))
    for row, item, answer in zip(counts, items, predicted, strict=True):
        exact_match, f1 = answer_scores(answer.text, [gold.text for gold in item.answers], reference.language)
        row[:3] = (1, f1, exact_match)
        first = 3 if item.answers else 6
        row[first : first + 3] = row[:3]
    return counts


def _mean(sums: Sums, column: int) -> Values:
    """Mean of a column over the questions of its group; undefined without such a question."""
    whole = np.asarray(sums, dtype=np.float64)[..., column - column % 3]
    mean = np.divide(sums[..., column], whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return np.asarray(mean, dtype=np.float64)


def f1(sums: Sums) -> Values:
    """Mean F1 of the answers to all questions."""
    return _mean(sums, 1)


def exact_match(sums: Sums) -> Values:
    """Share of questions whose answer equals a gold answer after normalisation."""
    return _mean(sums, 2)


def has_answer_f1(sums: Sums) -> Values:
    """Mean F1 over the questions that have an answer; undefined where all have one, as it is ``f1`` there."""
    return np.where(sums[..., 6] > 0, _mean(sums, 4), np.nan)


def has_answer_exact_match(sums: Sums) -> Values:
    """Exact match over the questions that have an answer; undefined where all have one."""
    return np.where(sums[..., 6] > 0, _mean(sums, 5), np.nan)


def no_answer_accuracy(sums: Sums) -> Values:
    """Share of the questions without an answer that are answered with none."""
    return _mean(sums, 8)


METRICS: dict[str, Callable[[Sums], Values]] = {
    "f1": f1,
    "exact_match": exact_match,
    "has_answer_f1": has_answer_f1,
    "has_answer_exact_match": has_answer_exact_match,
    "no_answer_accuracy": no_answer_accuracy,
}
DEFINITIONS: dict[Language, str] = {
    "zh": "CMRC 2018: NFKC, lower case, no punctuation; Chinese characters and other runs as tokens; F1 of the longest "
    "contiguous match; best of the gold answers",
    "en": "SQuAD: lower case, no punctuation, no articles; words as tokens; F1 of bags of words; "
    "best of the gold answers",
}


def answer_facts(items: Sequence[Question], predicted: Sequence[PredictedAnswer]) -> dict[str, float]:
    """Coverage: what gold holds, what of it has no place in its passage, and how often none is answered."""
    placed = [[answer.start is not None for answer in item.answers] for item in items]
    return {
        "num_gold_answers": sum(map(len, placed)),
        "num_gold_unplaced": sum(len(one) - sum(one) for one in placed),
        "num_unplaced_questions": sum(bool(one) and not any(one) for one in placed),
        "num_unanswerable": sum(not one for one in placed),
        "num_predicted_no_answer": sum(not answer.text for answer in predicted),
        "num_passages": len({item.text for item in items}),
    }


def describe_answers(
    items: Sequence[Question], predicted: Sequence[PredictedAnswer], reference: Reference, counts: NDArray[Any]
) -> dict[str, Any]:
    """Scores by length of the answer and by question word, kinds of answers, and the worst of them."""
    language = reference.language
    scores = [(row[2] == 1, row[1]) for row in counts.tolist()]
    lengths = [_length_bucket(item, language) for item in items]
    words = [question_word(item.question, language) for item in items]
    kinds = [_kind(*score, item, answer) for score, item, answer in zip(scores, items, predicted, strict=True)]
    order = sorted(range(len(items)), key=lambda position: scores[position][1])
    wrong = [position for position in order[:NUM_WORST] if scores[position][1] < 1]
    return {
        "by_answer_length": _by_group(lengths, scores, [*(name for _, name in _LENGTHS), NO_ANSWER]),
        "by_question_word": _by_group(words, scores, [*_QUESTION_WORDS[language], OTHER]),
        "kinds": {kind: kinds.count(kind) for kind in ("exact", "partial", "wrong", "missed", "spurious")},
        "worst": [_example(items[position], predicted[position], scores[position]) for position in wrong],
    }


def question_word(question: str, language: Language) -> str:
    """What a question asks for, by the word it asks with."""
    lowered = question.lower()
    return next((name for name, pattern in _QUESTION_WORDS[language].items() if pattern.search(lowered)), OTHER)


def _length_bucket(item: Question, language: Language) -> str:
    if not item.answers:
        return NO_ANSWER
    shortest = min(len(answer_tokens(answer.text, language)) for answer in item.answers)
    return next(name for limit, name in _LENGTHS if shortest <= limit)


def _kind(exact: bool, score: float, item: Question, answer: PredictedAnswer) -> str:
    """``missed``: an answer exists and none is given; ``spurious``: the other way round."""
    if exact:
        return "exact"
    if not item.answers:
        return "spurious"
    if not answer.text:
        return "missed"
    return "partial" if score else "wrong"


def _by_group(groups: list[str], scores: list[tuple[bool, float]], order: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in order:
        members = [score for group, score in zip(groups, scores, strict=True) if group == name]
        if members:
            matches, shares = zip(*members, strict=True)
            means = {"f1": sum(shares) / len(members), "exact_match": sum(matches) / len(members)}
            rows.append({"name": name, **means, "num_questions": len(members)})
    return rows


def _example(item: Question, answer: PredictedAnswer, score: tuple[bool, float]) -> dict[str, Any]:
    gold = list(dict.fromkeys(one.text for one in item.answers))[:SHOWN_GOLDS]
    return {"id": item.id, "question": item.question, "gold": gold, "predicted": answer.text, "f1": score[1]}
