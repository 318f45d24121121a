"""A toy data set and one small encoder of every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertTokenizerFast

from components.encoders.bag_of_words import BagOfWords, FeatureSettings, make_vectorizer, save_bag_of_words
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.wordpiece import save_wordpiece
from components.examples import Example, write_examples, write_labels
from components.formats import write_encoder_card
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

NEURAL = ("recurrent", "bert")
ALL_FAMILIES = ("bag_of_words", "word2vec", *NEURAL)

GOOD = [
    "房间 很 干净",
    "服务 热情",
    "质量 非常 好",
    "早餐 好吃 位置 方便",
    "喜欢",
    "推荐 给 朋友",
    "物流 很 快",
    "满意",
]
BAD = ["房间 很 脏", "服务 冷淡", "质量 非常 差", "早餐 难吃 位置 偏僻 吵闹", "讨厌", "不 推荐", "物流 很 慢", "失望"]
WORDS = sorted({*"".join((*GOOD, *BAD))} - {" "})


def toy_examples(prefix: str, repeats: int = 1) -> list[Example]:
    pairs = [
        (text, label) for good, bad in zip(GOOD, BAD, strict=True) for text, label in ((good, "好评"), (bad, "差评"))
    ]
    return [Example(f"{prefix}:{number}", text, label) for number, (text, label) in enumerate(pairs * repeats, 1)]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset"
    folder.mkdir()
    write_examples(folder, "train", toy_examples("train.csv"))
    write_examples(folder, "validation", toy_examples("validation.csv"))
    write_examples(folder, "test", toy_examples("test.csv"))
    write_labels(folder, ["差评", "好评"])
    return folder


def make_segmenter() -> Segmenter:
    return Segmenter(SegmenterConfig(segmenter="characters"))


def make_bag_of_words(folder: Path) -> None:
    settings = FeatureSettings("tfidf", "word", (1, 1), (1, 2), True, True)
    vectorizer = make_vectorizer(settings, make_segmenter()).fit([*GOOD, *BAD])
    features = tuple(vectorizer.get_feature_names_out().tolist())
    save_bag_of_words(BagOfWords(features, vectorizer.idf_.astype(np.float32), settings, make_segmenter()), folder)


def make_word2vec(folder: Path) -> None:
    source = folder.with_name("segmented")
    source.mkdir()
    make_segmenter().save(source)
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 24)).astype(np.float32)
    save_word_vectors(folder, list(WORDS), vectors, units="words", oov_policy="characters", source=source)


def make_recurrent(folder: Path) -> None:
    torch.manual_seed(0)
    settings = RecurrentSettings(cell="lstm", bidirectional=True, hidden_size=16, embedding_size=16)
    save_recurrent(RecurrentEncoder(settings, Vocabulary(WORDS), make_segmenter()), folder)


def make_bert(folder: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "sep", "cls", *sorted(set("".join(WORDS)))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt")), folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained(folder)
    write_encoder_card(folder, "bert", hidden_size=32)


MAKERS = {
    "bag_of_words": make_bag_of_words, "word2vec": make_word2vec, "recurrent": make_recurrent, "bert": make_bert,
}  # fmt: skip


@pytest.fixture
def makers() -> dict[str, Callable[[Path], None]]:
    return dict(MAKERS)


@pytest.fixture(params=ALL_FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def encoder(family: str, tmp_path: Path) -> Path:
    """The encoder of ``family``: every family unless the test names some."""
    folder = tmp_path / f"encoder-{family}"
    folder.mkdir()
    MAKERS[family](folder)
    return folder


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder
