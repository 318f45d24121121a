"""Held-out texts in the corpus: what a test set must not share with the text that encoders are pretrained on.

Three ways to share, all counted: a document that is a held-out text (white space aside), a document that is nearly one,
and a held-out text or sentence inside a longer document, whose sentences are then removed. The last is found with a
rolling hash (Karp and Rabin 1987) of the first characters of every held-out text and sentence, and verified.

Texts are those of any task: both texts of a pair, tagged texts, passages of questions, and the sentences that built
questions were made from. Tagged texts and passages come from running text, whose sentences a corpus may hold singly,
so that their short sentences count too where they are a whole sentence of a document.
"""

from __future__ import annotations

import bisect
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.corpus.config import CorpusConfig
from components.corpus.duplicates import ExactIndex, NearIndex, compact, minhash_signature
from components.errors import InputError
from components.examples import SOURCE_SENTENCES, AnyExample, Example, TaskName, parse_example, read_task
from components.formats import Split, read_jsonl
from components.text.normalization import normalize
from components.text.sentences import split_sentences

HELD_OUT_SPLITS: tuple[Split, ...] = ("validation", "test")
_PUNCTUATION_AT_ENDS = re.compile(r"\A[\W_]+|[\W_]+\Z")
_MULTIPLIER = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64


@dataclass(frozen=True)
class Containment:
    """Sentences of a document in which a held-out text occurs."""

    held_out_id: str
    sentences: range


@dataclass(frozen=True)
class HeldOutText:
    """A text that must not be in the corpus."""

    id: str
    """Dataset (by position), split and example."""
    lines: tuple[str, ...]
    """Its lines, normalised."""
    running: bool
    """Whether it was taken from running text, such as an article."""


class HeldOutIndex:
    """The validation and test texts of the datasets that the corpus must not contain."""

    def __init__(self, datasets: Sequence[Path], config: CorpusConfig, connection: sqlite3.Connection) -> None:
        self.num_texts = 0
        self._num_chars = config.min_held_out_chars
        self._exact = ExactIndex(connection, "held_out")
        self._near = NearIndex(connection, "held_out", config.near_duplicate_threshold)
        self._short: dict[str, str] = {}
        anchors: dict[int, list[tuple[str, str]]] = {}
        for text in _held_out_texts(datasets, config):
            self.num_texts += 1
            whole = compact("".join(text.lines))
            if not whole:
                continue
            self._exact.add(whole, text.id)
            self._near.add(minhash_signature(whole), text.id)
            sentences = (sentence for line in text.lines for sentence in split_sentences(line, config.language))
            for unit in {_without_marks(part) for part in (whole, *map(compact, sentences))}:
                if len(unit) >= self._num_chars:
                    anchors.setdefault(_hash(unit[: self._num_chars]), []).append((unit, text.id))
                elif unit and text.running:
                    self._short.setdefault(unit, text.id)
        self._anchors = {key: sorted(set(units)) for key, units in anchors.items()}
        self._anchor_keys = np.array(sorted(anchors), dtype=np.uint64)

    def find_exact(self, text: str) -> str | None:
        """Id of the held-out text that equals ``text``, which holds no white space; or None."""
        return self._exact.find(text) if self.num_texts else None

    def find_near(self, signature: NDArray[np.uint32]) -> str | None:
        """Id of the held-out text that is nearly the same, or None."""
        found = self._near.find(signature)
        return None if found is None else found[0]

    def find_contained(self, sentences: Sequence[str]) -> list[Containment]:
        """Where held-out texts or sentences occur in a document.

        Args:
            sentences: Sentences of one document.

        Returns:
            The sentences touched by each occurrence, in order of position.
        """
        if not len(self._anchor_keys) and not self._short:
            return []
        parts = [compact(sentence) for sentence in sentences]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).tolist()
        text = "".join(parts)
        found = [
            Containment(text_id, range(bisect.bisect_right(starts, start) - 1, bisect.bisect_left(starts, end)))
            for start, end, text_id in self._occurrences(text)
        ]
        for index, part in enumerate(parts):
            if (short_id := self._short.get(_without_marks(part))) is not None:
                found.append(Containment(short_id, range(index, index + 1)))
        return sorted(found, key=lambda containment: containment.sentences.start)

    def _occurrences(self, text: str) -> Iterator[tuple[int, int, str]]:
        if not len(self._anchor_keys):
            return
        windows = window_hashes(text, self._num_chars)
        slots = np.searchsorted(self._anchor_keys, windows)
        slots[slots == len(self._anchor_keys)] = 0
        for start in np.flatnonzero(self._anchor_keys[slots] == windows).tolist():
            for unit, text_id in self._anchors[int(windows[start])]:
                if text.startswith(unit, start):
                    yield start, start + len(unit), text_id


def window_hashes(text: str, width: int) -> NDArray[np.uint64]:
    """Polynomial hashes modulo 2**64 of every window of ``width`` characters.

    Args:
        text: Any text.
        width: Window length in characters.

    Returns:
        Shape [len(text) - width + 1] (empty for a shorter text), uint64; entry i equals ``_hash(text[i:i + width])``.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    if len(codes) < width:
        return np.zeros(0, dtype=np.uint64)
    # The hash of 2n characters is that of the first n times P**n plus that of the other n: log2(width) steps.
    hashes, length = codes, 1
    for bit in bin(width)[3:]:
        hashes = hashes[:-length] * np.uint64(pow(_MULTIPLIER, length, _MODULUS)) + hashes[length:]
        length *= 2
        if bit == "1":
            hashes = hashes[:-1] * np.uint64(_MULTIPLIER) + codes[length:]
            length += 1
    return hashes


def _hash(window: str) -> int:
    value = 0
    for character in window:
        value = (value * _MULTIPLIER + ord(character)) % _MODULUS
    return value


def _without_marks(text: str) -> str:
    """The text without marks at its ends: whoever quotes a text may end it with another one."""
    return _PUNCTUATION_AT_ENDS.sub("", text)


def _held_out_texts(datasets: Sequence[Path], config: CorpusConfig) -> Iterator[HeldOutText]:
    """Normalised held-out texts of all datasets; a passage once, however many questions ask about it."""
    normalization = config.normalization.model_copy(update={"surrogates": "replace"})
    for index, dataset in enumerate(datasets):
        splits = [split for split in HELD_OUT_SPLITS if (dataset / f"{split}.jsonl").is_file()]
        if not splits:
            raise InputError("no validation.jsonl and no test.jsonl: not a dataset", file=dataset)
        sources = _source_sentences(dataset)
        for split in splits:
            seen: set[str] = set()
            for example in _examples(dataset, split):
                running = not isinstance(example, Example)
                for text in (*_texts(example), *sources.get(example.id, ())):
                    if running and text in seen:
                        continue
                    seen.add(text)
                    # A line break ends a sentence, and normalising would make it a space.
                    lines = tuple(normalize(line, normalization).text for line in text.split("\n"))
                    yield HeldOutText(f"{index}/{split}/{example.id}", lines, running)


def _examples(dataset: Path, split: Split) -> Iterator[AnyExample]:
    task: TaskName = read_task(dataset) if (dataset / "task.json").is_file() else "classification"
    for row in read_jsonl(dataset / f"{split}.jsonl"):
        yield parse_example(task, row)


def _texts(example: AnyExample) -> list[str]:
    if isinstance(example, Example) and example.text_pair is not None:
        return [example.text, example.text_pair]
    return [example.text]


def _source_sentences(dataset: Path) -> dict[str, tuple[str, ...]]:
    """By question the sentence it was built from, which its passage lacks: it tells the answer."""
    path = dataset / SOURCE_SENTENCES
    return {row["id"]: (row["text"],) for row in read_jsonl(path)} if path.is_file() else {}
