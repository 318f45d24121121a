"""Tag schemes: detection, reading by conlleval's rule, repairs, and the way to IOB2 and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.datasets.tag_schemes import (
    EntitySpan,
    Tag,
    detect_scheme,
    entity_spans,
    find_repairs,
    iob2_tags,
    parse_tag,
    tags_in_scheme,
)


def parsed(tags):
    return [parse_tag(tag) for tag in tags.split()]


def to_iob2(tags):
    return " ".join(iob2_tags(entity_spans(parsed(tags)), len(tags.split())))


@pytest.mark.parametrize(
    ("given_tags", "scheme", "iob2"),
    [
        ("B-P I-P O B-L", "iob2", "B-P I-P O B-L"),
        ("B-P B-P I-P", "iob2", "B-P B-P I-P"),
        ("I-P I-P O I-L", "io", "B-P I-P O B-L"),
        ("I-P I-P B-P O I-L", "iob1", "B-P I-P B-P O B-L"),
        ("B-P E-P O S-L", "bioes", "B-P I-P O B-L"),
        ("B-P M-P E-P S-P B-L E-L", "bioes", "B-P I-P I-P B-P B-L I-L"),
        ("B-P I-P L-P U-P", "bioes", "B-P I-P I-P B-P"),
        ("PER PER O LOC PER", "io", "B-PER I-PER O B-LOC B-PER"),
        ("O O", "iob2", "O O"),
    ],
)
def test_every_scheme_is_detected_and_becomes_iob2(given_tags, scheme, iob2):
    assert detect_scheme([parsed(given_tags)]) == scheme
    assert to_iob2(given_tags) == iob2
    assert find_repairs(parsed(given_tags), scheme) == []


@pytest.mark.parametrize(
    ("given_tags", "scheme", "iob2", "repaired"),
    [
        ("O I-P I-P", "iob2", "O B-P I-P", [1]),
        ("B-P I-L I-L", "iob2", "B-P B-L I-L", [1]),
        ("B-P I-P O", "iob1", "B-P I-P O", [0]),
        ("O M-P E-P", "bioes", "O B-P I-P", [1]),
        ("O E-P", "bioes", "O B-P", [1]),
        ("B-P O", "bioes", "B-P O", [0]),
        ("B-P M-P B-P E-P", "bioes", "B-P I-P B-P I-P", [1]),
        ("S-P E-P", "bioes", "B-P B-P", [1]),
        ("B-P E-P I-P E-P", "bioes", "B-P I-P B-P I-P", [2]),
        ("B-P I-P", "io", "B-P I-P", [0]),
        ("B-P E-P", "iob2", "B-P I-P", [1]),
    ],
)
def test_illegal_tags_are_read_by_the_conlleval_rule_and_named(given_tags, scheme, iob2, repaired):
    assert to_iob2(given_tags) == iob2
    assert find_repairs(parsed(given_tags), scheme) == repaired


def test_scheme_is_that_of_the_whole_file():
    cut = [parsed("I-P I-P O"), parsed("B-P I-P"), parsed("O B-L"), parsed("B-L")]
    assert detect_scheme(cut) == "iob2"
    assert detect_scheme([parsed("I-P B-P"), parsed("I-P"), parsed("I-L")]) == "iob1"
    assert detect_scheme([]) == "iob2"


@pytest.mark.parametrize("tag", ["", " ", "b-PER", "B-", "B- ", "B_PER", "PER-B", "-PER", "X-PER", "o", "B", "0"])
def test_what_is_no_tag_is_refused(tag):
    assert parse_tag(tag) is None


def test_types_may_hold_hyphens_and_chinese():
    assert parse_tag("B-creative-work") == Tag("B", "creative-work")
    assert parse_tag("M-地名") == Tag("I", "地名")
    assert parse_tag("地名") == Tag("", "地名")


@st.composite
def entities(draw):
    """Entities that do not overlap, and the number of tokens they are in."""
    spans, position = [], 0
    for gap, length, name in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["PER", "LOC-X"])), max_size=6)
    ):
        spans.append(EntitySpan(position + gap, position + gap + length, name))
        position += gap + length
    return spans, position + draw(st.integers(0, 2))


@given(entities(), st.sampled_from(["iob2", "iob1", "bioes"]))
def test_every_scheme_keeps_entities_to_iob2_and_back(case, scheme):
    spans, num_tokens = case
    tags = [parse_tag(tag) for tag in tags_in_scheme(spans, num_tokens, scheme)]
    assert find_repairs(tags, scheme) == []
    assert entity_spans(tags) == spans
    again = [parse_tag(tag) for tag in iob2_tags(entity_spans(tags), num_tokens)]
    assert entity_spans(again) == spans
    assert find_repairs(again, "iob2") == []


@given(entities())
def test_io_keeps_the_tokens_and_types_of_entities(case):
    spans, num_tokens = case
    tags = [parse_tag(tag) for tag in tags_in_scheme(spans, num_tokens, "io")]
    assert [tag.type for tag in tags] == [
        next((span.type for span in spans if span.start <= token < span.end), "") for token in range(num_tokens)
    ]
    assert find_repairs(tags, "io") == []


@given(st.lists(st.sampled_from(["O", "B-P", "I-P", "E-P", "S-P", "B-L", "I-L", "E-L", "S-L"]), max_size=12))
def test_any_sequence_becomes_legal_iob2_and_stays_it(tags):
    once = iob2_tags(entity_spans([parse_tag(tag) for tag in tags]), len(tags))
    assert [tag == "O" for tag in once] == [tag == "O" for tag in tags]
    assert find_repairs([parse_tag(tag) for tag in once], "iob2") == []
    assert iob2_tags(entity_spans([parse_tag(tag) for tag in once]), len(tags)) == once
