from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.static import load_word_vectors
from components.examples import Example, write_examples, write_labels, write_task
from components.finetuning.config import ClassificationConfig
from components.finetuning.linear import pair_features
from components.finetuning.stage import finetune

VECTORS = {"a": [1.0, 0.0, 2.0], "b": [3.0, 4.0, 0.0], "": [0.0, 0.0, 0.0]}


def dense(texts: Sequence[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts])


def sparse(texts: Sequence[str]) -> csr_matrix:
    return csr_matrix(dense(texts))


@pytest.mark.parametrize("transform", [dense, sparse])
def test_pairs_by_hand(transform) -> None:
    rows = [Example("0", "a", "x", text_pair="b"), Example("1", "b", "x", text_pair="")]
    features = pair_features(transform, rows)
    assert issparse(features)
    assert features.toarray().tolist() == [
        [1, 0, 2, 3, 4, 0, 2, 4, 2, 3, 0, 0],
        [3, 4, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("transform", [dense, sparse])
def test_single_texts_are_left_as_they_are(transform) -> None:
    features = pair_features(transform, [Example("0", "a", "x"), Example("1", "b", "x")])
    assert features.toarray().tolist() == [VECTORS["a"], VECTORS["b"]]


@pytest.mark.parametrize("family", ["bag_of_words", "word2vec"], indirect=True)
def test_a_relation_that_neither_text_shows_alone_is_learned(encoder, family, tmp_path, out_dir) -> None:
    """Same text or not: each text occurs equally often under both labels."""
    words = ["很 干净", "热情", "偏僻", "难吃"]
    rows = [
        Example(f"{first}:{second}", words[first], "same" if first == second else "other", text_pair=words[second])
        for first in range(4)
        for second in range(4)
    ]
    dataset = tmp_path / "pairs"
    dataset.mkdir()
    write_task(dataset, "classification")
    write_labels(dataset, ["other", "same"])
    for split in ("train", "validation", "test"):
        write_examples(dataset, split, rows)
    metrics = finetune(ClassificationConfig(C=100.0), encoder=encoder, dataset=dataset, out_dir=out_dir)
    assert metrics["val_accuracy"] == 1.0
    num_features = {
        "bag_of_words": lambda: len(load_bag_of_words(encoder).features),
        "word2vec": lambda: load_word_vectors(encoder).vector_size,
    }[family]()
    own = {"bag_of_words": load_bag_of_words, "word2vec": load_word_vectors}[family](encoder).num_parameters
    assert metrics["num_parameters"] == own + 2 * (4 * num_features + 1)
