"""Stage: segmented corpus, or corpus and tokenizer -> word vectors."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.static import piece_splitter, save_word_vectors
from components.errors import ConfigError, TrainingError
from components.formats import Split, write_json
from components.word2vec.config import Word2VecConfig
from components.word2vec.data import Census, Sentences, oov_rate, take_census, write_pieces
from components.word2vec.held_out import HeldOutLoss
from components.word2vec.model import TrainedVectors, check_memory, fit, select_vocabulary
from components.word2vec.neighbours import frequent_words, nearest_neighbours

NUM_QUERIES = 12
NUM_NEIGHBOURS = 8
SPLITS: tuple[Split, ...] = ("train", "validation")


def train_word2vec(
    config: Word2VecConfig,
    *,
    segmented: Path | None = None,
    corpus: Path | None = None,
    tokenizer: Path | None = None,
    out_dir: Path,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Train CBOW or skip-gram vectors with negative sampling (Mikolov et al. 2013).

    Vocabulary and memory are checked before training. One worker gives the same bytes in every process.

    Args:
        config: gensim's settings.
        segmented: Segmented corpus, for ``units: words``.
        corpus: Prepared corpus, for ``units: pieces``.
        tokenizer: Tokenizer folder, for ``units: pieces``.
        out_dir: Gets ``vectors.txt``, ``neighbours.json``, the card and the segmenter or tokenizer.
        log_metrics: Receives ``val_loss`` after every epoch.

    Raises:
        ConfigError: The inputs do not go with ``units``, or the weight tables would be too large.
        InputError: The corpus is not segmented text, or no word reaches ``min_count``.
        TrainingError: The vectors diverge.
    """
    source = _check_inputs(config, segmented, corpus, tokenizer)
    if segmented is not None:
        return _train(config, segmented, source, segmented, out_dir, log_metrics)
    assert corpus is not None
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".pieces-") as scratch:
        write_pieces(corpus, piece_splitter(source), Path(scratch))
        return _train(config, Path(scratch), source, corpus, out_dir, log_metrics)


def _check_inputs(config: Word2VecConfig, segmented: Path | None, corpus: Path | None, tokenizer: Path | None) -> Path:
    given = {"segmented": segmented, "corpus": corpus, "tokenizer": tokenizer}
    names = {name for name, path in given.items() if path is not None}
    needed = {"segmented"} if config.units == "words" else {"corpus", "tokenizer"}
    if names != needed:
        raise ConfigError(
            f"train_word2vec with units={config.units!r} needs {' and '.join(sorted(needed))}, "
            f"got {' and '.join(sorted(names)) or 'nothing'}"
        )
    source = segmented if segmented is not None else tokenizer
    assert source is not None
    return source


def _train(
    config: Word2VecConfig,
    sentences_dir: Path,
    source: Path,
    named_source: Path,
    out_dir: Path,
    log_metrics: LogMetrics,
) -> Metrics:
    census = take_census(sentences_dir)
    vocabulary = select_vocabulary(census.counts, config.min_count, source=named_source)
    memory_mib = check_memory(len(vocabulary), config.vector_size, config.max_memory_mib)
    held_out = HeldOutLoss.draw(
        Sentences(sentences_dir, "validation"), vocabulary, window=config.window, negative=config.negative,
        ns_exponent=config.ns_exponent, sg=config.sg, seed=config.seed,
    )  # fmt: skip
    last: Metrics = {}

    def on_epoch(model: Any, epoch: int) -> None:
        if held_out is not None:
            last["val_loss"] = held_out.of(model.wv.vectors, model.syn1neg)
            _check_finite(last["val_loss"], epoch)
        log_metrics({**last, "progress": epoch / config.epochs}, step=epoch)

    trained = fit(Sentences(sentences_dir), census, vocabulary, config, on_epoch=on_epoch)
    _write(config, trained, vocabulary, source, out_dir)
    metrics = _final_metrics(config, census, vocabulary, trained) | last | {"memory_estimate_mib": memory_mib}
    for split in SPLITS:
        if (rate := oov_rate(sentences_dir, split, vocabulary)) is not None:
            metrics[f"oov_rate_{split}"] = rate
    return metrics


def _check_finite(loss: float, epoch: int) -> None:
    if not math.isfinite(loss):
        raise TrainingError(f"train_word2vec: held-out loss is {loss} after epoch {epoch}. Remedy: lower alpha.")


def _write(
    config: Word2VecConfig, trained: TrainedVectors, vocabulary: dict[str, int], source: Path, out_dir: Path
) -> None:
    words = list(trained.model.wv.index_to_key)
    vectors_VD = np.asarray(trained.model.wv.vectors, dtype=np.float32)
    save_word_vectors(
        out_dir, words, vectors_VD, units=config.units, oov_policy=config.oov_policy, source=source
    )  # fmt: skip
    queries = frequent_words(vocabulary, NUM_QUERIES)
    write_json(out_dir / "neighbours.json", nearest_neighbours(words, vectors_VD, queries, NUM_NEIGHBOURS))


def _final_metrics(
    config: Word2VecConfig, census: Census, vocabulary: dict[str, int], trained: TrainedVectors
) -> Metrics:
    kept_words = sum(vocabulary.values())
    return {
        "vocab_size": float(len(vocabulary)),
        "num_types": float(len(census.counts)),
        "num_dropped_types": float(len(census.counts) - len(vocabulary)),
        "num_words": float(census.num_words),
        "num_dropped_words": float(census.num_words - kept_words),
        "num_sentences": float(census.num_sentences),
        "num_cut_sentences": float(census.num_cut_sentences),
        "num_empty_sentences": float(census.num_empty_sentences),
        "num_parameters": float(len(vocabulary) * config.vector_size),
        "words_per_second": trained.words_per_second,
        "train_seconds": trained.seconds,
        "reproducible": float(config.workers == 1),
    }
