"""Answer spans: exact, repaired by one rule at a time, or left unplaced and named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.datasets.alignment import align


@pytest.mark.parametrize(
    ("passage", "text", "start", "outcome", "found_at", "aligned"),
    [
        ("今天天气好", "天气", 2, "exact", 2, "天气"),
        ("今天天气好", "好", 4, "exact", 4, "好"),
        ("今天天气好", "天气", 3, "repaired", 2, "天气"),
        ("今天天气好", "天气", -1, "repaired", 2, "天气"),
        ("今天天气好", "天气", 400, "repaired", 2, "天气"),
        ("今天天气好", " 天气", 1, "repaired", 2, "天气"),
        ("他说，好的。走了", "他说,好的", 0, "repaired", 0, "他说，好的"),
        ("于１９９０年 建成", "1990年建成", 0, "repaired", 1, "１９９０年 建成"),
        ("共有三百人", "300", -1, "unplaced", None, "300"),
        ("北京和北京", "北京", -1, "unplaced", None, "北京"),
        ("北京" + "在" * 30 + "北京", "北京", 31, "repaired", 32, "北京"),
        ("天天", "，", 0, "unplaced", None, "，"),
    ],
)
def test_ft_06_answers_are_found_or_left(passage, text, start, outcome, found_at, aligned):
    alignment = align(passage, text, start)
    assert (alignment.outcome, alignment.start, alignment.text) == (outcome, found_at, aligned)
    if found_at is not None:
        assert passage[found_at : found_at + len(aligned)] == aligned


def test_ft_06_the_nearest_place_is_told_even_when_there_are_several():
    alignment = align("北京，上海，北京，广州，北京", "北京", -1)
    assert (alignment.outcome, alignment.nearest) == ("unplaced", 0)
    assert align("北京" + "在" * 20 + "北京" + "在" * 5 + "北京", "北京", 24).nearest == 22


@pytest.mark.parametrize(("start", "unit"), [(2, "UTF-16 code units"), (4, "UTF-8 bytes")])
def test_text_10_an_offset_in_another_unit_is_recognised(start, unit):
    alignment = align("😀天气好，天气", "天气", start)
    assert (alignment.outcome, alignment.start, alignment.unit) == ("repaired", 1, unit)


def test_text_10_a_code_point_offset_needs_no_other_unit():
    assert align("😀天气好", "天气", 1).outcome == "exact"


@given(
    passage=st.text("天气，,. １1a好", max_size=20),
    text=st.text("天气，,. １1a好", min_size=1, max_size=4),
    start=st.integers(-2, 25),
)
def test_a_placed_answer_is_always_in_the_passage(passage, text, start):
    alignment = align(passage, text, start)
    if alignment.start is None:
        assert alignment.text == text
    else:
        assert alignment.text
        assert passage[alignment.start :].startswith(alignment.text)
