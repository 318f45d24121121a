"""Sentences of a corpus as lists of words or word pieces, streamed from its shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import InputError
from components.formats import SegmentedDocument, ShardWriter, Split, corpus_shards, read_documents, read_jsonl

MAX_SENTENCE_WORDS = 10_000
"""gensim drops what follows this many words of a sentence without a word about it; longer ones are cut up here."""


@dataclass
class Sentences:
    """The sentences of a split; can be iterated again and again, one document in memory at a time."""

    corpus: Path
    split: Split = "train"

    def __iter__(self) -> Iterator[list[str]]:
        for shard in corpus_shards(self.corpus, self.split):
            for row in read_jsonl(shard):
                for words in row["sentences"]:
                    for start in range(0, len(words), MAX_SENTENCE_WORDS):
                        yield words[start : start + MAX_SENTENCE_WORDS]


@dataclass
class Census:
    """What a pass over the training split found."""

    counts: Counter[str] = field(default_factory=Counter)
    num_sentences: int = 0
    """Sentences with at least one word, after long ones were cut."""
    num_cut_sentences: int = 0
    num_empty_sentences: int = 0

    @property
    def num_words(self) -> int:
        """Running words."""
        return self.counts.total()


def take_census(corpus: Path) -> Census:
    """Count the words of the training split, and check every row on the way.

    Raises:
        InputError: No training shard, a sentence that is not a list of words, or a word that holds white space.
    """
    census = Census()
    shards = corpus_shards(corpus, "train")
    if not shards:
        raise InputError("no train-*.jsonl shard", file=corpus, remedy="give a segmented corpus with a training split")
    for shard in shards:
        for number, row in enumerate(read_jsonl(shard), 1):
            for words in row["sentences"]:
                _check_sentence(words, census.counts, shard, number)
                parts = -(-len(words) // MAX_SENTENCE_WORDS)
                census.num_sentences += parts
                census.num_cut_sentences += parts > 1
                census.num_empty_sentences += parts == 0
                census.counts.update(words)
    return census


def _check_sentence(words: object, known: Counter[str], shard: Path, line: int) -> None:
    if not isinstance(words, list):
        raise InputError(
            f"sentence {str(words)[:40]!r} is {type(words).__name__}, not a list of words: training on it would give "
            "vectors of single letters",
            file=shard, line=line, remedy='segment the corpus first: a sentence is ["我", "爱", "读书"]',
        )  # fmt: skip
    for word in words:
        if word in known:
            continue
        if not isinstance(word, str) or word.split() != [word]:
            raise InputError(
                f"word {word!r} is no string, empty or holds white space, which vectors.txt cannot store",
                file=shard, line=line, remedy="segment the corpus again; the shared segmenter gives no such words",
            )  # fmt: skip


def write_pieces(corpus: Path, split_text: Callable[[str], list[str]], folder: Path) -> None:
    """Write a corpus as word pieces, in the layout of a segmented corpus, so that each epoch need not tokenize anew.

    Args:
        corpus: Prepared corpus; all its splits but test are read.
        split_text: Gives the pieces of a sentence.
        folder: Existing folder for the shards.
    """
    splits: tuple[Split, ...] = ("train", "validation")
    for split in splits:
        writer = ShardWriter(folder, split)
        for document in read_documents(corpus, split):
            pieces = tuple(tuple(split_text(sentence)) for sentence in document.sentences)
            writer.write(SegmentedDocument(document.id, pieces))
        writer.close()


def oov_rate(corpus: Path, split: Split, vocabulary: dict[str, int]) -> float | None:
    """Share of the running words of a split that are not in the vocabulary; None when the split has no words."""
    known = total = 0
    for words in Sentences(corpus, split):
        total += len(words)
        known += sum(word in vocabulary for word in words)
    return None if total == 0 else 1 - known / total
