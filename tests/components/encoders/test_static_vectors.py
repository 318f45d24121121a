from __future__ import annotations

import numpy as np
import pytest

from components.encoders.static import WordVectors, load_word_vectors, save_word_vectors
from components.errors import ArtifactError, InputError
from components.formats import write_encoder_card
from components.text.segmentation import Segmenter, SegmenterConfig
from components.vectors import read_vectors, write_vectors

WORDS = ["读书", "我", "天", "气"]
VECTORS = np.array([[1, 0], [0, 1], [2, 2], [4, 0]], dtype=np.float32)


def spaced(text: str) -> list[str]:
    return text.split()


def save(folder, *, oov_policy="characters"):
    source, out = folder / "segmented", folder / "vectors"
    source.mkdir()
    out.mkdir()
    Segmenter(SegmenterConfig()).save(source)
    save_word_vectors(out, WORDS, VECTORS, units="words", oov_policy=oov_policy, source=source)
    return out


def test_a_text_is_the_mean_of_its_words(tmp_path):
    vectors = load_word_vectors(save(tmp_path))
    assert vectors.words == tuple(WORDS)
    assert (vectors.vector_size, vectors.num_parameters) == (2, 8)
    pooled = vectors.transform(["我读书", "我", "😀", ""])
    assert pooled.dtype == np.float32
    assert pooled.tolist() == [[0.5, 0.5], [0, 1], [0, 0], [0, 0]]


def test_w2v_04_unknown_word_counts_as_its_known_characters():
    vectors = WordVectors(tuple(WORDS), VECTORS, spaced, oov_policy="characters")
    assert vectors.vector("天气").tolist() == [3, 1]
    assert vectors.vector("从未见过") is None
    assert vectors.transform(["天气 我 从未见过"]).tolist() == [[2, 1]]


def test_w2v_04_unknown_word_is_skipped():
    vectors = WordVectors(tuple(WORDS), VECTORS, spaced, oov_policy="skip")
    assert vectors.vector("天气") is None
    assert vectors.transform(["天气 我 从未见过"]).tolist() == [[0, 1]]


@pytest.mark.parametrize("policy", ["characters", "skip"])
def test_w2v_04_policy_is_written_and_restored(tmp_path, policy):
    assert load_word_vectors(save(tmp_path, oov_policy=policy)).oov_policy == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 4\n好 1 2 3 4\n坏 1 2 3 4\n", r":1: header announces 3 words, the file holds 2"),
        ("2 4\n好 1 2 3 4\n坏 1 2 3\n", r":3: 3 numbers after word '坏', header says 4"),
        ("1 4\nNew York 1 2 3 4\n", r":2: 5 numbers after word 'New'"),
        ("1 2\n好 1 nan\n", r":2: word '好' has a number that is not finite"),
        ("1 2\n好 1 x\n", r":2: word '好': could not convert"),
        ("2 2\n好 1 2\n好 1 2\n", r":3: word '好' appears twice"),
        ("好 1 2\n", r":1: header"),
        ("", r":1: header"),
    ],
)
def test_w2v_05_damaged_vectors_are_named_with_their_line(tmp_path, text, message):
    out = save(tmp_path)
    (out / "vectors.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_word_vectors(out)


@pytest.mark.parametrize("word", ["New York", "两\u3000半", "", "a\n", "\u00a0"])
def test_w2v_05_words_with_white_space_are_refused_at_save(tmp_path, word):
    with pytest.raises(ArtifactError, match="white space"):
        write_vectors(tmp_path / "vectors.txt", ["好", word], np.ones((2, 3), dtype=np.float32))
    assert not (tmp_path / "vectors.txt").exists()


def test_w2v_05_vectors_survive_the_text_format_exactly(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32) * np.float32(1e-5)
    words = [chr(0x4E00 + n) for n in range(50)]
    write_vectors(tmp_path / "vectors.txt", words, numbers)
    read_words, read_numbers = read_vectors(tmp_path / "vectors.txt")
    assert read_words == words
    assert read_numbers.tobytes() == numbers.tobytes()


def test_another_kind_of_encoder_is_refused(tmp_path):
    write_encoder_card(tmp_path, "recurrent")
    with pytest.raises(ArtifactError, match="holds a recurrent encoder, not word2vec"):
        load_word_vectors(tmp_path)
