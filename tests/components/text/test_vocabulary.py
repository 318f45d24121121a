"""The word vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import InputError
from components.text.vocabulary import PAD_ID, UNK_ID, Vocabulary


def test_special_ids_come_first() -> None:
    vocabulary = Vocabulary(["天气", "好"])
    assert (PAD_ID, UNK_ID, len(vocabulary)) == (0, 1, 4)
    assert vocabulary.words == ("[PAD]", "[UNK]", "天气", "好")
    assert vocabulary.encode(["好", "天气"]) == [3, 2]
    assert vocabulary.decode([2, 3]) == ["天气", "好"]


def test_unknown_word_is_spelled_by_known_characters_else_unk() -> None:
    vocabulary = Vocabulary(["天", "好"])
    assert vocabulary.encode(["好天气"]) == [3, 2, UNK_ID]
    assert vocabulary.encode(["地铁", "天"]) == [UNK_ID, 2]


def test_oov_rate_counts_tokens() -> None:
    vocabulary = Vocabulary(["好"])
    assert vocabulary.oov_rate(["好", "坏", "好", "好"]) == 0.25
    assert vocabulary.oov_rate([]) == 0.0


def test_from_counts_orders_by_count_then_code_point() -> None:
    counts = {"b": 2, "a": 2, "c": 5, "d": 1}
    assert Vocabulary.from_counts(counts, min_count=2).words[2:] == ("c", "a", "b")
    assert Vocabulary.from_counts(counts, max_size=4).words[2:] == ("c", "a")


def test_saved_vocabulary_is_equal(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["天气", "a\u200b", "#"])
    vocabulary.save(tmp_path)
    assert (tmp_path / "vocabulary.txt").read_bytes() == "[PAD]\n[UNK]\n天气\na\u200b\n#\n".encode()
    assert Vocabulary.load(tmp_path).words == vocabulary.words


@pytest.mark.parametrize("words", [["a", "a"], ["[PAD]"], ["a b"], [""]])
def test_unusable_words_are_refused(words: list[str]) -> None:
    with pytest.raises(InputError):
        Vocabulary(words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[UNK]\n[PAD]\n", r"vocabulary\.txt:1: expected \[PAD\]"),
        ("[PAD]\n", r"vocabulary\.txt:2: expected \[UNK\]"),
        ("[PAD]\n[UNK]\na\n\nb\n", r"vocabulary\.txt:4: entry '' is blank or repeated"),
        ("[PAD]\n[UNK]\na\na\n", r"vocabulary\.txt:4: entry 'a' is blank or repeated"),
    ],
)
def test_damaged_file_is_refused_with_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "vocabulary.txt").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Vocabulary.load(tmp_path)
