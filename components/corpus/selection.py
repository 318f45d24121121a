"""Which documents stay: each one that goes carries its reason, and input = kept + dropped."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.corpus.config import CorpusConfig
from components.corpus.duplicates import ExactIndex, NearIndex, compact, minhash_signature
from components.corpus.filters import drop_reason
from components.corpus.held_out import HeldOutIndex
from components.formats import Document

DROP_REASONS = (
    "empty",
    "short",
    "damaged",
    "language",
    "held_out_exact",
    "held_out_near",
    "held_out_contained",
    "exact_duplicate",
    "near_duplicate",
)
HELD_OUT_REASONS = ("held_out_exact", "held_out_near", "held_out_contained")
EXAMPLES_PER_REASON = 20
_EXCERPT_CHARS = 80


class Selection:
    """Decides document by document, in the order of the corpus."""

    def __init__(self, config: CorpusConfig, held_out: Sequence[Path], connection: sqlite3.Connection) -> None:
        self._config = config
        self._held_out = HeldOutIndex(held_out, config, connection)
        self._exact = ExactIndex(connection, "corpus")
        self._near = NearIndex(connection, "corpus", config.near_duplicate_threshold)
        self._needs_signature = config.deduplicate_near or self._held_out.num_texts > 0
        self._dropped: Counter[str] = Counter()
        self._examples: dict[str, list[dict[str, str]]] = defaultdict(list)
        self._matched: set[str] = set()
        self.num_read = 0
        self._num_trimmed_documents = 0
        self._num_dropped_sentences = 0

    def select(self, document: Document) -> Document | None:
        """The document, without sentences that held-out texts share; None when it is dropped."""
        self.num_read += 1
        text = compact("".join(document.sentences))
        if (reason := drop_reason(text, self._config)) is not None:
            return self._drop(reason, document)
        if (other := self._held_out.find_exact(text)) is not None:
            return self._drop("held_out_exact", document, other)
        if self._config.deduplicate_exact:
            if (other := self._exact.find(text)) is not None:
                return self._drop("exact_duplicate", document, other)
            self._exact.add(text, document.id)
        return self._select_by_likeness(document, text)

    def metrics(self) -> dict[str, float]:
        """Documents read and dropped by reason, and what held-out texts cost."""
        dropped = {f"num_dropped_{reason}": float(self._dropped[reason]) for reason in DROP_REASONS}
        return dropped | {
            "num_documents_read": float(self.num_read),
            "num_documents_dropped": float(self._dropped.total()),
            "num_documents_trimmed": float(self._num_trimmed_documents),
            "num_sentences_dropped_held_out": float(self._num_dropped_sentences),
            "num_held_out_texts": float(self._held_out.num_texts),
            "num_held_out_texts_found": float(len(self._matched)),
        }

    def audit(self) -> dict[str, Any]:
        """Corpus against held-out texts, for ``audit.json``."""
        return {
            "num_held_out_texts": self._held_out.num_texts,
            "near_duplicate_threshold": self._config.near_duplicate_threshold,
            "min_held_out_chars": self._config.min_held_out_chars,
            "num_documents_dropped": {reason: self._dropped[reason] for reason in HELD_OUT_REASONS},
            "num_documents_trimmed": self._num_trimmed_documents,
            "num_sentences_dropped": self._num_dropped_sentences,
            "held_out_ids_found": sorted(self._matched),
            "examples": {reason: self._examples[reason] for reason in (*HELD_OUT_REASONS, "trimmed")},
        }

    def dropped(self) -> dict[str, Any]:
        """Counts and examples of dropped documents by reason, for ``dropped.json``."""
        return {reason: {"count": self._dropped[reason], "examples": self._examples[reason]} for reason in DROP_REASONS}

    def describe_dropped(self) -> str:
        """The reasons in words, for a message."""
        return ", ".join(f"{count} {reason}" for reason, count in self._dropped.most_common()) or "none dropped"

    def _select_by_likeness(self, document: Document, text: str) -> Document | None:
        if not self._needs_signature:
            return self._trim(document)
        signature = minhash_signature(text)
        if (other := self._held_out.find_near(signature)) is not None:
            return self._drop("held_out_near", document, other)
        if self._config.deduplicate_near and (found := self._near.find(signature)) is not None:
            return self._drop("near_duplicate", document, found[0])
        trimmed = self._trim(document)
        if self._config.deduplicate_near and trimmed is not None:
            self._near.add(signature, document.id)
        return trimmed

    def _trim(self, document: Document) -> Document | None:
        found = self._held_out.find_contained(document.sentences)
        if not found:
            return document
        shared = {index for containment in found for index in containment.sentences}
        self._matched.update(containment.held_out_id for containment in found)
        kept = tuple(sentence for index, sentence in enumerate(document.sentences) if index not in shared)
        if len(compact("".join(kept))) < self._config.min_chars:
            return self._drop("held_out_contained", document, found[0].held_out_id)
        self._num_trimmed_documents += 1
        self._num_dropped_sentences += len(shared)
        self._example("trimmed", document.id, document.sentences[min(shared)], found[0].held_out_id)
        return Document(document.id, kept)

    def _drop(self, reason: str, document: Document, other: str | None = None) -> Document | None:
        self._dropped[reason] += 1
        if other is not None and reason in HELD_OUT_REASONS:
            self._matched.add(other)
        self._example(reason, document.id, " ".join(document.sentences[:2]), other)
        return None

    def _example(self, reason: str, document_id: str, text: str, other: str | None) -> None:
        if len(examples := self._examples[reason]) < EXAMPLES_PER_REASON:
            example = {"document": document_id, "text": text[:_EXCERPT_CHARS]}
            examples.append(example if other is None else {**example, "same_as": other})
