"""Stage: segmented corpus, optionally word vectors -> recurrent encoder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, save_recurrent
from components.encoders.static import WordVectors, load_word_vectors
from components.errors import ConfigError
from components.formats import read_json
from components.rnn.config import RecurrentConfig
from components.rnn.data import build_vocabulary, count_words
from components.rnn.pretraining import pretrain_language_model
from components.text.segmentation import SEGMENTER_FILE, load_segmenter
from components.text.vocabulary import UNK_ID, Vocabulary
from components.training import seed_everything


def train_recurrent(
    config: RecurrentConfig,
    *,
    segmented: Path,
    embeddings: Path | None = None,
    out_dir: Path,
    checkpoint_dir: Path | None = None,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Make a recurrent encoder: random or from word vectors, and optionally language-model pretrained.

    Args:
        config: Sizes, vocabulary and objective.
        segmented: Segmented corpus: the vocabulary, and the text of the language model.
        embeddings: Word-vector artifact; its words are the vocabulary and its vectors the first embeddings.
        out_dir: Gets ``model.safetensors``, ``config.json``, ``vocabulary.txt``, the segmenter and the card.
        checkpoint_dir: Where language-model training saves and resumes.
        log_metrics: Receives step metrics.

    Raises:
        ConfigError: The word vectors have another size, unit or segmenter.
        InputError: The corpus is not segmented, has no word often enough, or is shorter than one window.
    """
    vectors = None if embeddings is None else _read_vectors(embeddings, segmented, config.embedding_size)
    counts = count_words(segmented)
    if vectors is None:
        vocabulary = build_vocabulary(counts, config.min_count, config.max_vocab_size, source=segmented)
    else:
        vocabulary = Vocabulary(vectors.words[: config.max_vocab_size - 2])
    seed_everything(config.seed)
    settings = RecurrentSettings(**config.model_dump(include=set(RecurrentSettings.__dataclass_fields__)))
    encoder = RecurrentEncoder(settings, vocabulary, load_segmenter(segmented))
    metrics = _vocabulary_metrics(vocabulary, counts)
    if vectors is not None:
        metrics |= start_from_vectors(encoder, vectors)
    if config.objective == "language_model":
        metrics |= pretrain_language_model(
            encoder, config, segmented=segmented, scratch_dir=out_dir,
            checkpoint_dir=checkpoint_dir, log_metrics=log_metrics,
        )  # fmt: skip
    save_recurrent(encoder, out_dir)
    return {**metrics, "num_parameters": float(encoder.num_parameters)}


def _read_vectors(embeddings: Path, segmented: Path, embedding_size: int) -> WordVectors:
    vectors = load_word_vectors(embeddings)
    if vectors.units != "words":
        raise ConfigError(
            f"{embeddings} holds vectors of word {vectors.units}; a recurrent encoder needs units='words'"
        )
    if vectors.vector_size != embedding_size:
        raise ConfigError(
            f"embedding_size is {embedding_size}, but the vectors in {embeddings} have vector_size "
            f"{vectors.vector_size}: set both to the same number"
        )
    if read_json(embeddings / SEGMENTER_FILE) != read_json(segmented / SEGMENTER_FILE):
        raise ConfigError(f"{embeddings} and {segmented} were made with different segmenters: their words do not match")
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
    return {
        "vocab_size": float(len(vocabulary)),
        "num_types": float(len(counts)),
        "num_words": float(counts.total()),
        "oov_rate_train": 1 - known / counts.total() if counts else 0.0,
    }
