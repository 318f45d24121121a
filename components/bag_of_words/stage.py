"""Stage: labelled texts -> one-hot or TF-IDF encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.data import count_documents, piece_texts_of, read_recipe, read_training_examples, texts_of
from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.bag_of_words import (
    BagOfWords,
    FeatureSettings,
    PieceSplitter,
    SavedSplitter,
    Splitter,
    make_vectorizer,
    save_bag_of_words,
)
from components.errors import ConfigError, InputError
from components.examples import AnyExample
from components.formats import write_json
from components.text.segmentation import Segmenter

NUM_SAMPLES = 20


def fit_bag_of_words(
    config: BagOfWordsConfig,
    *,
    dataset: Path,
    tokenizer: Path | None = None,
    out_dir: Path,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Learn the vocabulary and weights of a bag-of-words encoder from the labelled budget of a run.

    Of a pair both texts are counted, of questions each question, and every passage once however many are about it.

    Args:
        config: Weighting, features and budget.
        dataset: Dataset artifact of any task; only ``train.jsonl`` and the recipe are read.
        tokenizer: Tokenizer folder, for ``units: pieces`` and only then.
        out_dir: Gets the encoder, with the segmenter or the tokenizer, and ``feature_samples.json``.
        log_metrics: Not used: the stage has no steps.

    Raises:
        ConfigError: A tokenizer is missing, or there is one that nothing would read.
        ArtifactError: ``dataset`` is no data set artifact.
        InputError: No training text, no usable tokenizer, or settings under which no feature is left.
    """
    _check_inputs(config, tokenizer)
    examples = read_training_examples(dataset, config.num_train_examples, config.seed)
    reading = _read(config, examples, dataset, tokenizer)
    texts, settings = reading.texts, _settings(config)
    limits = {"min_df": config.min_count, "max_features": config.max_features}
    vectorizer = make_vectorizer(settings, reading.splitter, **limits)
    counts = count_documents(texts, vectorizer.build_analyzer())
    _check_vocabulary(config, counts, len(texts), dataset)
    matrix = vectorizer.fit_transform(texts)
    features = tuple(str(feature) for feature in vectorizer.get_feature_names_out())
    idf = np.asarray(vectorizer.idf_, dtype=np.float32) if config.weighting == "tfidf" else None
    save_bag_of_words(BagOfWords(features, idf, settings, reading.saved), out_dir)
    _write_samples(out_dir, features, counts)
    return {
        "num_features": float(len(features)),
        "num_dropped_features": float(len(counts) - len(features)),
        "num_train_examples": float(len(examples)),
        "num_texts_without_features": float(np.sum(np.diff(matrix.indptr) == 0)),
        "mean_features_per_text": float(matrix.nnz / len(texts)),
    }


@dataclass(frozen=True)
class _Reading:
    """The training texts, what splits them now, and what will split other texts."""

    texts: list[str]
    splitter: Splitter
    saved: SavedSplitter


class _JoinedPieces:
    """Splits pieces that were joined by spaces."""

    def segment(self, text: str) -> list[str]:
        return text.split(" ") if text else []


def _check_inputs(config: BagOfWordsConfig, tokenizer: Path | None) -> None:
    if config.units == "pieces" and tokenizer is None:
        raise ConfigError("fit_bag_of_words with units='pieces' needs the input tokenizer: give one, or units='words'")
    if config.units == "words" and tokenizer is not None:
        raise ConfigError("fit_bag_of_words with units='words' reads no tokenizer: leave it out, or set units='pieces'")


def _read(config: BagOfWordsConfig, examples: Sequence[AnyExample], dataset: Path, tokenizer: Path | None) -> _Reading:
    recipe = read_recipe(dataset)
    if tokenizer is None:
        segmenter = Segmenter(config.segmenter)
        return _Reading(texts_of(examples, recipe), segmenter, segmenter)
    from components.encoders.pieces import load_pieces

    encoder = load_pieces(tokenizer, recipe)
    return _Reading(piece_texts_of(examples, encoder), _JoinedPieces(), PieceSplitter(encoder.tokenizer))


def _settings(config: BagOfWordsConfig) -> FeatureSettings:
    return FeatureSettings(
        weighting=config.weighting,
        analyzer=config.analyzer,
        ngram_range=config.unit_ngram_range,
        char_ngram_range=config.char_ngram_range,
        sublinear_tf=config.sublinear_tf,
        # The tokenizer has folded case already, or keeps it on purpose; [UNK] must stay as it is.
        lowercase=config.lowercase and config.units == "words",
        units=config.units,
    )


def _check_vocabulary(config: BagOfWordsConfig, counts: Counter[str], num_texts: int, dataset: Path) -> None:
    highest = max(counts.values(), default=0)
    if highest >= config.min_count:
        return
    remedy = (
        f"lower min_count to {highest} or less"
        if counts
        else f"choose another analyzer than {config.analyzer!r} or lower its shortest n-gram"
    )
    raise InputError(
        f"fit_bag_of_words has an empty vocabulary: analyzer={config.analyzer!r} and min_count={config.min_count} "
        f"keep 0 of {len(counts)} features from {num_texts} training texts; the highest count is {highest}.",
        file=dataset / "train.jsonl",
        remedy=remedy,
    )


def _write_samples(out_dir: Path, features: tuple[str, ...], counts: Counter[str]) -> None:
    kept = sorted(features, key=lambda feature: (-counts[feature], feature))
    samples = {"most_texts": kept[:NUM_SAMPLES], "fewest_texts": kept[-NUM_SAMPLES:]}
    write_json(
        out_dir / "feature_samples.json",
        {name: [{"feature": f, "num_texts": counts[f]} for f in chosen] for name, chosen in samples.items()},
    )
