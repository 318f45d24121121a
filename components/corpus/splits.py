"""Training and validation documents of a corpus: chosen by content, so that more text moves no document."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from components.contract import Metrics
from components.corpus.duplicates import compact, text_digest
from components.formats import Document, ShardWriter, corpus_shards, read_jsonl, write_jsonl


class SplitWriter:
    """Writes documents to train or validation by a hash of their text, and counts them."""

    def __init__(self, folder: Path, validation_fraction: float) -> None:
        self._folder = folder
        self._fraction = validation_fraction
        self._writers = {"train": ShardWriter(folder, "train"), "validation": ShardWriter(folder, "validation")}
        self._num = {"train": 0, "validation": 0}
        self._lowest = (2.0, "")
        self._num_sentences = self._num_chars = self._num_single_sentence = self._max_sentences = 0

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()

    @property
    def num_documents(self) -> int:
        """Documents written to both splits."""
        return sum(self._num.values())

    def write(self, document: Document) -> None:
        """Write one document with at least one sentence."""
        text = compact("".join(document.sentences))
        position = (text_digest(text) % 2**64) / 2**64
        self._lowest = min(self._lowest, (position, document.id))
        split = "validation" if position < self._fraction else "train"
        self._writers[split].write(document)
        self._num[split] += 1
        self._num_sentences += len(document.sentences)
        self._num_chars += sum(map(len, document.sentences))
        self._num_single_sentence += len(document.sentences) == 1
        self._max_sentences = max(self._max_sentences, len(document.sentences))

    def ensure_validation(self) -> None:
        """Move the document with the lowest hash to validation when a small corpus left that split empty.

        Only the shard with that document is written again, and only if training keeps a document.
        """
        if self._fraction == 0 or self._num["validation"] or self._num["train"] < 2:
            return
        for shard in corpus_shards(self._folder, "train"):
            if not any(row["id"] == self._lowest[1] for row in read_jsonl(shard)):
                continue
            temporary = shard.with_suffix(".tmp")
            write_jsonl(temporary, (row for row in read_jsonl(shard) if row["id"] != self._lowest[1]))
            write_jsonl(
                self._folder / "validation-00000.jsonl",
                (row for row in read_jsonl(shard) if row["id"] == self._lowest[1]),
            )
            temporary.replace(shard)
            self._num = {"train": self._num["train"] - 1, "validation": 1}
            return

    def metrics(self) -> Metrics:
        """Documents, sentences and characters kept."""
        return {
            "num_documents": float(self.num_documents),
            "num_train_documents": float(self._num["train"]),
            "num_validation_documents": float(self._num["validation"]),
            "num_sentences": float(self._num_sentences),
            "num_chars": float(self._num_chars),
            "num_single_sentence_documents": float(self._num_single_sentence),
            "mean_sentences_per_document": self._num_sentences / max(1, self.num_documents),
            "max_sentences_per_document": float(self._max_sentences),
        }
