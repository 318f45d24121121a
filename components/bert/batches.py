"""Packed, masked batches: the rows of step ``s`` are a function of the seed and ``s``, so training can stop anywhere.

Shape legend: R rows, S pieces of a row, P instances (sentence pairs or single segments) of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.bert.data import TokenizedCorpus
from components.bert.masking import Masked, mask_tokens
from components.bert.packing import PackedRows, pack
from components.bert.sentence_pairs import SentencePairs, make_pairs
from components.encoders.wordpiece import PieceIds
from components.formats import IGNORE_INDEX


@dataclass(frozen=True)
class Batch:
    """Rows ready for the model, each holding one or more instances side by side."""

    input_ids: NDArray[np.int64]
    """Shape [R, S]."""
    token_type_ids: NDArray[np.int64]
    """Shape [R, S]: 1 in segment B and its [SEP]."""
    position_ids: NDArray[np.int64]
    """Shape [R, S], counted from 0 in every instance."""
    instances: NDArray[np.int64]
    """Shape [R, S]: number of the instance in the batch, -1 for padding. Attention stays within equal numbers."""
    labels: NDArray[np.int64]
    """Shape [R, S]: piece to predict, or -100."""
    cls_positions: NDArray[np.int64]
    """Shape [P]: where each instance starts, as row * S + column."""
    next_sentence_labels: NDArray[np.int64]
    """Shape [P]: 0 next, 1 random, -100 no label."""
    num_maskable: int
    """Pieces that are neither special nor padding."""
    documents: tuple[str, ...] = ()
    """Document of the first instance of each row."""

    @property
    def attention_mask(self) -> NDArray[np.bool_]:
        """Shape [R, 1, S, S]: block-diagonal; padding sees only padding, so that no row of it is empty."""
        mask: NDArray[np.bool_] = self.instances[:, None, :, None] == self.instances[:, None, None, :]
        return mask

    @property
    def num_tokens(self) -> int:
        """Pieces that are no padding."""
        return int((self.instances >= 0).sum())

    def rows(self, start: int, stop: int) -> Batch:
        """Rows ``start`` to ``stop`` as a batch of their own (``num_maskable`` stays that of the whole)."""
        length = self.input_ids.shape[1]
        inside = (self.cls_positions >= start * length) & (self.cls_positions < stop * length)
        return Batch(
            self.input_ids[start:stop],
            self.token_type_ids[start:stop],
            self.position_ids[start:stop],
            self.instances[start:stop],
            self.labels[start:stop],
            self.cls_positions[inside] - start * length,
            self.next_sentence_labels[inside],
            self.num_maskable,
            self.documents[start:stop],
        )


@dataclass(frozen=True)
class Epoch:
    """One pass over the corpus: its instances, how they share rows, and the order of the rows."""

    pairs: SentencePairs
    packed: PackedRows
    order: NDArray[np.int64]

    def padding_share(self, row_length: int) -> float:
        """Share of positions that hold no piece."""
        return 1.0 - float(self.pairs.lengths.sum()) / (self.packed.num_rows * row_length)


def plan_epoch(
    corpus: TokenizedCorpus, *, max_seq_length: int, short_seq_probability: float, nsp: bool, seed: int, epoch: int
) -> Epoch:
    """Draw, pack and shuffle the instances of one epoch, from (seed, epoch) alone."""
    pairs = make_pairs(
        corpus,
        max_seq_length=max_seq_length,
        short_seq_probability=short_seq_probability,
        nsp=nsp,
        seed=seed,
        epoch=epoch,
    )
    packed = pack(pairs.lengths, max_seq_length)
    return Epoch(pairs, packed, np.random.default_rng([seed, epoch]).permutation(packed.num_rows))


class PackedData:
    """Batches by step number. Keeps the plan of the current epoch, as drawing it takes a moment.

    Every epoch has as many steps as the first. Later epochs cut the text elsewhere and may pack into a few rows more
    (then these are left out) or less (then a few come twice).
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        pieces: PieceIds,
        *,
        max_seq_length: int,
        short_seq_probability: float,
        nsp: bool,
        mlm_probability: float,
        batch_size: int,
        seed: int,
    ) -> None:
        self._corpus = corpus
        self._pieces = pieces
        self._max_seq_length = max_seq_length
        self._short_seq_probability = short_seq_probability
        self._nsp = nsp
        self._mlm_probability = mlm_probability
        self._batch_size = batch_size
        self._seed = seed
        self._number, self._epoch = 0, self.plan(0)
        self.num_steps_per_epoch = -(-self._epoch.packed.num_rows // batch_size)

    def plan(self, epoch: int) -> Epoch:
        """The plan of any epoch."""
        return plan_epoch(
            self._corpus,
            max_seq_length=self._max_seq_length,
            short_seq_probability=self._short_seq_probability,
            nsp=self._nsp,
            seed=self._seed,
            epoch=epoch,
        )

    @property
    def epoch(self) -> Epoch:
        """The plan in use."""
        return self._epoch

    def batch_at(self, step: int) -> Batch:
        """The masked batch of a training step."""
        number, place = divmod(step, self.num_steps_per_epoch)
        if number != self._number:
            self._number, self._epoch = number, self.plan(number)
        rows = (place * self._batch_size + np.arange(self._batch_size)) % self._epoch.packed.num_rows
        return make_batch(
            self._corpus,
            self._epoch,
            self._epoch.order[rows],
            self._pieces,
            row_length=self._max_seq_length,
            mlm_probability=self._mlm_probability,
            generator=np.random.default_rng([self._seed, 1, step]),
        )


def make_batch(
    corpus: TokenizedCorpus,
    epoch: Epoch,
    rows: NDArray[np.int64],
    pieces: PieceIds,
    *,
    row_length: int,
    mlm_probability: float,
    generator: np.random.Generator,
) -> Batch:
    """Lay the instances of ``rows`` side by side and mask them.

    Args:
        corpus: Tokenized split.
        epoch: Instances and how they are packed.
        rows: Shape [R], numbers of packed rows.
        pieces: Ids of the special tokens and of the rest.
        row_length: S.
        mlm_probability: Chance of a piece or word to be predicted, in (0, 1).
        generator: Source of the masks.
    """
    members, place = epoch.packed.of_rows(rows)
    shape = (len(rows), row_length)
    size = len(rows) * row_length
    input_ids = np.full(size, pieces.pad, dtype=np.int64)
    token_type_ids, position_ids = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    instances, opens = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    maskable = np.zeros(size, dtype=np.bool_)
    lengths = epoch.pairs.lengths[members]
    starts = _starts_in_rows(lengths, place, row_length)
    for number, (start, length, member) in enumerate(
        zip(starts.tolist(), lengths.tolist(), members.tolist(), strict=True)
    ):
        stop = start + length
        instances[start:stop] = number
        position_ids[start:stop] = np.arange(length)
        a_start, a_end, b_start, b_end = epoch.pairs.spans[member].tolist()
        input_ids[start] = pieces.cls
        middle = start + 1 + a_end - a_start
        _lay(corpus, a_start, a_end, start + 1, pieces.sep, input_ids, opens, maskable)
        if epoch.pairs.labels[member] != IGNORE_INDEX:
            _lay(corpus, b_start, b_end, middle + 1, pieces.sep, input_ids, opens, maskable)
            token_type_ids[middle + 1 : stop] = 1
    units = np.where(maskable, np.cumsum(opens) - 1, -1)
    masked = _mask(input_ids, units, instances, shape, pieces, mlm_probability, generator)
    return Batch(
        masked.input_ids,
        token_type_ids.reshape(shape),
        position_ids.reshape(shape),
        instances.reshape(shape),
        masked.labels,
        starts,
        epoch.pairs.labels[members],
        int(maskable.sum()),
        _documents(corpus, epoch.pairs.spans[members[np.searchsorted(place, np.arange(len(rows)))], 0]),
    )


def _starts_in_rows(lengths: NDArray[np.int64], place: NDArray[np.int64], row_length: int) -> NDArray[np.int64]:
    before = np.cumsum(lengths) - lengths
    first_of_row = np.searchsorted(place, place)
    starts: NDArray[np.int64] = place * row_length + before - before[first_of_row]
    return starts


def _lay(
    corpus: TokenizedCorpus,
    start: int,
    end: int,
    position: int,
    sep: int,
    input_ids: NDArray[np.int64],
    opens: NDArray[np.bool_],
    maskable: NDArray[np.bool_],
) -> None:
    stop = position + end - start
    input_ids[position:stop] = corpus.ids[start:end]
    input_ids[stop] = sep
    maskable[position:stop] = True
    opens[position:stop] = True if corpus.starts_word is None else corpus.starts_word[start:end]
    # A segment may start inside a word that the previous instance could not hold to its end.
    opens[position : min(position + 1, stop)] = True


def _mask(
    input_ids: NDArray[np.int64],
    units: NDArray[np.int64],
    instances: NDArray[np.int64],
    shape: tuple[int, int],
    pieces: PieceIds,
    mlm_probability: float,
    generator: np.random.Generator,
) -> Masked:
    return mask_tokens(
        input_ids.reshape(shape),
        units.reshape(shape),
        instances.reshape(shape),
        mlm_probability=mlm_probability,
        mask_token_id=pieces.mask,
        replacements=pieces.ordinary,
        generator=generator,
    )


def _documents(corpus: TokenizedCorpus, tokens: NDArray[np.int64]) -> tuple[str, ...]:
    sentences = np.searchsorted(corpus.sentence_starts, tokens, side="right") - 1
    documents = np.searchsorted(corpus.document_starts, sentences, side="right") - 1
    return tuple(corpus.document_ids[number] for number in documents)
