"""Corpus sentences to what the WordPiece trainer needs: text, alphabet and counts, in one bounded pass."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from components.encoders.wordpiece import SPECIAL_TOKENS
from components.errors import InputError
from components.formats import Document, read_documents
from components.text.characters import count_control

_SPECIAL_STRINGS = re.compile("|".join(re.escape(token) for token in SPECIAL_TOKENS))


@dataclass
class CorpusScan:
    """What one pass over the corpus found."""

    characters: Counter[str] = field(default_factory=Counter)
    """Counts of the characters after the tokenizer's normaliser, white space left out."""
    continuations: set[str] = field(default_factory=set)
    """Characters met inside a word, which need a piece with the ``##`` prefix."""
    num_sentences: int = 0
    num_control_chars: int = 0
    """Control, format, private-use and unassigned characters, U+0000 and U+FFFD: BERT's clean-up drops them."""
    num_special_strings: int = 0
    """Spellings of special tokens in the text; they stay plain text."""


def read_sentences(corpus: Path) -> Iterator[tuple[str, str]]:
    """Yield (document id, sentence) of the training split, one document in memory at a time."""
    for document in read_documents(corpus, "train"):
        for sentence in document.sentences:
            yield document.id, sentence


def scan_corpus(
    corpus: Path,
    *,
    normalize: Callable[[str], str],
    split_words: Callable[[str], list[str]],
    max_control_rate: float,
) -> CorpusScan:
    """Count characters, continuation characters, control characters and special strings.

    Args:
        corpus: Corpus artifact.
        normalize: The tokenizer's normaliser.
        split_words: The tokenizer's pre-tokeniser.
        max_control_rate: Largest share of control characters in a document, in [0, 1].

    Raises:
        InputError: The corpus is empty, or a document looks like binary data.
    """
    scan = CorpusScan()

    @functools.lru_cache(maxsize=1 << 16)
    def continuations(chunk: str) -> frozenset[str]:
        return frozenset(character for word in split_words(chunk) for character in word[1:])

    for document in read_documents(corpus, "train"):
        _count_oddities(scan, document, max_control_rate)
        for sentence in document.sentences:
            chunks = normalize(sentence).split()
            scan.characters.update("".join(chunks))
            for chunk in chunks:
                if len(chunk) > 1:
                    scan.continuations |= continuations(chunk)
    if not scan.characters:
        raise InputError("no text to train on", file=corpus, remedy="check the corpus stage's counts and filters")
    return scan


def _count_oddities(scan: CorpusScan, document: Document, max_control_rate: float) -> None:
    scan.num_sentences += len(document.sentences)
    text = "".join(document.sentences)
    if "[" in text:
        scan.num_special_strings += sum(len(_SPECIAL_STRINGS.findall(sentence)) for sentence in document.sentences)
    count = count_control(text)
    scan.num_control_chars += count
    if count > max_control_rate * len(text):
        raise InputError(
            f"document {document.id}: {count} of {len(text)} characters are control characters "
            f"(limit {max_control_rate:.0%}) in {text[:20]!r}",
            remedy="remove the binary data or raise max_control_rate",
        )


def training_batches(corpus: Path, batch_sentences: int = 1000) -> Iterator[list[str]]:
    """Yield sentences for the trainer, spellings of special tokens blanked so that they add no pieces."""
    sentences = (_SPECIAL_STRINGS.sub(" ", sentence) for _, sentence in read_sentences(corpus))
    while batch := list(itertools.islice(sentences, batch_sentences)):
        yield batch
