"""Next sentence prediction pairs, drawn anew for each epoch from (seed, epoch).

The idea is Devlin et al. 2019, section 3.1 and appendix A.2: segment B follows A in its document (label 0) or comes
from another document (label 1), half the time each. Three differences keep the labels from leaking and the text whole:
a random B is as long as the true continuation would have been; text that does not fit opens the next pair instead of
being cut away; a stretch without a sentence boundary becomes a single segment without a label, not a forced label 1.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.bert.data import TokenizedCorpus
from components.errors import InputError
from components.formats import IGNORE_INDEX

IS_NEXT, IS_RANDOM = 0, 1
"""``next_sentence_label`` of transformers' BERT."""
_SPECIALS_OF_PAIR, _SPECIALS_OF_SINGLE = 3, 2
LEAST_PAIRS = 0.05
"""Least share of instances that must be pairs for NSP to be worth its name."""
_TRIES = 10
_SHORTEST = 5


@dataclass(frozen=True)
class SentencePairs:
    """N instances as slices of the tokenized corpus; a single segment has an empty B."""

    spans: NDArray[np.int64]
    """Shape [N, 4]: start and end of A, start and end of B, in tokens of the corpus."""
    labels: NDArray[np.int64]
    """Shape [N]: 0 next, 1 random, -100 no label."""
    num_cut_sentences: int
    """Sentences that did not fit and go on in the next instance."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Shape [N]: pieces of each instance with its special tokens."""
        a_start, a_end, b_start, b_end = self.spans.T
        specials = np.where(self.labels == IGNORE_INDEX, _SPECIALS_OF_SINGLE, _SPECIALS_OF_PAIR)
        lengths: NDArray[np.int64] = (a_end - a_start) + (b_end - b_start) + specials
        return lengths


def make_pairs(
    corpus: TokenizedCorpus, *, max_seq_length: int, short_seq_probability: float, nsp: bool, seed: int, epoch: int
) -> SentencePairs:
    """Cut every document into instances of at most ``max_seq_length`` pieces.

    Args:
        corpus: Tokenized split; for NSP at least two documents.
        max_seq_length: Longest instance in pieces, special tokens included.
        short_seq_probability: Share of instances made shorter on purpose, in [0, 1].
        nsp: False gives single segments only.
        seed: Seed of the run.
        epoch: Number of the pass over the corpus.
    """
    generator = random.Random(f"{seed}:{epoch}")
    rows: list[tuple[int, int, int, int, int]] = []
    starts = corpus.sentence_starts.tolist()
    documents = corpus.document_starts.tolist()
    for first, last in itertools.pairwise(documents):
        _cut_document(rows, starts, documents, first, last, max_seq_length, short_seq_probability, nsp, generator)
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    boundaries = corpus.sentence_starts
    cut_ends = np.where(table[:, 4] == IS_NEXT, table[:, 3], table[:, 1])
    num_cut = int((boundaries[np.searchsorted(boundaries, cut_ends)] != cut_ends).sum())
    return SentencePairs(table[:, :4].copy(), table[:, 4].copy(), num_cut)


def _cut_document(
    rows: list[tuple[int, int, int, int, int]],
    starts: list[int],
    documents: list[int],
    first: int,
    last: int,
    max_seq_length: int,
    short_seq_probability: float,
    nsp: bool,
    generator: random.Random,
) -> None:
    position, document_end = starts[first], starts[last]
    while position < document_end:
        target = max_seq_length
        if short_seq_probability and generator.random() < short_seq_probability:
            target = generator.randint(min(_SHORTEST, max_seq_length), max_seq_length)
        end = min(position + target - _SPECIALS_OF_PAIR, document_end)
        low, high = bisect_right(starts, position, first, last), bisect_left(starts, end, first, last)
        if not nsp or low >= high:
            end = min(position + target - _SPECIALS_OF_SINGLE, document_end)
            rows.append((position, end, end, end, IGNORE_INDEX))
            position = end
            continue
        boundary = starts[generator.randrange(low, high)]
        if generator.random() < 0.5:
            rows.append((position, boundary, boundary, end, IS_NEXT))
            position = end
        else:
            b_start, b_end = _random_segment(starts, documents, first, last, end - boundary, generator)
            rows.append((position, boundary, b_start, b_end, IS_RANDOM))
            position = boundary


def _random_segment(
    starts: list[int], documents: list[int], first: int, last: int, length: int, generator: random.Random
) -> tuple[int, int]:
    """A stretch of ``length`` pieces from a sentence start of another document; shorter if no try finds one."""
    num_others = len(starts) - 1 - (last - first)
    best = (0, 0)
    for _ in range(_TRIES):
        sentence = generator.randrange(num_others)
        if sentence >= first:
            sentence += last - first
        document_end = starts[documents[bisect_right(documents, sentence)]]
        segment = (starts[sentence], min(starts[sentence] + length, document_end))
        if segment[1] - segment[0] == length:
            return segment
        best = max(best, segment, key=lambda found: found[1] - found[0])
    return best


def check_pairs(pairs: SentencePairs, corpus: TokenizedCorpus, *, max_seq_length: int, nsp: bool, file: str) -> None:
    """Refuse instances that cannot be trained on, before any training.

    Raises:
        InputError: An instance is too long or has a wrong label; fewer than 5 % of the instances are pairs (documents
            of one sentence, or documents that are not separated); the share of random pairs is outside 40-60 %.
    """
    shape = _shape(corpus)
    if (too_long := np.flatnonzero(pairs.lengths > max_seq_length)).size:
        raise InputError(
            f"instance {too_long[0]}: {pairs.lengths[too_long[0]]} pieces, limit {max_seq_length}", file=file
        )
    check_labels(pairs.labels, file=file)
    if not nsp:
        return
    labelled = pairs.labels[pairs.labels != IGNORE_INDEX]
    if len(labelled) < LEAST_PAIRS * len(pairs):
        raise InputError(
            f"only {len(labelled)} of {len(pairs)} instances can be sentence pairs: {shape}",
            file=file,
            remedy="separate documents (not sentences) by blank lines, raise max_seq_length, or set nsp: false",
        )
    share, slack = float((labelled == IS_RANDOM).mean()), 2 / np.sqrt(len(labelled))
    if not 0.4 - slack <= share <= 0.6 + slack:
        raise InputError(f"{share:.0%} of {len(labelled)} pairs are random, expected 40-60 %: {shape}", file=file)


def check_labels(labels: NDArray[np.int64], *, file: str) -> None:
    """Refuse a label that is neither 0 (next), 1 (random) nor -100 (none), with the number of its instance."""
    allowed = (IS_NEXT, IS_RANDOM, IGNORE_INDEX)
    if (wrong := np.flatnonzero(~np.isin(labels, allowed))).size:
        raise InputError(f"instance {wrong[0]}: next_sentence_label {labels[wrong[0]]}, allowed {allowed}", file=file)


def check_documents(corpus: TokenizedCorpus, *, file: str) -> None:
    """Refuse a corpus that cannot give next sentence pairs at all.

    Raises:
        InputError: Fewer than two documents, or no document with two sentences.
    """
    if corpus.num_documents < 2:
        raise InputError(
            f"NSP needs at least 2 documents, found {corpus.num_documents}",
            file=file,
            remedy="separate documents by blank lines, or set nsp: false",
        )
    if int(np.diff(corpus.document_starts).max()) < 2:
        raise InputError(
            f"NSP needs documents of two or more sentences: {_shape(corpus)}",
            file=file,
            remedy="separate documents (not sentences) by blank lines, or set nsp: false",
        )


def _shape(corpus: TokenizedCorpus) -> str:
    mean = corpus.num_sentences / max(corpus.num_documents, 1)
    return f"{corpus.num_documents} documents, {corpus.num_sentences} sentences, {mean:.1f} sentences per document"
