"""The normalisation recipe: exact small cases, offsets back to the original, properties over any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import InputError
from components.text.normalization import NormalizationConfig, fold_compatibility, normalize

DEFAULT = NormalizationConfig()
ODD = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\u200b\u00ad\ufeff\u2060\x00\x07\t\n\r\u3000 １Ａ㎏ﬁé\u0301\u0308\u1100\u1161\u11a8ｶﾞ\ufdfa"),
    ),
    max_size=40,
)


def test_clean_text_is_unchanged_and_maps_to_itself() -> None:
    result = normalize("天气很好。", DEFAULT)
    assert (result.text, result.counts, list(result.offsets)) == ("天气很好。", {}, [0, 1, 2, 3, 4])


def test_text_04_invisible_characters_are_removed_with_offsets() -> None:
    result = normalize("a\u200bb\u00adc\ufeffd\u2060e", DEFAULT)
    assert result.text == "abcde"
    assert list(result.offsets) == [0, 2, 4, 6, 8]
    assert result.counts == {"invisible_characters": 4}
    assert normalize("\u200b", DEFAULT).text == ""
    kept = normalize("a\u200bb", NormalizationConfig(remove_invisible=False))
    assert (kept.text, kept.counts) == ("a\u200bb", {})


def test_text_05_full_width_folds_and_offsets_lead_back() -> None:
    full, half = normalize("价格１２３元", DEFAULT), normalize("价格123元", DEFAULT)
    assert full.text == half.text == "价格123元"
    assert full.counts == {"nfkc": 3}
    assert full.original_span(2, 5) == (2, 5)
    result = normalize("重３㎏好", DEFAULT)
    assert result.text == "重3kg好"
    assert list(result.offsets) == [0, 1, 2, 2, 3]
    assert result.original_span(1, 4) == (1, 3)
    assert normalize("价格１２３元", NormalizationConfig(nfkc=False)).text == "价格１２３元"


def test_text_10_offsets_count_code_points() -> None:
    context = "😀天气好"
    result = normalize(context, DEFAULT)
    start, end = result.original_span(result.text.index("天气"), result.text.index("天气") + 2)
    assert (start, context[start:end]) == (1, "天气")


def test_composed_character_covers_its_parts() -> None:
    result = normalize("xe\u0301y", DEFAULT)
    assert result.text == "xéy"
    assert list(result.offsets) == [0, 1, 3]
    assert result.original_span(1, 2) == (1, 3)


def test_control_characters_by_policy() -> None:
    text = "a\x00b\x07c\td\r\ne"
    assert normalize(text, DEFAULT).text == "abc d e"
    assert normalize(text, DEFAULT).counts == {"control_characters": 5, "whitespace": 1}
    assert normalize(text, NormalizationConfig(control_characters="space")).text == "a b c d e"
    kept = NormalizationConfig(control_characters="keep", squeeze_whitespace=False)
    assert normalize(text, kept).text == text


def test_replacement_characters_are_counted_and_stay() -> None:
    result = normalize("坏\ufffd字\ufffd", DEFAULT)
    assert (result.text, result.counts) == ("坏\ufffd字\ufffd", {"replacement_characters": 2})


def test_text_03_lone_surrogate_is_refused_with_place_or_replaced() -> None:
    with pytest.raises(InputError, match=r"a\.jsonl:7: lone surrogate U\+D83D at column 2"):
        normalize("好\ud83d", DEFAULT, file="a.jsonl", line=7)
    result = normalize("好\ud83d", NormalizationConfig(surrogates="replace"))
    assert (result.text, result.counts) == ("好\ufffd", {"surrogates": 1, "replacement_characters": 1})


def test_text_09_html() -> None:
    text = "<p>5&nbsp;&lt;&nbsp;6 &amp;amp; 春</p><script>x()</script>"
    result = normalize(text, NormalizationConfig(html=True))
    assert result.text == "5 < 6 &amp; 春"
    assert result.counts["html"] == 7
    assert text[slice(*result.original_span(2, 3))] == "&lt;"
    assert text[result.offsets[-1]] == "春"
    assert normalize(text, DEFAULT).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<b", "a<b"),
        ("if a<b and c>d", "if a<b and c>d"),
        ("x < y > z", "x < y > z"),
        ('<a href="http://x?a=1&b=2">链接</a>好', "链接好"),
        ("<P CLASS=x>一</P><br/>二", "一 二"),
        ("<style>p{}</style>字<!-- <b>注</b> -->", "字"),
        ("&lt;p&gt;", "<p>"),
        ("&nosuch; AT&T", "&nosuch; AT&T"),
        ("软&shy;连字符", "软连字符"),
    ],
)
def test_text_09_html_keeps_real_text(text: str, expected: str) -> None:
    assert normalize(text, NormalizationConfig(html=True)).text == expected


def test_special_token_strings_are_counted_and_stay() -> None:
    text = "this [SEP] is [MASK] data [CLS] [sep]"
    result = normalize(text, DEFAULT)
    assert (result.text, result.counts) == (text, {"special_token_strings": 3})


@given(ODD)
def test_offsets_are_valid_monotone_and_as_many_as_characters(text: str) -> None:
    result = normalize(text, DEFAULT)
    offsets = list(result.offsets)
    assert len(offsets) == len(result.text)
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)


@given(ODD)
def test_recipe_is_idempotent_and_nfkc(text: str) -> None:
    once = normalize(text, DEFAULT).text
    assert normalize(once, DEFAULT).text == once
    assert unicodedata.is_normalized("NFKC", once)


@given(ODD)
def test_span_of_each_character_normalises_to_it(text: str) -> None:
    folded, _ = fold_compatibility(text)
    result = normalize(
        text, NormalizationConfig(squeeze_whitespace=False, control_characters="keep", remove_invisible=False)
    )
    assert result.text == folded
    for index, character in enumerate(result.text):
        start, end = result.original_span(index, index + 1)
        assert character in unicodedata.normalize("NFKC", text[start:end])


@given(ODD)
def test_counts_are_zero_only_without_a_change(text: str) -> None:
    result = normalize(text, DEFAULT)
    changed = {name for name in result.counts if name not in {"replacement_characters", "special_token_strings"}}
    assert bool(changed) >= (result.text != text)
    assert all(count > 0 for count in result.counts.values())
