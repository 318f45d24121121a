from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2, Entities

from components.scoring.entities import (
    EntityCounts,
    count_entities,
    entities_of,
    entity_f1,
    macro_entity_f1,
    sum_counts,
)

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-work-of-art", "I-work-of-art"]


@pytest.mark.parametrize(
    ("tags", "strict", "conll"),
    [
        ("", [], []),
        ("O O", [], []),
        ("B-P I-P O B-L", [("P", 0, 2), ("L", 3, 4)], [("P", 0, 2), ("L", 3, 4)]),
        ("B-P B-P I-P", [("P", 0, 1), ("P", 1, 3)], [("P", 0, 1), ("P", 1, 3)]),
        ("I-P I-P", [], [("P", 0, 2)]),
        ("O I-P O", [], [("P", 1, 2)]),
        ("B-P I-L I-L", [("P", 0, 1)], [("P", 0, 1), ("L", 1, 3)]),
        ("B-P I-L I-P", [("P", 0, 1)], [("P", 0, 1), ("L", 1, 2), ("P", 2, 3)]),
        ("B-a-b I-a-b I-b", [("a-b", 0, 2)], [("a-b", 0, 2), ("b", 2, 3)]),
    ],
)
def test_entities_by_hand(tags: str, strict: list, conll: list) -> None:
    assert entities_of(tags.split()) == strict
    assert entities_of(tags.split(), "conll") == conll


def test_ft_14_lenient_scoring_is_told_apart() -> None:
    gold, predicted = [["B-P", "I-P"]], [["I-P", "I-P"]]
    assert entity_f1(gold, predicted) == 0
    assert entity_f1(gold, predicted, "conll") == 1


def test_ft_15_a_word_counts_once_however_many_pieces_it_has() -> None:
    """Repeating B on each of three pieces makes three entities of one; words are what is scored."""
    words_gold, words_predicted = [["B-P", "O"]], [["O", "B-P"]]
    pieces_gold, pieces_predicted = [["B-P", "B-P", "B-P", "O"]], [["O", "B-P", "B-P", "B-P"]]
    assert entity_f1(words_gold, words_predicted) == 0 == f1_score(words_gold, words_predicted)
    assert entity_f1(pieces_gold, pieces_predicted) == pytest.approx(2 / 3)


def test_counts_and_scores_by_hand() -> None:
    gold = [["B-P", "I-P", "O", "B-L"], ["B-P", "O"]]
    predicted = [["B-P", "I-P", "B-L", "O"], ["O", "B-Q"]]
    counts = count_entities(gold, predicted)
    assert counts == {"L": EntityCounts(1, 1, 0), "P": EntityCounts(2, 1, 1), "Q": EntityCounts(0, 1, 0)}
    total = sum_counts(counts.values())
    assert (total.precision, total.recall, total.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert macro_entity_f1(counts) == pytest.approx((0 + 2 / 3 + 0) / 3)
    assert entity_f1([["O"]], [["O"]]) == 0 == macro_entity_f1({})


def test_sequences_must_pair_up() -> None:
    with pytest.raises(ValueError, match="1 tags predicted for 2 tokens"):
        count_entities([["O", "O"]], [["O"]])
    with pytest.raises(ValueError, match="shorter"):
        count_entities([["O"], ["O"]], [["O"]])


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    tags = st.sampled_from(TAGS)
    return tuple([draw(st.lists(tags, min_size=n, max_size=n)) for n in lengths] for _ in range(2))


def legal(tags: list[str]) -> list[str]:
    """The same tags with every I-X that begins something made B-X."""
    fixed: list[str] = []
    for tag in tags:
        before = fixed[-1][2:] if fixed else ""
        fixed.append(f"B-{tag[2:]}" if tag.startswith("I-") and before != tag[2:] else tag)
    return fixed


@settings(max_examples=200, deadline=None)
@given(sequences())
def test_entities_agree_with_seqeval(pair: tuple[list[list[str]], list[list[str]]]) -> None:
    for tags in pair[0] + pair[1]:
        theirs = [(one.tag, one.start, one.end) for one in Entities([tags], IOB2).entities[0]]
        assert entities_of(tags) == theirs
        assert entities_of(tags, "conll") == [(name, start, end + 1) for name, start, end in get_entities(tags)]
        assert entities_of(legal(tags)) == entities_of(legal(tags), "conll")


@settings(max_examples=150, deadline=None)
@given(sequences(), st.booleans())
def test_scores_agree_with_seqeval(pair: tuple[list[list[str]], list[list[str]]], make_legal: bool) -> None:
    gold, predicted = ([legal(tags) if make_legal else tags for tags in side] for side in pair)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode, settings_of_seqeval in (("strict", {"mode": "strict", "scheme": IOB2}), ("conll", {})):
            counts = count_entities(gold, predicted, mode)
            total = sum_counts(counts.values())
            assert total.precision == pytest.approx(precision_score(gold, predicted, **settings_of_seqeval))
            assert total.recall == pytest.approx(recall_score(gold, predicted, **settings_of_seqeval))
            assert total.f1 == pytest.approx(f1_score(gold, predicted, **settings_of_seqeval))
            assert entity_f1(gold, predicted, mode) == total.f1
            if counts:
                macro = f1_score(gold, predicted, average="macro", **settings_of_seqeval)
                assert macro_entity_f1(counts) == pytest.approx(macro)
        counts = count_entities(gold, predicted)
        if counts:
            table = precision_recall_fscore_support(gold, predicted, scheme=IOB2)
            rows = list(zip(*table, strict=True))
            assert [(c.precision, c.recall, c.f1, c.num_gold) for c in counts.values()] == [
                pytest.approx(row) for row in rows
            ]
