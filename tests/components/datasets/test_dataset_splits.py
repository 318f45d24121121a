"""Content-hashed splits, exact duplicates, contradictions and limits."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from components.datasets.rows import LabelledText
from components.datasets.splits import Dropped, limit_texts, position, remove_duplicates, split_texts


def rows(*pairs):
    return [LabelledText(f"a:{n}", text, label, f"a:{n}") for n, (text, label) in enumerate(pairs, 1)]


def split_of(texts, **arguments):
    options = {"test_fraction": 0.3, "validation_fraction": 0.2, "seed": 0, **arguments}
    return {row.id: name for name, part in split_texts(texts, **options).items() for row in part}


def test_position_is_the_first_53_bits_of_the_digest():
    first = int(hashlib.sha256("5:好".encode()).hexdigest()[:16], 16) >> 11
    assert position("好", 5) == first / 2**53
    assert position("好", 5) != position("好", 6)


def test_shares_are_as_configured():
    texts = rows(*((f"文{n}", "a") for n in range(4000)))
    parts = split_texts(texts, test_fraction=0.3, validation_fraction=0.2, seed=1)
    assert abs(len(parts["test"]) / 4000 - 0.3) < 0.03
    assert abs(len(parts["validation"]) / 4000 - 0.2) < 0.03
    assert sum(map(len, parts.values())) == 4000


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("好坏 \u3000ab", min_size=1, max_size=6), max_size=20),
    more=st.lists(st.text("好坏ab", max_size=6), max_size=10),
)
def test_equal_texts_stay_together_and_added_rows_move_no_other(texts, more):
    before = rows(*((text, "a") for text in texts))
    added = [LabelledText(f"b:{n}", text, "a", "") for n, text in enumerate(more)]
    first, second = split_of(before), split_of(added + before)
    assert all(second[name] == place for name, place in first.items())
    by_key = {}
    for row in added + before:
        assert by_key.setdefault(row.key, second[row.id]) == second[row.id]


def test_duplicates_and_contradictions():
    texts = rows(("好", "p"), ("好 ", "p"), ("坏", "n"), ("坏", "p"), ("坏", "n"), ("行", "p"))
    kept, dropped, num_contradictory = remove_duplicates(texts)
    assert [row.id for row in kept] == ["a:1", "a:6"]
    assert dropped == [
        Dropped("a:2", "duplicate", "a:1"),
        Dropped("a:3", "contradictory_label", "a:4"),
        Dropped("a:4", "contradictory_label", "a:3"),
        Dropped("a:5", "contradictory_label", "a:4"),
    ]
    assert num_contradictory == 1


def test_limit_takes_a_nested_hash_chosen_subset_in_source_order():
    texts = rows(*((f"文{n}", "a") for n in range(50)))
    ten, dropped = limit_texts(texts, 10, seed=3)
    twenty, _ = limit_texts(texts, 20, seed=3)
    assert len(ten) == 10
    assert len(dropped) == 40
    assert {row.id for row in ten} < {row.id for row in twenty}
    assert [row for row in texts if row in ten] == ten
    assert ten != texts[:10]
    assert limit_texts(texts, None, seed=3) == (texts, [])
    assert limit_texts(texts, 50, seed=3) == (texts, [])
