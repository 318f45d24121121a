from __future__ import annotations

import json
from collections import Counter

import pytest

from components.errors import InputError
from components.probes.word_files import (
    Analogy,
    Triple,
    WordPair,
    read_analogies,
    read_contexts,
    read_triples,
    read_word_pairs,
    shipped_list,
)


def write(tmp_path, text, name="list.tsv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_pairs_with_comments_windows_line_ends_and_a_byte_order_mark(tmp_path):
    path = write(tmp_path, "\ufeff# word\tword\tscore\r\n猫\t狗\t7.5\r\n\r\n猫\t法律\t0\r\n")
    assert read_word_pairs(path) == [WordPair("猫", "狗", 7.5), WordPair("猫", "法律", 0.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("猫\t狗\t1\n猫\t狗\n", r"list.tsv:2: '猫\\t狗' has 2 columns"),
        ("猫\t狗\tviel\n", r"list.tsv:1: score 'viel' is no number"),
        ("猫\t狗\tnan\n", r"list.tsv:1: score 'nan' is no number"),
        ("猫\t \t1\n", r"list.tsv:1: "),
        ("# nothing\n", "holds no pairs of words"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_word_pairs(write(tmp_path, text))


def test_a_missing_file_and_another_encoding_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_word_pairs(tmp_path / "absent.tsv")
    path = tmp_path / "list.tsv"
    path.write_bytes("猫\t狗\t1\n".encode("gb18030"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_word_pairs(path)


def test_triples(tmp_path):
    assert read_triples(write(tmp_path, "苹果\t香蕉\t手机\n")) == [Triple("苹果", "香蕉", "手机")]
    with pytest.raises(InputError, match=r":1: .* repeats a word"):
        read_triples(write(tmp_path, "苹果\t苹果\t手机\n"))


def test_analogies_in_the_format_of_word2vec(tmp_path):
    path = write(tmp_path, ": capital\r\n北京 中国 东京 日本\r\n: same\na b c a\n")
    assert read_analogies(path) == [Analogy("capital", "北京", "中国", "东京", "日本")]
    with pytest.raises(InputError, match=r":2: .* has 3 words"):
        read_analogies(write(tmp_path, ": x\na b c\n"))


def test_contexts_as_json_lines_join_tokens_by_language(tmp_path):
    row = {"word": "bank", "sense": "river", "tokens": ["The", "bank", "is", "muddy"], "index": 1}
    path = write(tmp_path, json.dumps(row), "wsd.jsonl")
    (english,) = read_contexts(path, "en")
    assert (english.text, english.text[slice(*english.span)]) == ("The bank is muddy", "bank")
    (chinese,) = read_contexts(path, "zh")
    assert (chinese.text, chinese.text[slice(*chinese.span)]) == ("Thebankismuddy", "bank")
    assert english.id == "wsd.jsonl:1"


def test_contexts_as_a_table_with_an_index(tmp_path):
    path = write(tmp_path, "word\tsense\tindex\ttext\nhard\tH1\t3\t`` it was harder than hard ''\n")
    (context,) = read_contexts(path, "en")
    assert (context.word, context.text[slice(*context.span)]) == ("hard", "harder")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ('{"word": "a", "sense": "b", "tokens": ["a"], "index": 1}', "w.jsonl", r"w.jsonl:1: not"),
        ('{"word": "a", "sense": "b", "tokens": ["a"], "index": -1}', "w.jsonl", r"w.jsonl:1: "),
        ('{"word": "a", "sense": 1, "tokens": ["a"], "index": 0}', "w.jsonl", r"w.jsonl:1: words, senses"),
        ("[]\n", "w.jsonl", r"w.jsonl:1: not"),
        ("{\n", "w.jsonl", r"w.jsonl:1: not a JSON value"),
        ("word\ttext\n", "w.tsv", r"w.tsv:1: header"),
        ("word\tsense\ttext\nbank\tx\tno such word\n", "w.tsv", r"w.tsv:2: word 'bank' occurs 0 times"),
        ("word\tsense\ttext\nbank\tx\tbank to bank\n", "w.tsv", r"w.tsv:2: word 'bank' occurs 2 times"),
        ("word\tsense\tindex\ttext\nbank\tx\t9\ta bank\n", "w.tsv", r"w.tsv:2: index '9'"),
        ("word\tsense\ttext\n", "w.tsv", "holds no contexts"),
    ],
)
def test_contexts_that_cannot_be_used_are_refused(tmp_path, text, name, message):
    with pytest.raises(InputError, match=message):
        read_contexts(write(tmp_path, text, name), "en")


def test_an_english_word_inside_another_is_no_occurrence(tmp_path):
    path = write(tmp_path, "word\tsense\ttext\nbat\tanimal\tThe batter saw a bat.\n")
    assert read_contexts(path, "en")[0].span == (17, 20)


@pytest.mark.parametrize(("language", "least_words"), [("zh", 21), ("en", 10)])
def test_shipped_contexts_have_two_senses_of_six_sentences(language, least_words):
    contexts = read_contexts(shipped_list(f"senses_{language}.tsv"), language)
    assert len({context.text for context in contexts}) == len(contexts)
    senses = Counter((context.word, context.sense) for context in contexts)
    words = Counter(word for word, _ in senses)
    assert len(words) >= least_words
    assert set(words.values()) == {2}
    assert min(senses.values()) >= 6


@pytest.mark.parametrize("language", ["zh", "en"])
def test_in_shipped_contexts_the_place_of_the_word_varies(language):
    starts: dict[tuple[str, str], set[int]] = {}
    for context in read_contexts(shipped_list(f"senses_{language}.tsv"), language):
        starts.setdefault((context.word, context.sense), set()).add(context.span[0])
    assert min(len(places) for places in starts.values()) >= 3


@pytest.mark.parametrize("language", ["zh", "en"])
def test_shipped_lists_can_be_read(language):
    pairs = read_word_pairs(shipped_list(f"similarity_{language}.tsv"))
    assert len(pairs) >= 50
    assert {pair.score for pair in pairs} == {0, 1, 2, 3, 4}
    assert len(read_triples(shipped_list(f"triples_{language}.tsv"))) >= 30
    assert len(read_analogies(shipped_list(f"analogies_{language}.txt"))) >= 60
