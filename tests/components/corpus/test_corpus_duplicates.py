"""Duplicates: MinHash agrees with the library and with the true similarity; the held-out index finds what it must."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from components.corpus.config import CorpusConfig
from components.corpus.duplicates import (
    ExactIndex,
    NearIndex,
    _shingle_hashes,
    duplicate_database,
    minhash_signature,
    text_digest,
)
from components.corpus.held_out import HeldOutIndex, _hash, window_hashes
from components.errors import InputError
from components.examples import Example, write_examples


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with duplicate_database(tmp_path / "index.sqlite") as connection:
        yield connection
    assert not (tmp_path / "index.sqlite").exists()


def random_text(generator: np.random.Generator, length: int) -> str:
    return "".join(map(chr, generator.integers(0x4E00, 0x5E00, length)))


def test_signature_is_the_librarys_whatever_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(np.random.default_rng(0), 300)
    reference = MinHash(num_perm=128, seed=1, hashfunc=int)
    for value in _shingle_hashes(text).tolist():
        reference.update(value)
    assert (minhash_signature(text) == reference.hashvalues).all()
    monkeypatch.setattr("components.corpus.duplicates._BATCH_SHINGLES", 7)
    assert (minhash_signature(text) == reference.hashvalues).all()


def test_shingles_are_distinct_five_grams() -> None:
    assert len(_shingle_hashes("天地玄黄宇宙")) == 2
    assert len(_shingle_hashes("天天天天天天天")) == 1
    assert len(_shingle_hashes("天地")) == len(_shingle_hashes("天")) == 1
    generator = np.random.default_rng(1)
    text = random_text(generator, 50_000)
    assert len(_shingle_hashes(text)) > len({text[i : i + 5] for i in range(len(text) - 4)}) - 5


@pytest.mark.parametrize("changed", [10, 60, 200])
def test_signature_estimates_the_jaccard_similarity(changed: int) -> None:
    generator = np.random.default_rng(2)
    first = random_text(generator, 1000)
    second = first[:-changed] + random_text(generator, changed)
    sets = [{text[i : i + 5] for i in range(len(text) - 4)} for text in (first, second)]
    true = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    estimate = float(np.mean(minhash_signature(first) == minhash_signature(second)))
    assert estimate == pytest.approx(true, abs=0.13)  # three standard errors of 128 permutations


def test_near_index_finds_almost_all_near_copies_and_nothing_else(connection: sqlite3.Connection) -> None:
    generator = np.random.default_rng(3)
    index = NearIndex(connection, "t", 0.8)
    texts = [random_text(generator, 200) for _ in range(200)]
    for number, text in enumerate(texts):
        assert index.find(minhash_signature(text)) is None
        index.add(minhash_signature(text), str(number))
    copies = [text[:-8] + random_text(generator, 8) for text in texts]  # true similarity 188 / 204 = 0.92
    found = [index.find(minhash_signature(copy)) for copy in copies]
    right = sum(match is not None and match[0] == str(number) for number, match in enumerate(found))
    assert right >= 195


def test_exact_index_keeps_the_first_id(connection: sqlite3.Connection) -> None:
    index = ExactIndex(connection, "t")
    assert index.find("好") is None
    index.add("好", "a:1")
    index.add("好", "b:2")
    assert (index.find("好"), index.find("坏")) == ("a:1", None)


def test_digest_is_the_same_in_every_process() -> None:
    assert text_digest("天气") == -7135663510163974779


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40), width=st.integers(1, 33))
def test_window_hashes_equal_the_hash_of_each_window(text: str, width: int) -> None:
    expected = [_hash(text[start : start + width]) for start in range(len(text) - width + 1)]
    assert window_hashes(text, width).tolist() == expected


def held_out(folder: Path, *texts: str) -> Path:
    folder.mkdir()
    write_examples(folder, "test", [Example(f"r.csv:{n}", text, "1") for n, text in enumerate(texts, 2)])
    return folder


def test_contained_texts_name_their_sentences(tmp_path: Path, connection: sqlite3.Connection) -> None:
    dataset = held_out(tmp_path / "d", "房间很大 也很干净，早餐不错，下次还来。", "短评。")
    index = HeldOutIndex([dataset], CorpusConfig(min_held_out_chars=10), connection)
    sentences = ["网友说:", "我觉得房间很大也很干净,", "早餐不错,下次还来!", "短评。", "完。"]
    found = index.find_contained(sentences)
    assert [(match.held_out_id, list(match.sentences)) for match in found] == [("0/test/r.csv:2", [1, 2])]
    assert index.find_contained(["房间很大也很干净,早餐不好。"]) == []
    assert index.find_contained(["短评。"]) == []
    assert index.find_exact("短评。") == "0/test/r.csv:3"


def test_one_sentence_of_a_held_out_text_is_found(tmp_path: Path, connection: sqlite3.Connection) -> None:
    dataset = held_out(tmp_path / "d", "第一句话说了很多事情。第二句话也说了很多事情。")
    index = HeldOutIndex([dataset], CorpusConfig(min_held_out_chars=10), connection)
    found = index.find_contained(["前文。", "第二句话也说了很多事情。", "后文。"])
    assert [list(match.sentences) for match in found] == [[1]]


def test_folder_without_held_out_texts_is_refused(tmp_path: Path, connection: sqlite3.Connection) -> None:
    with pytest.raises(InputError, match=r"no validation\.jsonl and no test\.jsonl"):
        HeldOutIndex([tmp_path], CorpusConfig(), connection)
