"""Stage: segmented corpus or tokenizer, optionally word vectors -> recurrent encoder."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, load_splitter, save_recurrent
from components.encoders.static import WordVectors, load_word_vectors
from components.errors import ConfigError
from components.formats import read_json
from components.rnn.config import RecurrentConfig
from components.rnn.data import build_vocabulary, count_words, write_pieces
from components.rnn.pretraining import pretrain_language_model
from components.text.segmentation import SEGMENTER_FILE, Segmenter, load_segmenter
from components.text.vocabulary import PAD_TOKEN, UNK_ID, UNK_TOKEN, Vocabulary
from components.training import seed_everything

if TYPE_CHECKING:
    from components.encoders.pieces import PieceSplitter


def train_recurrent(
    config: RecurrentConfig,
    *,
    segmented: Path | None = None,
    corpus: Path | None = None,
    tokenizer: Path | None = None,
    embeddings: Path | None = None,
    out_dir: Path,
    checkpoint_dir: Path | None = None,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Make a recurrent encoder: random or from word vectors, and optionally language-model pretrained.

    Args:
        config: Sizes, vocabulary and objective.
        segmented: Segmented corpus, for ``units: words``: the vocabulary, and the text of the language model.
        corpus: Prepared corpus, for ``units: pieces`` with ``objective: language_model``.
        tokenizer: Tokenizer folder, for ``units: pieces``: all its pieces are the vocabulary.
        embeddings: Word-vector artifact of the same units; its vectors are the first embeddings, and its words are the
            vocabulary.
        out_dir: Gets ``model.safetensors``, ``config.json``, ``vocabulary.txt``, the segmenter or tokenizer and the
            card.
        checkpoint_dir: Where language-model training saves and resumes.
        log_metrics: Receives step metrics.

    Raises:
        ConfigError: The inputs do not go with ``units``, or the word vectors have another size, unit, segmenter or
            tokenizer.
        InputError: The corpus is not segmented, has no word often enough, or is shorter than one window.
    """
    source = check_inputs(config, segmented, corpus, tokenizer)
    vectors = None if embeddings is None else _read_vectors(embeddings, source, config)
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".pieces-") as scratch:
        splitter: Segmenter | PieceSplitter
        if tokenizer is None:
            splitter, sentences = load_segmenter(source), segmented
        else:
            splitter = load_splitter(tokenizer)
            sentences = None if corpus is None else write_pieces(corpus, splitter.segment, Path(scratch))
        counts = Counter[str]() if sentences is None else count_words(sentences)
        vocabulary = _make_vocabulary(config, splitter, counts, vectors, source)
        seed_everything(config.seed)
        settings = RecurrentSettings(**config.model_dump(include=set(RecurrentSettings.__dataclass_fields__)))
        encoder = RecurrentEncoder(settings, vocabulary, splitter)
        metrics = _vocabulary_metrics(vocabulary, counts)
        if vectors is not None:
            metrics |= start_from_vectors(encoder, vectors)
        if config.objective == "language_model":
            assert sentences is not None
            metrics |= pretrain_language_model(
                encoder, config, segmented=sentences, scratch_dir=out_dir,
                checkpoint_dir=checkpoint_dir, log_metrics=log_metrics,
            )  # fmt: skip
    save_recurrent(encoder, out_dir)
    return {**metrics, "num_parameters": float(encoder.num_parameters)}


def check_inputs(config: RecurrentConfig, segmented: Path | None, corpus: Path | None, tokenizer: Path | None) -> Path:
    """What says how a text becomes units: the segmented corpus or the tokenizer.

    Raises:
        ConfigError: The inputs do not go with ``units`` and ``objective``.
    """
    given = {"segmented": segmented, "corpus": corpus, "tokenizer": tokenizer}
    names = {name for name, path in given.items() if path is not None}
    needed = {"segmented"} if config.units == "words" else {"tokenizer"}
    allowed = set(needed)
    if config.units == "pieces":
        allowed.add("corpus")
        if config.objective == "language_model":
            needed.add("corpus")
    if not needed <= names <= allowed:
        raise ConfigError(
            f"train_recurrent with units={config.units!r} and objective={config.objective!r} needs "
            f"{' and '.join(sorted(needed))}, got {' and '.join(sorted(names)) or 'nothing'}"
        )
    source = segmented if segmented is not None else tokenizer
    assert source is not None
    return source


def _make_vocabulary(
    config: RecurrentConfig,
    splitter: Segmenter | PieceSplitter,
    counts: Counter[str],
    vectors: WordVectors | None,
    source: Path,
) -> Vocabulary:
    if not isinstance(splitter, Segmenter):
        # The sampled softmax wants the frequent ones first; without a corpus the tokenizer's order stands.
        pieces = [piece for piece in splitter.pieces if piece not in (PAD_TOKEN, UNK_TOKEN)]
        return Vocabulary(sorted(pieces, key=lambda piece: -counts[piece]))
    if vectors is None:
        return build_vocabulary(counts, config.min_count, config.max_vocab_size, source=source)
    return Vocabulary(vectors.words[: config.max_vocab_size - 2])


def _read_vectors(embeddings: Path, source: Path, config: RecurrentConfig) -> WordVectors:
    vectors = load_word_vectors(embeddings)
    if vectors.units != config.units:
        raise ConfigError(
            f"{embeddings} holds vectors of {vectors.units}; this recurrent encoder needs units={config.units!r}"
        )
    if vectors.vector_size != config.embedding_size:
        raise ConfigError(
            f"embedding_size is {config.embedding_size}, but the vectors in {embeddings} have vector_size "
            f"{vectors.vector_size}: set both to the same number"
        )
    if config.units == "words" and read_json(embeddings / SEGMENTER_FILE) != read_json(source / SEGMENTER_FILE):
        raise ConfigError(f"{embeddings} and {source} were made with different segmenters: their words do not match")
    if config.units == "pieces" and load_splitter(embeddings).pieces != load_splitter(source).pieces:
        raise ConfigError(f"{embeddings} and {source} hold different tokenizers: their pieces do not match")
    return vectors


def start_from_vectors(encoder: RecurrentEncoder, vectors: WordVectors) -> Metrics:
    """Copy word vectors into the embeddings; the unknown word gets their mean, padding stays zero.

    Returns:
        ``num_matched_vectors`` copied, ``num_unused_vectors`` of words that are not in the vocabulary, and
        ``num_random_embeddings`` left as initialised.
    """
    known = {word: row for row, word in enumerate(vectors.words)}
    entries = encoder.vocabulary.words
    matched = [(index, known[word]) for index, word in enumerate(entries) if index > UNK_ID and word in known]
    ids, rows = (list(column) for column in zip(*matched, strict=True)) if matched else ([], [])
    table = torch.from_numpy(vectors.vectors_VD)
    with torch.no_grad():
        encoder.embedding.weight[ids] = table[rows]
        encoder.embedding.weight[UNK_ID] = table.mean(dim=0)
    return {
        "num_matched_vectors": float(len(ids)),
        "num_unused_vectors": float(len(vectors.words) - len(ids)),
        "num_random_embeddings": float(len(entries) - 2 - len(ids)),
    }


def _vocabulary_metrics(vocabulary: Vocabulary, counts: Counter[str]) -> Metrics:
    known = sum(count for word, count in counts.items() if word in vocabulary)
    if not counts:
        return {"vocab_size": float(len(vocabulary))}
    return {
        "vocab_size": float(len(vocabulary)),
        "num_types": float(len(counts)),
        "num_words": float(counts.total()),
        "oov_rate_train": 1 - known / counts.total() if counts else 0.0,
    }
