"""Cloze questions from articles whose names are marked: reading questions without anyone having written one.

The idea is unsupervised cloze question answering (Lewis, Denoyer and Riedel 2019): a name in a sentence is replaced by
the question word of its type and asked over the surrounding passage. So that reading is needed and possible,

- the source sentence is taken out of the passage, so that the question cannot be looked up;
- the name must occur in another sentence of the passage that shares content words with the question;
- the passage must hold at least one other name of the same type that the question does not rule out by naming it;
- the question is only the clause around the name, and no long piece of it stands beside the name in the passage;
- questions whose answer is the most frequent name of its type are thinned out, so that counting does not answer them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from components.datasets.cloze_articles import Article, Mention, NamedSentence
from components.datasets.qa_config import ClozeRules
from components.datasets.splits import position
from components.text.sentences import ends_sentence

QUESTION_WORDS = {"PER": "谁", "LOC": "哪里", "ORG": "什么机构"}
_CLAUSE_END = re.compile(r"[，；：。！？]")
_ENDS = " 　，；：。！？、—…▲△●○■□◆"
_PAIRS = ("“”", "‘’", "（）", "《》", "『』")


@dataclass(frozen=True)
class ClozeQuestion:
    """A built question with everything needed to say how hard it is."""

    line: int
    """1-based line of the source sentence."""
    question: str
    passage: str
    answer: str
    starts: tuple[int, ...]
    """Where the answer is a mention in the passage; the best supported mention first."""
    candidates: tuple[tuple[int, str], ...]
    """Start and text of all names of the asked type in the passage, in order."""
    type: str
    """Type of the asked name."""
    sentence: str
    """The sentence the question was made from, which is not in the passage."""

    @property
    def answer_is_most_frequent(self) -> bool:
        """Whether no other name of the type occurs as often in the passage."""
        counts = Counter(name for _, name in self.candidates)
        return all(counts[self.answer] > count for name, count in counts.items() if name != self.answer)


@dataclass(frozen=True)
class _Passage:
    text: str
    sentences: tuple[tuple[int, NamedSentence], ...]
    """Start in the text, and sentence."""

    def mentions(self, name_type: str) -> list[tuple[int, Mention, NamedSentence]]:
        """Names of a type: start in the passage, mention, sentence."""
        return [
            (start + mention.start, mention, sentence)
            for start, sentence in self.sentences
            for mention in sentence.mentions
            if mention.type == name_type
        ]


def build_questions(article: Article, rules: ClozeRules) -> Iterator[ClozeQuestion]:
    """All questions that an article gives, at most one for each sentence and name, in order of the text."""
    for index, sentence in enumerate(article.sentences):
        passage = _passage_around(article.sentences, index, rules.max_passage_chars)
        asked: set[str] = set()
        for mention in sentence.mentions:
            if len(mention.text) < 2 or mention.text in asked or len(passage.text) < rules.min_passage_chars:
                continue
            built = _build(sentence, mention, passage, rules)
            if built is not None and _is_kept(built, rules.frequent_answer_share):
                asked.add(mention.text)
                yield built


def _is_kept(question: ClozeQuestion, frequent_answer_share: float) -> bool:
    if not question.answer_is_most_frequent:
        return True
    return position(question.passage + question.question, seed=0) < frequent_answer_share


def _build(source: NamedSentence, mention: Mention, passage: _Passage, rules: ClozeRules) -> ClozeQuestion | None:
    clause = question_clause(source.text, mention, rules.min_question_chars, rules.max_question_chars)
    if clause is None:
        return None
    left, right = clause
    around = left + right
    candidates = [found for found in passage.mentions(mention.type) if found[1].text not in around]
    answers = [found for found in candidates if found[1].text == mention.text]
    if not answers or len({found[1].text for found in candidates}) < rules.min_candidates:
        return None
    words = [word for _, word in source.words if word in around]
    support = [sum(word in sentence.text for word in set(words)) for _, _, sentence in answers]
    match = max(context_match(passage.text, start, len(mention.text), left, right) for start, _, _ in answers)
    if max(support) < rules.min_shared_words or match > rules.max_match_chars:
        return None
    ranked = sorted(zip(support, answers, strict=True), key=lambda pair: -pair[0])
    return ClozeQuestion(
        line=source.line,
        question=f"{left}{QUESTION_WORDS[mention.type]}{right}？",
        passage=passage.text,
        answer=mention.text,
        starts=tuple(start for _, (start, _, _) in ranked),
        candidates=tuple((start, found.text) for start, found, _ in candidates),
        type=mention.type,
        sentence=source.text,
    )


def question_clause(sentence: str, mention: Mention, min_chars: int, max_chars: int) -> tuple[str, str] | None:
    """What stands left and right of a name in its clause; a short clause takes in its neighbours.

    Returns:
        Left and right part without the name; None when they still hold the name, are too short or too long.
    """
    ends = [0, *(match.end() for match in _CLAUSE_END.finditer(sentence)), len(sentence)]
    clauses = [(start, end) for start, end in pairwise(ends) if end > start]
    first = last = next(i for i, (start, end) in enumerate(clauses) if start <= mention.start < end)
    while clauses[last][1] - clauses[first][0] - (mention.end - mention.start) < min_chars:
        if first == 0 and last == len(clauses) - 1:
            return None
        if first > 0:
            first -= 1
        else:
            last += 1
    start, end = clauses[first][0], max(clauses[last][1], mention.end)
    left, right = _trim(sentence[start : mention.start], sentence[mention.end : end])
    if not min_chars // 2 <= len(left) + len(right) <= max_chars or mention.text in left + right:
        return None
    return left, right


def _trim(left: str, right: str) -> tuple[str, str]:
    left, right = left.lstrip(_ENDS), right.rstrip(_ENDS)
    for pair in _PAIRS:
        opening, closing = pair[0], pair[1]
        both = left + right
        if both.count(opening) != both.count(closing):
            left, right = (part.replace(opening, "").replace(closing, "") for part in (left, right))
    return left, right


def context_match(passage: str, start: int, length: int, left: str, right: str) -> int:
    """How many characters directly beside a span are those directly beside the question word, both sides together."""
    before, after = passage[:start], passage[start + length :]
    return _common_prefix(before[::-1], left[::-1]) + _common_prefix(after, right)


def _common_prefix(one: str, other: str) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _passage_around(sentences: Sequence[NamedSentence], index: int, max_chars: int) -> _Passage:
    """The sentences next to one, itself left out, alternately after and before it, as many as fit."""
    before, after = list(range(index - 1, -1, -1)), list(range(index + 1, len(sentences)))
    chosen: list[int] = []
    size = 0
    sides = [after, before]
    while any(sides):
        for side in sides:
            if not side:
                continue
            if size + len(sentences[side[0]].text) + 1 > max_chars:
                side.clear()  # a passage has no gap but the source sentence
                continue
            size += len(sentences[side[0]].text) + 1
            chosen.append(side.pop(0))
    return _join([sentences[i] for i in sorted(chosen)])


def _join(sentences: Sequence[NamedSentence]) -> _Passage:
    text, placed = "", []
    for sentence in sentences:
        # A headline ends in no mark, and would run into what follows.
        text += "\n" if text and not ends_sentence(text) else ""
        placed.append((len(text), sentence))
        text += sentence.text
    return _Passage(text, tuple(placed))
