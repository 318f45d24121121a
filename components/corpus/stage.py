"""``prepare_corpus``: raw text to documents as sentences; ``segment_corpus``: the same shards as words."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.corpus.cleaning import Cleaner
from components.corpus.config import CorpusConfig
from components.corpus.data import ReadingFacts, read_sources
from components.corpus.duplicates import duplicate_database
from components.corpus.selection import Selection
from components.corpus.splits import SplitWriter
from components.errors import InputError
from components.formats import SegmentedDocument, Split, corpus_shards, read_jsonl, write_json, write_jsonl
from components.text.segmentation import Segmenter, SegmenterConfig

logger = logging.getLogger(__name__)
CORPUS_SPLITS: tuple[Split, ...] = ("train", "validation")


class Progress:
    """Turns amounts of work done into a fraction, reported every percent."""

    def __init__(self, total: int, log_metrics: LogMetrics) -> None:
        self._total = max(1, total)
        self._log_metrics = log_metrics
        self._done = 0
        self._reported = 0

    def advance(self, amount: int) -> None:
        """Add ``amount`` to the work done."""
        self._done += amount
        if (percent := min(100, 100 * self._done // self._total)) > self._reported:
            self._reported = percent
            self._log_metrics({"progress": percent / 100})


def prepare_corpus(
    config: CorpusConfig,
    *,
    held_out: tuple[Path, ...] = (),
    out_dir: Path,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Read, normalise, filter and deduplicate raw text and write it as shards of documents made of sentences.

    Args:
        config: Sources, recipe and limits.
        held_out: Dataset artifacts whose validation and test texts must not be in the corpus.
        out_dir: Receives ``train-*.jsonl``, ``validation-*.jsonl``, ``normalization.json`` (recipe, counts, samples),
            ``dropped.json`` (reasons with examples) and ``audit.json`` (corpus against held-out texts).
        log_metrics: Receives ``progress``.

    Returns:
        Documents read, kept and dropped by reason; sentences; characters; changes by rule.

    Raises:
        InputError: A file that cannot be used, with its line; or no document is left.
    """
    facts, cleaner = ReadingFacts(), Cleaner(config)
    progress = Progress(sum(path.stat().st_size for path in config.external_files()), log_metrics)
    with duplicate_database(out_dir / ".duplicates.sqlite") as connection:
        selection = Selection(config, held_out, connection)
        with SplitWriter(out_dir, config.validation_fraction) as writer:
            for raw in read_sources(config, facts, progress.advance):
                if (document := selection.select(cleaner.clean(raw))) is not None:
                    writer.write(document)
    if writer.num_documents == 0:
        raise InputError(
            f"no document left of {selection.num_read} read in {facts.num_files} files: {selection.describe_dropped()}",
            file=config.sources[0].path,
            remedy="give more text, or lower min_chars or min_language_share",
        )
    writer.ensure_validation()
    _write_reports(out_dir, facts, cleaner, selection)
    return {**selection.metrics(), **cleaner.metrics(), **writer.metrics(), **_reading_metrics(facts, cleaner)}


def _write_reports(out_dir: Path, facts: ReadingFacts, cleaner: Cleaner, selection: Selection) -> None:
    if facts.mojibake_files:
        logger.warning(
            "%s: characters look as if read with the wrong encoding; check encoding in the source",
            ", ".join(facts.mojibake_files[:5]),
        )
    write_json(out_dir / "normalization.json", cleaner.recipe())
    files = {"empty_files": facts.empty_files, "mojibake_files": facts.mojibake_files}
    write_json(out_dir / "dropped.json", {"documents": selection.dropped(), **files})
    write_json(out_dir / "audit.json", selection.audit())


def _reading_metrics(facts: ReadingFacts, cleaner: Cleaner) -> Metrics:
    return {
        "num_files": float(facts.num_files),
        "num_empty_files": float(len(facts.empty_files)),
        "num_mojibake_files": float(len(facts.mojibake_files)),
        "num_byte_order_marks": float(facts.num_byte_order_marks),
        "num_long_lines": float(facts.num_long_lines),
        "num_split_documents": float(facts.num_split_documents),
        "num_cut_sentences": float(cleaner.num_cut_sentences),
    }


def segment_corpus(
    config: SegmenterConfig, *, corpus: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Write the shards of a corpus again with every sentence as its words.

    Args:
        config: The segmenter.
        corpus: Artifact of ``prepare_corpus``.
        out_dir: Receives shards of the same names, ``segmenter.json`` and the user dictionary, if any.
        log_metrics: Receives ``progress``.

    Returns:
        ``num_documents``, ``num_sentences``, ``num_words``, ``mean_words_per_sentence``, ``words_per_second``.

    Raises:
        InputError: The corpus has no training shard, or the user dictionary cannot be used.
    """
    shards = [shard for split in CORPUS_SPLITS for shard in corpus_shards(corpus, split)]
    if not corpus_shards(corpus, "train"):
        raise InputError("no train-*.jsonl: not a prepared corpus", file=corpus)
    segmenter = Segmenter(config)
    segmenter.save(out_dir)
    counts = {"num_documents": 0, "num_sentences": 0, "num_words": 0}
    progress = Progress(sum(shard.stat().st_size for shard in shards), log_metrics)
    started = time.perf_counter()
    for shard in shards:
        write_jsonl(out_dir / shard.name, _segmented_rows(shard, segmenter, counts, progress))
    seconds = time.perf_counter() - started
    return {
        **{name: float(count) for name, count in counts.items()},
        "mean_words_per_sentence": counts["num_words"] / max(1, counts["num_sentences"]),
        "words_per_second": counts["num_words"] / max(seconds, 1e-9),
    }


def _segmented_rows(
    shard: Path, segmenter: Segmenter, counts: dict[str, int], progress: Progress
) -> Iterator[dict[str, Any]]:
    share = shard.stat().st_size // max(1, sum(1 for _ in shard.open("rb")))
    for row in read_jsonl(shard):
        document = SegmentedDocument(row["id"], tuple(tuple(segmenter.segment(text)) for text in row["sentences"]))
        counts["num_documents"] += 1
        counts["num_sentences"] += len(document.sentences)
        counts["num_words"] += sum(map(len, document.sentences))
        progress.advance(share)
        yield {"id": document.id, "sentences": document.sentences}
