"""Corpus to token ids on disk, memory-mapped: documents are encoded once, training reads slices.

Memory stays that of one batch of documents plus the indices of sentences (12 bytes each) and documents.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import BertTokenizerFast

from components.errors import InputError
from components.formats import Document, SegmentedDocument, Split, read_documents, read_segmented

BATCH_DOCUMENTS = 256


@dataclass(frozen=True)
class TokenizedCorpus:
    """One split as one long array of piece ids with the places where sentences and documents start."""

    ids: NDArray[np.int32]
    """Shape [num_tokens], memory-mapped; no special tokens."""
    starts_word: NDArray[np.bool_] | None
    """Shape [num_tokens]: this piece opens a word. None without a segmented corpus."""
    sentence_starts: NDArray[np.int64]
    """Shape [num_sentences + 1], ending with num_tokens; sentences without pieces are left out."""
    document_starts: NDArray[np.int64]
    """Shape [num_documents + 1], indices into ``sentence_starts``, ending with num_sentences."""
    document_ids: tuple[str, ...]
    num_empty_sentences: int

    @property
    def num_documents(self) -> int:
        """Documents with at least one piece."""
        return len(self.document_ids)

    @property
    def num_sentences(self) -> int:
        """Sentences with at least one piece."""
        return len(self.sentence_starts) - 1


def tokenize_corpus(
    corpus: Path, split: Split, tokenizer: BertTokenizerFast, scratch: Path, segmented: Path | None = None
) -> TokenizedCorpus:
    """Encode a split into ``scratch`` and map it.

    Args:
        corpus: Corpus artifact.
        split: Which split.
        tokenizer: WordPiece tokenizer.
        scratch: Folder for the arrays; may be removed once the result is no longer used.
        segmented: The same corpus as words, for whole-word masking.

    Raises:
        InputError: The split holds no text, or the segmented corpus is not of this corpus.
    """
    sentence_lengths: list[int] = []
    document_sizes: list[int] = []
    document_ids: list[str] = []
    num_empty = 0
    with contextlib.ExitStack() as files:
        ids_file = files.enter_context((scratch / f"{split}.ids").open("wb"))
        words_file = files.enter_context((scratch / f"{split}.starts_word").open("wb"))
        for documents, words in _batches(corpus, split, segmented):
            encodings = iter(_encode(tokenizer, documents))
            for number, document in enumerate(documents):
                pieces = [next(encodings) for _ in document.sentences]
                if words is not None:
                    starts = _word_starts(document, words[number], pieces)
                    words_file.write(starts.astype(np.bool_).tobytes())
                lengths = [len(encoding.ids) for encoding in pieces]
                ids = itertools.chain.from_iterable(encoding.ids for encoding in pieces)
                ids_file.write(np.fromiter(ids, dtype=np.int32, count=sum(lengths)).tobytes())
                kept = [length for length in lengths if length]
                num_empty += len(lengths) - len(kept)
                if kept:
                    sentence_lengths += kept
                    document_sizes.append(len(kept))
                    document_ids.append(document.id)
    if not document_ids:
        raise InputError(
            f"no {split} text", file=corpus, remedy="add documents, or raise the share of held-out documents"
        )
    return TokenizedCorpus(
        ids=np.memmap(scratch / f"{split}.ids", dtype=np.int32, mode="r"),
        starts_word=np.memmap(scratch / f"{split}.starts_word", dtype=np.bool_, mode="r") if segmented else None,
        sentence_starts=_cumulative(sentence_lengths),
        document_starts=_cumulative(document_sizes),
        document_ids=tuple(document_ids),
        num_empty_sentences=num_empty,
    )


def _cumulative(counts: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _encode(tokenizer: BertTokenizerFast, documents: list[Document]) -> list[Any]:
    sentences = [sentence for document in documents for sentence in document.sentences]
    encodings: list[Any] = tokenizer.backend_tokenizer.encode_batch(sentences, add_special_tokens=False)
    return encodings


def _batches(
    corpus: Path, split: Split, segmented: Path | None
) -> Iterator[tuple[list[Document], list[SegmentedDocument] | None]]:
    documents = read_documents(corpus, split)
    words = read_segmented(segmented, split) if segmented else None
    while batch := list(itertools.islice(documents, BATCH_DOCUMENTS)):
        word_batch = None if words is None else list(itertools.islice(words, len(batch)))
        if word_batch is not None and [d.id for d in batch] != [d.id for d in word_batch]:
            raise InputError(
                f"documents after {batch[0].id} are not those of {corpus}",
                file=segmented,
                remedy="segment this very corpus",
            )
        yield batch, word_batch


def _word_starts(document: Document, words: SegmentedDocument, encodings: list[Any]) -> NDArray[np.bool_]:
    """Mark the pieces that open a word, by character offsets.

    Args:
        document: Sentences as text.
        words: The same sentences as words.
        encodings: The sentences' encodings with offsets, S of them.

    Returns:
        Shape [pieces of the document].
    """
    if len(words.sentences) != len(document.sentences):
        raise InputError(
            f"document {document.id}: {len(words.sentences)} segmented sentences, "
            f"{len(document.sentences)} in the corpus",
            remedy="segment this very corpus",
        )
    marks = [
        starts_of_words(sentence, sentence_words, encoding.offsets, document.id)
        for sentence, sentence_words, encoding in zip(document.sentences, words.sentences, encodings, strict=True)
    ]
    return np.concatenate(marks) if marks else np.zeros(0, dtype=np.bool_)


def starts_of_words(
    sentence: str, words: tuple[str, ...], offsets: list[tuple[int, int]], document_id: str
) -> NDArray[np.bool_]:
    """Which pieces open a word: the first one, and each that begins in another word than the piece before.

    Args:
        sentence: The text.
        words: Its words in order; between them there is nothing but white space.
        offsets: Start and end character of each piece, P of them.
        document_id: Named in errors.

    Returns:
        Shape [P].

    Raises:
        InputError: The words do not spell the sentence.
    """
    word_of_character = np.zeros(len(sentence) + 1, dtype=np.int64)
    position = 0
    for number, word in enumerate(words):
        found = sentence.find(word, position)
        if found < 0 or sentence[position:found].strip():
            raise InputError(
                f"document {document_id}: word {word!r} does not continue {sentence[:position][-10:]!r}",
                remedy="segment this very corpus",
            )
        position = found + len(word)
        word_of_character[found:position] = number + 1
    if sentence[position:].strip():
        raise InputError(f"document {document_id}: words end before {sentence[position:][:10]!r}")
    piece_words = word_of_character[[start for start, _ in offsets]] if offsets else np.zeros(0, dtype=np.int64)
    opens: NDArray[np.bool_] = np.diff(piece_words, prepend=-1) != 0
    return opens
