"""Conversion between Traditional and Simplified Chinese: right characters, and never another length."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.errors import InputError
from components.text import conversion
from components.text.conversion import convert_counted, convert_script

pytest.importorskip("opencc")


def test_phrases_decide_which_character_is_meant():
    assert convert_script("乾隆皇帝的後宮，頭髮發財", "t2s") == "乾隆皇帝的后宫，头发发财"
    assert convert_script("头发发财，皇后在后宫", "s2t") == "頭髮發財，皇后在後宮"


def test_words_are_not_exchanged():
    assert convert_script("計程車的滑鼠", "t2s") == "计程车的滑鼠"


def test_none_returns_the_text_itself():
    assert convert_counted("頭髮", "none") == conversion.Converted("頭髮", 0, False)


def test_changed_characters_are_counted():
    assert convert_counted("頭髮 abc 山", "t2s") == conversion.Converted("头发 abc 山", 2, False)


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40), st.sampled_from(["t2s", "s2t"]))
def test_number_of_code_points_never_changes(text, direction):
    assert len(convert_script(text, direction)) == len(text)


@pytest.mark.parametrize("text", ["\0頭\0", "頭\r\n髮\u2028", "𠮷頭", "頭\U0001f600"])
def test_odd_characters_survive(text):
    assert convert_script(text, "t2s") == text.replace("頭", "头").replace("髮", "发")


def test_another_length_falls_back_to_single_characters(monkeypatch):
    table = {"頭髮": "头发丝", "頭": "头", "髮": "发发"}
    monkeypatch.setattr(conversion, "_converter", lambda _: lambda text: table.get(text, text))
    assert convert_counted("頭髮", "t2s") == conversion.Converted("头髮", 1, True)


def test_lone_surrogate_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"U\+D83D at character 2"):
        convert_script("頭\ud83d", "t2s")
