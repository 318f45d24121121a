"""The files that stages exchange: JSON lines, corpus shards, encoder cards; examples and predictions lie beside this.

Every format opens in a notebook without this code. ``docs/data-formats.md`` shows one line of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from components.artifacts import write_atomic
from components.errors import ArtifactError, InputError

Split = Literal["train", "validation", "test"]
IGNORE_INDEX = -100
"""The label that no loss and no score counts; the only such value."""

EncoderFamily = Literal["bag_of_words", "word2vec", "recurrent", "bert"]
ENCODER_CARD = "encoder.json"


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value, readable and with sorted keys, atomically."""
    write_atomic(
        path, (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
    )


def read_json(path: Path) -> Any:
    """Read one JSON value."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Write one JSON value a line; returns the number of lines."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the values of a JSON-lines file, one in memory at a time."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            yield json.loads(line)


def numbered_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the 1-based line and value of every line of a JSON-lines file, to be checked.

    Raises:
        InputError: A line is not a JSON value; with the line.
    """
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line, text in enumerate(stream, 1):
            try:
                yield line, json.loads(text)
            except ValueError as error:
                raise InputError(f"not a JSON value: {error}", file=path, line=line) from error


# --- corpus shards ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Document:
    """A document as sentences in their order; ``id`` is ``file:line`` of its first line in the source."""

    id: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class SegmentedDocument:
    """A document as words: one tuple of words per sentence, in the order of the corpus it was made from."""

    id: str
    sentences: tuple[tuple[str, ...], ...]


class ShardWriter:
    """Writes documents into ``<split>-00000.jsonl`` and on, a new shard every ``shard_documents`` documents."""

    def __init__(self, folder: Path, split: Split, shard_documents: int = 5000) -> None:
        self._folder = folder
        self._split = split
        self._shard_documents = shard_documents
        self._stream: TextIO | None = None
        self.num_documents = 0

    def write(self, document: Document | SegmentedDocument) -> None:
        """Append one document."""
        if self.num_documents % self._shard_documents == 0:
            self.close()
            name = f"{self._split}-{self.num_documents // self._shard_documents:05d}.jsonl"
            self._stream = (self._folder / name).open("w", encoding="utf-8", newline="\n")
        assert self._stream is not None
        self._stream.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")
        self.num_documents += 1

    def close(self) -> None:
        """Close the current shard."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def corpus_shards(corpus: Path, split: Split) -> list[Path]:
    """The shards of a split, in order; empty when the corpus has no such split."""
    return sorted(corpus.glob(f"{split}-[0-9]*.jsonl"))


def read_documents(corpus: Path, split: Split = "train") -> Iterator[Document]:
    """Yield the documents of a prepared corpus, one in memory at a time."""
    for shard in corpus_shards(corpus, split):
        for row in read_jsonl(shard):
            yield Document(row["id"], tuple(row["sentences"]))


def read_segmented(corpus: Path, split: Split = "train") -> Iterator[SegmentedDocument]:
    """Yield the documents of a segmented corpus, one in memory at a time."""
    for shard in corpus_shards(corpus, split):
        for row in read_jsonl(shard):
            yield SegmentedDocument(row["id"], tuple(tuple(words) for words in row["sentences"]))


# --- encoder cards ----------------------------------------------------------------------------------


def write_encoder_card(folder: Path, family: EncoderFamily, **facts: Any) -> None:
    """Write ``encoder.json``, which says how to load the encoder in this folder."""
    write_json(folder / ENCODER_CARD, {"family": family, **facts})


def read_encoder_card(folder: Path) -> dict[str, Any]:
    """Read ``encoder.json``; its ``family`` names the loader.

    Raises:
        ArtifactError: The folder holds no encoder.
    """
    path = folder / ENCODER_CARD
    if not path.is_file():
        raise ArtifactError(f"{folder} holds no {ENCODER_CARD}: not an encoder artifact")
    card: dict[str, Any] = read_json(path)
    return card
