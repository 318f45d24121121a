"""Held-out passages with one hidden piece, and pairs of passages for next sentence prediction.

Pieces are cut from the documents that the encoder's corpus held out; what is hidden and paired is drawn from a seed.
"""

from __future__ import annotations

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


def pair_passages(documents: Sequence[Pieces], number: int, *, length: int, seed: int) -> list[PassagePair]:
    """Passages before and after a sentence boundary, or with a passage of another document in its place.

    Half of the pairs are consecutive. A foreign passage starts at a sentence and has as many pieces as the true one or
    the rest of its document, so that its length gives little away.
    """
    generator = random.Random(seed)
    boundaries = [(number, at) for number, d in enumerate(documents) for at in range(1, len(d.sentences))]
    generator.shuffle(boundaries)
    pairs = []
    room = (length - 3) // 2
    for count, (index, at) in enumerate(boundaries[:number]):
        document = documents[index]
        first = [piece for sentence in document.sentences[:at] for piece in sentence][-room:]
        second = [piece for sentence in document.sentences[at:] for piece in sentence][:room]
        is_next = count % 2 == 0
        if not is_next:
            second = _foreign(documents, index, len(second), generator)
        pairs.append(PassagePair(document.id, tuple(first), tuple(second), is_next))
    return pairs


def _foreign(documents: Sequence[Pieces], index: int, length: int, generator: random.Random) -> list[int]:
    best: list[int] = []
    for _ in range(10):
        other = generator.randrange(len(documents) - 1)
        document = documents[other + (other >= index)]
        start = generator.randrange(len(document.sentences))
        found = [piece for sentence in document.sentences[start:] for piece in sentence][:length]
        best = max(best, found, key=len)
        if len(best) == length:
            break
    return best


def cloze_ranks(
    model: Any, hidden: Sequence[Hidden], *, mask_id: int, pad_id: int, batch_size: int
) -> NDArray[np.int64]:
    """How many pieces the model finds likelier than the true one, for each hidden piece; 0 is right."""
    ranks = []
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
