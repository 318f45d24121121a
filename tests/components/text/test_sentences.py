"""Sentence boundaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.text.sentences import cut_sentence, ends_sentence, split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("天气好。我们走吧！去哪?", ["天气好。", "我们走吧！", "去哪?"]),
        ("他说：“走吧。”我同意。", ["他说：“走吧。”", "我同意。"]),
        ("（他来了。）『真的？！』好", ["（他来了。）", "『真的？！』", "好"]),
        ('他说:"走!"然后走了。', ['他说:"走!"', "然后走了。"]),
        ('走了。"好"是什么？', ["走了。", '"好"是什么？']),
        ("等等……他来了。", ["等等……", "他来了。"]),
        ("等等......他来了。", ["等等......", "他来了。"]),
        ("见http://a.cn/b?c=d页。Yahoo!站", ["见http://a.cn/b?c=d页。", "Yahoo!", "站"]),
        ("3.14元。第一行\n第二行", ["3.14元。", "第一行", "第二行"]),
        ("。。。", ["。。。"]),
        ("  \n ", []),
    ],
)
def test_chinese(text: str, expected: list[str]) -> None:
    assert split_sentences(text, "zh") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. We stay.", ["It rains.", "We stay."]),
        (
            'Mr. Smith left the U.S. yesterday. "Really?" he said.',
            ["Mr. Smith left the U.S. yesterday.", '"Really?" he said.'],
        ),
        ("It cost 3.5 dollars! See a.b.c now", ["It cost 3.5 dollars!", "See a.b.c now"]),
        ("J. R. Smith came. So did I. Good.", ["J. R. Smith came.", "So did I.", "Good."]),
        ("(He left.) She stayed.", ["(He left.)", "She stayed."]),
    ],
)
def test_english(text: str, expected: list[str]) -> None:
    assert split_sentences(text, "en") == expected


@pytest.mark.parametrize("language", ["zh", "en"])
@given(text=st.text(st.sampled_from("天a 。！!?.”\"'…\n，A1)"), max_size=60))
def test_no_character_but_white_space_is_lost(language: str, text: str) -> None:
    sentences = split_sentences(text, language, max_sentence_chars=7)  # type: ignore[arg-type]
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() and 0 < len(sentence) <= 7 for sentence in sentences)


def test_long_sentence_is_cut_at_a_comma_else_at_the_limit() -> None:
    assert cut_sentence("一二三四五六，七八九十", 8) == ["一二三四五六，", "七八九十"]
    assert cut_sentence("一，二三四五六七八九十", 8) == ["一，二三四五六七", "八九十"]
    assert cut_sentence("aaa bbb ccc", 8) == ["aaa bbb", "ccc"]
    assert cut_sentence("一二三", 3) == ["一二三"]


def test_ends_sentence() -> None:
    assert ends_sentence("走吧。”")
    assert not ends_sentence("走吧")
