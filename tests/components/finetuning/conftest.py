"""A toy data set and one small encoder of every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertTokenizerFast

from components.encoders.bag_of_words import BagOfWords, FeatureSettings, make_vectorizer, save_bag_of_words
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, load_splitter, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.wordpiece import save_wordpiece
from components.examples import Answer, Example, Question, TaggedText, write_examples, write_labels, write_task
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
    write_task(folder, "classification")
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


# --- encoders of pieces, for NER and question answering ---------------------------------------------------------------

PEOPLE = ["王小明", "李华", "张伟", "赵敏"]
PLACES = ["北京", "上海市", "广州", "杭州"]
ENGLISH = [
    "the",
    "people",
    "##s",
    "##ing",
    "walk",
    "john",
    "##son",
    "lon",
    "##don",
    "in",
    "lives",
    *[f"##{digit}" for digit in range(10)],
]
SENTENCES = [f"{person}今天在{place}开会。" for person in PEOPLE for place in PLACES]
PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ENGLISH,
    *sorted({*"".join([*SENTENCES, *WORDS]), *"谁哪里去了人问在？,.abc0123456789"}),
]  # fmt: skip


def make_tokenizer(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt")), folder)
    return folder


def make_piece_word2vec(folder: Path) -> None:
    source = make_tokenizer(folder.with_name(f"{folder.name}-tokenizer"))
    vectors = np.random.default_rng(0).normal(size=(len(PIECES) - 5, 24)).astype(np.float32)
    save_word_vectors(folder, PIECES[5:], vectors, units="pieces", oov_policy="skip", source=source)


def make_piece_recurrent(folder: Path, cell: str = "lstm") -> None:
    splitter = load_splitter(make_tokenizer(folder.with_name(f"{folder.name}-tokenizer")))
    torch.manual_seed(0)
    settings = RecurrentSettings(cell=cell, bidirectional=True, hidden_size=16, embedding_size=16)  # type: ignore[arg-type]
    # Another order than the tokenizer's, so that a confusion of ids shows.
    save_recurrent(RecurrentEncoder(settings, Vocabulary(PIECES[:1:-1]), splitter), folder)


def make_piece_bert(folder: Path) -> None:
    make_tokenizer(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained(folder)
    write_encoder_card(folder, "bert", hidden_size=32)


PIECE_MAKERS = {"word2vec": make_piece_word2vec, "recurrent": make_piece_recurrent, "bert": make_piece_bert}


@pytest.fixture(params=tuple(PIECE_MAKERS))
def reader_family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def piece_encoder(reader_family: str, tmp_path: Path) -> Path:
    """An encoder of pieces of ``reader_family``: every neural family unless the test names some."""
    folder = tmp_path / f"pieces-{reader_family}"
    folder.mkdir()
    PIECE_MAKERS[reader_family](folder)
    return folder


def tagged(name: str, person: str, place: str) -> TaggedText:
    text = f"{person}今天在{place}开会。"
    tags = ["O"] * len(text)
    for kind, entity in (("PER", person), ("LOC", place)):
        start = text.index(entity)
        tags[start : start + len(entity)] = [f"B-{kind}", *[f"I-{kind}"] * (len(entity) - 1)]
    return TaggedText(name, text, tuple((i, i + 1) for i in range(len(text))), tuple(tags))


def asked(name: str, person: str, place: str) -> list[Question]:
    text = f"{person}今天在{place}开会。"
    return [
        Question(f"{name}a", text, "谁在开会？", (Answer(person, text.index(person)),)),
        Question(f"{name}b", text, "在哪里开会？", (Answer(place, text.index(place)),)),
    ]


def write_split(folder: Path, split: str, examples: list[TaggedText] | list[Question]) -> None:
    write_examples(folder, split, examples)  # type: ignore[arg-type]


@pytest.fixture
def ner_dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "ner-dataset"
    folder.mkdir()
    pairs = [(person, place) for person in PEOPLE for place in PLACES]
    write_split(folder, "train", [tagged(f"train:{n}", *pair) for n, pair in enumerate(pairs[::2], 1)])
    for split in ("validation", "test"):
        write_split(folder, split, [tagged(f"{split}:{n}", *pair) for n, pair in enumerate(pairs[::2], 1)])
    write_labels(folder, ["LOC", "PER"])
    write_task(folder, "ner")
    return folder


@pytest.fixture
def qa_dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "qa-dataset"
    folder.mkdir()
    pairs = list(zip(PEOPLE, PLACES, strict=True))
    for split in ("train", "validation", "test"):
        write_split(folder, split, [q for n, pair in enumerate(pairs, 1) for q in asked(f"{split}:{n}", *pair)])
    write_task(folder, "question_answering")
    return folder
