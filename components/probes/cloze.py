"""Held-out passages with one hidden piece, and pairs of passages for next sentence prediction.

Pieces are cut from the documents that the encoder's corpus held out; what is hidden and paired is drawn from a seed.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from components.formats import Split, read_documents
from components.probes.minimal_pairs import masked_scores

TOP = 5
_DRAWS = 8


@dataclass(frozen=True)
class Pieces:
    """A document as pieces: one list of ids a sentence."""

    id: str
    sentences: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Hidden:
    """A row of ids with [CLS] and [SEP], and the place to hide."""

    document: str
    row: tuple[int, ...]
    place: int


@dataclass(frozen=True)
class PassagePair:
    """Two passages and whether the second one follows the first."""

    document: str
    first: tuple[int, ...]
    second: tuple[int, ...]
    is_next: bool


@dataclass(frozen=True)
class PassagePairs:
    """Pairs of passages, half of them consecutive; boundaries = pairs + without a stranger + not needed."""

    pairs: list[PassagePair]
    num_boundaries: int
    """Places between two sentences of one document."""
    num_without_foreign: int
    """Of those, places where no other document has a passage as long as the true continuation."""

    @property
    def num_not_needed(self) -> int:
        """Boundaries beyond the number of pairs that was asked for."""
        return self.num_boundaries - self.num_without_foreign - len(self.pairs)


def read_pieces(corpus: Path, split: Split, tokenizer: Any, most: int | None = None) -> list[Pieces]:
    """The documents of a split as pieces without special tokens; documents without any piece are left out."""
    found = []
    for document in read_documents(corpus, split):
        encodings = tokenizer.backend_tokenizer.encode_batch(list(document.sentences), add_special_tokens=False)
        sentences = tuple(tuple(encoding.ids) for encoding in encodings if encoding.ids)
        if sentences:
            found.append(Pieces(document.id, sentences))
        if most is not None and len(found) == most:
            break
    return found


def piece_counts(documents: Sequence[Pieces], vocab_size: int) -> NDArray[np.int64]:
    """How often each piece occurs."""
    counts = np.zeros(vocab_size, dtype=np.int64)
    for document in documents:
        for sentence in document.sentences:
            counts += np.bincount(sentence, minlength=vocab_size)
    return counts


def hide_pieces(
    documents: Sequence[Pieces], number: int, *, length: int, cls: int, sep: int, unk: int, seed: int
) -> list[Hidden]:
    """Draw ``number`` places in windows of at most ``length`` pieces; unknown pieces are never hidden.

    Windows take turns, so that no document is asked twice before every window was asked once.
    """
    windows = [
        (document.id, (cls, *flat[start : start + length - 2], sep))
        for document in documents
        for flat in [[piece for sentence in document.sentences for piece in sentence]]
        for start in range(0, len(flat), length - 2)
    ]
    generator = random.Random(seed)
    queues = []
    for name, row in windows:
        places = [place for place in range(1, len(row) - 1) if row[place] != unk]
        generator.shuffle(places)
        queues.append((name, row, places))
    generator.shuffle(queues)
    deepest = max((len(places) for _, _, places in queues), default=0)
    rounds = (
        (name, row, places[turn]) for turn in range(deepest) for name, row, places in queues if turn < len(places)
    )
    return [Hidden(*found) for found, _ in zip(rounds, range(number), strict=False)]


def pair_passages(documents: Sequence[Pieces], number: int, *, length: int, seed: int) -> PassagePairs:
    """Passages before and after a sentence boundary, or with a passage of another document in its place.

    Exactly half of the pairs are consecutive. A foreign passage starts at a sentence and has as many pieces as the true
    one; a boundary for which no other document has one is left out of both halves, so that length gives nothing away.

    Args:
        documents: Held-out documents.
        number: Most pairs; an odd number gives one less.
        length: Longest row in pieces with its three special tokens, at least 5.
        seed: Chooses boundaries and foreign passages.
    """
    generator = random.Random(seed)
    boundaries = [(index, at) for index, document in enumerate(documents) for at in range(1, len(document.sentences))]
    generator.shuffle(boundaries)
    strangers, room = _Strangers(documents), (length - 3) // 2
    pairs: list[PassagePair] = []
    num_without = 0
    for index, at in boundaries:
        document = documents[index]
        first = [piece for sentence in document.sentences[:at] for piece in sentence][-room:]
        second = [piece for sentence in document.sentences[at:] for piece in sentence][:room]
        foreign = strangers.draw(index, len(second), generator)
        if foreign is None:
            num_without += 1
        elif len(pairs) < number - number % 2:
            is_next = len(pairs) % 2 == 0
            pairs.append(PassagePair(document.id, tuple(first), tuple(second if is_next else foreign), is_next))
    return PassagePairs(pairs[: len(pairs) - len(pairs) % 2], len(boundaries), num_without)


class _Strangers:
    """Passages from every sentence to the end of its document, by length."""

    def __init__(self, documents: Sequence[Pieces]) -> None:
        self._documents = documents
        self._starts = sorted(
            (-sum(map(len, document.sentences[start:])), index, start)
            for index, document in enumerate(documents)
            for start in range(len(document.sentences))
        )

    def draw(self, index: int, length: int, generator: random.Random) -> list[int] | None:
        """The first ``length`` pieces of a passage of another document than ``index``; None when there is none."""
        count = bisect.bisect_right(self._starts, (-length, len(self._documents), 0))
        # Nearly always one of a few draws fits; only then is the whole list worth a look.
        drawn = (self._starts[generator.randrange(count)] for _ in range(_DRAWS if count else 0))
        others = [start for start in drawn if start[1] != index]
        others = others[:1] or [start for start in self._starts[:count] if start[1] != index]
        if not others:
            return None
        _, other, start = generator.choice(others)
        return [piece for sentence in self._documents[other].sentences[start:] for piece in sentence][:length]


def is_trained(head: Any) -> bool:
    """Whether a head of BERT was ever trained: its biases start at zero, and the first update moves them.

    Heads that a checkpoint lacked are written back with random weights, so that only this tells them from learned ones.

    Args:
        head: ``cls.predictions`` or ``cls.seq_relationship`` of a ``BertForPreTraining``.
    """
    # Biases alone: the scale of a layer normalisation is a vector too, and starts at one.
    biases = [values for name, values in head.named_parameters() if name.endswith("bias")]
    return any(bool(values.detach().any()) for values in biases)


def cloze_ranks(
    model: Any, hidden: Sequence[Hidden], *, mask_id: int, pad_id: int, batch_size: int
) -> NDArray[np.int64]:
    """How many pieces the model finds likelier than the true one, for each hidden piece; 0 is right."""
    ranks = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(hidden), batch_size):
        part = hidden[start : start + batch_size]
        scores = masked_scores(model, [(item.row, item.place) for item in part], mask_id=mask_id, pad_id=pad_id)
        truth = torch.tensor([item.row[item.place] for item in part])
        ranks.append((scores > scores.gather(1, truth[:, None])).sum(dim=1).numpy())
    return np.concatenate(ranks).astype(np.int64)


def says_next(
    model: Any, pairs: Sequence[PassagePair], *, cls: int, sep: int, pad_id: int, batch_size: int
) -> NDArray[np.bool_]:
    """Whether the model takes the second passage of each pair for the continuation of the first."""
    found = []
    for start in range(0, len(pairs), batch_size):
        part = pairs[start : start + batch_size]
        rows = [[cls, *pair.first, sep, *pair.second, sep] for pair in part]
        longest = max(map(len, rows))
        ids, types, mask = (torch.full((len(rows), longest), value) for value in (pad_id, 0, 0))
        for number, (row, pair) in enumerate(zip(rows, part, strict=True)):
            ids[number, : len(row)] = torch.tensor(row)
            types[number, len(pair.first) + 2 : len(row)] = 1
            mask[number, : len(row)] = 1
        with torch.inference_mode():
            pooled = model.bert(input_ids=ids, token_type_ids=types, attention_mask=mask).pooler_output
            found.append((model.cls.seq_relationship(pooled).argmax(-1) == 0).numpy())
    return np.concatenate(found)
