from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast

from components.encoders.recurrent import load_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.wordpiece import save_wordpiece
from components.errors import ConfigError
from components.formats import Document, ShardWriter, read_encoder_card
from components.rnn.config import RecurrentConfig
from components.rnn.stage import train_recurrent

PIECES = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", *"天我京北在好"]


def config(**changes: object) -> RecurrentConfig:
    fields = {"units": "pieces", "hidden_size": 8, "embedding_size": 6, "batch_size": 4, "max_seq_length": 4}
    return RecurrentConfig(**{**fields, "num_train_steps": 5, **changes})


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt")), folder)
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "validation"):
        writer = ShardWriter(folder, split)  # type: ignore[arg-type]
        writer.write(Document(f"{split}:1", ("我在北京" * 6, "我我好")))
        writer.close()
    return folder


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_all_pieces_are_the_vocabulary_and_a_text_is_read_by_them(tokenizer: Path, out_dir: Path) -> None:
    metrics = train_recurrent(config(), tokenizer=tokenizer, out_dir=out_dir)
    assert metrics["vocab_size"] == len(PIECES)
    assert not list(out_dir.glob(".*"))
    assert not (out_dir / "segmenter.json").exists()
    encoder = load_recurrent(out_dir)
    assert encoder.units == read_encoder_card(out_dir)["units"] == "pieces"
    assert sorted(encoder.vocabulary.words) == sorted(PIECES)
    assert encoder.vocabulary.decode(encoder.encode("我在北京龘[SEP]")) == [*"我在北京", *["[UNK]"] * 4]
    assert (tokenizer / "tokenizer.json").read_bytes() == (out_dir / "tokenizer.json").read_bytes()


def test_language_model_over_pieces_orders_them_by_frequency(tokenizer: Path, corpus: Path, out_dir: Path) -> None:
    metrics = train_recurrent(config(objective="language_model"), tokenizer=tokenizer, corpus=corpus, out_dir=out_dir)
    assert metrics["num_words"] == 27
    assert np.isfinite(metrics["val_perplexity"])
    assert load_recurrent(out_dir).vocabulary.words[:6] == ("[PAD]", "[UNK]", "我", "京", "北", "在")
    assert not list(out_dir.glob(".*"))


def test_vectors_of_pieces_are_the_first_embeddings(tokenizer: Path, tmp_path: Path, out_dir: Path) -> None:
    vectors = tmp_path / "vectors"
    vectors.mkdir()
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    save_word_vectors(vectors, ["京", "北"], values, units="pieces", oov_policy="skip", source=tokenizer)
    metrics = train_recurrent(config(), tokenizer=tokenizer, embeddings=vectors, out_dir=out_dir)
    assert metrics["num_matched_vectors"] == 2
    encoder = load_recurrent(out_dir)
    for piece, row in zip(["京", "北"], values, strict=True):
        assert encoder.embedding.weight[encoder.vocabulary.id_of(piece)].tolist() == row.tolist()


def test_same_seed_same_bytes(tokenizer: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        train_recurrent(config(seed=3), tokenizer=tokenizer, out_dir=tmp_path / name)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two


def test_wrong_inputs_are_refused(tokenizer: Path, corpus: Path, tmp_path: Path, out_dir: Path) -> None:
    with pytest.raises(ConfigError, match="units='pieces' and objective='none' needs tokenizer, got nothing"):
        train_recurrent(config(), out_dir=out_dir)
    with pytest.raises(ConfigError, match="objective='language_model' needs corpus and tokenizer, got tokenizer"):
        train_recurrent(config(objective="language_model"), tokenizer=tokenizer, out_dir=out_dir)
    with pytest.raises(ConfigError, match="units='words' and objective='none' needs segmented, got tokenizer"):
        train_recurrent(config(units="words"), tokenizer=tokenizer, out_dir=out_dir)
    other, vectors = tmp_path / "other", tmp_path / "vectors"
    other.mkdir()
    vectors.mkdir()
    (other / "vocab.txt").write_text("\n".join([*PIECES, "新"]) + "\n", encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(other / "vocab.txt")), other)
    rows = np.ones((1, 6), dtype=np.float32)
    save_word_vectors(vectors, ["京"], rows, units="pieces", oov_policy="skip", source=other)
    with pytest.raises(ConfigError, match="hold different tokenizers"):
        train_recurrent(config(), tokenizer=tokenizer, embeddings=vectors, out_dir=out_dir)
