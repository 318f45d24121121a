"""Raw documents to sentences: the normalisation recipe and the sentence rules, with counts and samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from components.corpus.config import CorpusConfig
from components.corpus.data import RawDocument
from components.corpus.lines import Line
from components.formats import Document
from components.text.normalization import COUNTED_ONLY, RULES, normalize
from components.text.sentences import cut_sentence, split_sentences

SAMPLES_PER_RULE = 3
_CONTEXT_CHARS = 20


class Cleaner:
    """Normalises documents and keeps count of what the recipe changed."""

    def __init__(self, config: CorpusConfig) -> None:
        self._config = config
        self._counts: Counter[str] = Counter()
        self._samples: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.num_cut_sentences = 0

    def clean(self, raw: RawDocument) -> Document:
        """Normalise each line of a document and split it into sentences; a line break always ends a sentence.

        Raises:
            InputError: A lone surrogate under the policy ``refuse``, with file, line and column.
        """
        sentences: list[str] = []
        for line in raw.lines:
            for sentence in split_sentences(self._normalize(raw, line), self._config.language):
                pieces = cut_sentence(sentence, self._config.max_sentence_chars)
                self.num_cut_sentences += len(pieces) > 1
                sentences.extend(pieces)
        return Document(raw.id, tuple(sentences))

    def metrics(self) -> dict[str, float]:
        """How much each rule changed (``changed_*``) and what was only counted (``num_*``)."""
        changed = {f"changed_{rule}": float(self._counts[rule]) for rule in RULES}
        return changed | {f"num_{name}": float(self._counts[name]) for name in COUNTED_ONLY}

    def recipe(self) -> dict[str, Any]:
        """The recipe, its counts and some samples, for ``normalization.json``."""
        counts = {name: self._counts[name] for name in (*RULES, *COUNTED_ONLY)}
        return {
            "config": self._config.normalization.model_dump(mode="json"),
            "counts": counts,
            "samples": dict(self._samples),
        }

    def _normalize(self, raw: RawDocument, line: Line) -> str:
        normalized = normalize(line.text, self._config.normalization, file=raw.file, line=line.number)
        for rule, count in normalized.counts.items():
            self._counts[rule] += count
            if len(samples := self._samples[rule]) < SAMPLES_PER_RULE:
                samples.append(_sample(raw.id, line.text, normalized.text))
        return normalized.text


def _sample(document_id: str, before: str, after: str) -> dict[str, str]:
    changes = (index for index, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    first = next(changes, min(len(before), len(after)))
    window = slice(max(0, first - _CONTEXT_CHARS), first + _CONTEXT_CHARS)
    # A replaced surrogate is still in the original, and JSON in UTF-8 cannot hold it.
    return {
        "id": document_id,
        "before": before[window].encode("utf-8", "replace").decode(),
        "after": after[window],
    }
