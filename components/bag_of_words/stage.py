"""Stage: labelled texts -> one-hot or TF-IDF encoder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.data import count_documents, read_training_examples
from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.bag_of_words import BagOfWords, FeatureSettings, make_vectorizer, save_bag_of_words
from components.errors import InputError
from components.formats import write_json
from components.text.segmentation import Segmenter

NUM_SAMPLES = 20


def fit_bag_of_words(
    config: BagOfWordsConfig, *, dataset: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Learn the vocabulary and weights of a bag-of-words encoder from the labelled budget of a run.

    Args:
        config: Weighting, features and budget.
        dataset: Dataset artifact; only ``train.jsonl`` is read.
        out_dir: Gets the encoder and ``feature_samples.json``.
        log_metrics: Not used: the stage has no steps.

    Raises:
        InputError: No training text, or settings under which no feature is left.
    """
    examples = read_training_examples(dataset, config.num_train_examples, config.seed)
    texts = [example.text for example in examples]
    settings = FeatureSettings(**config.model_dump(include=set(FeatureSettings.__dataclass_fields__)))
    segmenter = Segmenter(config.segmenter)
    vectorizer = make_vectorizer(settings, segmenter, min_df=config.min_count, max_features=config.max_features)
    counts = count_documents(texts, vectorizer.build_analyzer())
    _check_vocabulary(config, counts, len(texts), dataset)
    matrix = vectorizer.fit_transform(texts)
    features = tuple(str(feature) for feature in vectorizer.get_feature_names_out())
    idf = np.asarray(vectorizer.idf_, dtype=np.float32) if config.weighting == "tfidf" else None
    save_bag_of_words(BagOfWords(features, idf, settings, segmenter), out_dir)
    _write_samples(out_dir, features, counts)
    return {
        "num_features": float(len(features)),
        "num_dropped_features": float(len(counts) - len(features)),
        "num_train_examples": float(len(texts)),
        "num_texts_without_features": float(np.sum(np.diff(matrix.indptr) == 0)),
        "mean_features_per_text": float(matrix.nnz / len(texts)),
    }


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
