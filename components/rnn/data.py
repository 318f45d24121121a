"""Vocabulary of a segmented corpus, and its words as windows of one length.

Legend of shape suffixes: B windows, L words per window.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.errors import InputError
from components.formats import (
    SegmentedDocument,
    ShardWriter,
    Split,
    corpus_shards,
    read_documents,
    read_jsonl,
    read_segmented,
)
from components.text.vocabulary import UNK_ID, Vocabulary


def write_pieces(corpus: Path, split_text: Callable[[str], list[str]], folder: Path) -> Path:
    """Write a prepared corpus as pieces, in the layout of a segmented corpus, into ``folder``; returns it."""
    splits: tuple[Split, ...] = ("train", "validation")
    for split in splits:
        writer = ShardWriter(folder, split)
        for document in read_documents(corpus, split):
            pieces = tuple(tuple(split_text(sentence)) for sentence in document.sentences)
            writer.write(SegmentedDocument(document.id, pieces))
        writer.close()
    return folder


def count_words(segmented: Path) -> Counter[str]:
    """Occurrences of every word of the training split.

    Raises:
        InputError: No training shard, or a sentence that is not a list of words; with file and line.
    """
    shards = corpus_shards(segmented, "train")
    if not shards:
        raise InputError("no train-*.jsonl shard", file=segmented, remedy="give a segmented corpus")
    counts: Counter[str] = Counter()
    for shard in shards:
        for number, row in enumerate(read_jsonl(shard), 1):
            for words in row["sentences"]:
                if not isinstance(words, list):
                    raise InputError(
                        f"sentence {str(words)[:40]!r} is not a list of words", file=shard, line=number,
                        remedy="segment the corpus first",
                    )  # fmt: skip
                counts.update(words)
    return counts


def build_vocabulary(counts: Counter[str], min_count: int, max_vocab_size: int, *, source: Path) -> Vocabulary:
    """The most frequent words of the corpus.

    Raises:
        InputError: No word reaches ``min_count``; names the highest count.
    """
    vocabulary = Vocabulary.from_counts(counts, min_count=min_count, max_size=max_vocab_size)
    if len(vocabulary) == 2:
        highest = max(counts.values(), default=0)
        raise InputError(
            f"train_recurrent: min_count={min_count} keeps 0 of {len(counts)} types; the highest count is {highest}",
            file=source,
            remedy="lower min_count or add text",
        )
    return vocabulary


@dataclass(frozen=True)
class WordIds:
    """The words of a split as one stream of ids on disk, read by windows.

    Documents follow one another; a window may span two. Only the first words of a document pay for that.
    """

    ids: NDArray[np.int32]
    """Shape [number of words]; memory-mapped, so that memory does not grow with the corpus."""
    num_unknown: int

    def num_windows(self, length: int) -> int:
        """Whole windows; the words after the last one are not used."""
        return len(self.ids) // length

    def windows(self, numbers: NDArray[np.int64], length: int) -> Tensor:
        """Windows by number, shape [B, L], int64."""
        places_BL = numbers[:, None] * length + np.arange(length)
        return torch.from_numpy(self.ids[places_BL].astype(np.int64))


def write_word_ids(segmented: Path, split: Split, vocabulary: Vocabulary, path: Path) -> WordIds:
    """Write the ids of a split's words into ``path`` (int32) and map them into memory."""
    num_words = num_unknown = 0
    with path.open("wb") as stream:
        for document in read_segmented(segmented, split):
            ids = vocabulary.encode(word for words in document.sentences for word in words)
            num_words += len(ids)
            num_unknown += ids.count(UNK_ID)
            array("i", ids).tofile(stream)
    empty = np.zeros(0, dtype=np.int32)
    return WordIds(np.memmap(path, dtype=np.int32, mode="r") if num_words else empty, num_unknown)


def window_numbers(step: int, batch_size: int, num_windows: int, seed: int) -> NDArray[np.int64]:
    """The windows of one training step, a function of (seed, step) alone: resuming skips and repeats nothing.

    Every epoch is a permutation of its own; a batch may take its last windows from the next epoch.

    Returns:
        Window numbers, shape [batch_size].
    """
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    numbers = np.empty(batch_size, dtype=np.int64)
    for epoch in np.unique(places // num_windows):
        inside = places // num_windows == epoch
        order = np.random.default_rng((seed, int(epoch))).permutation(num_windows)
        numbers[inside] = order[places[inside] % num_windows]
    return numbers
