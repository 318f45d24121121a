"""Masking and packing by hand-computed cases and properties: pre-06, pre-07, pre-09."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.bert.masking import mask_tokens
from components.bert.packing import pack
from components.formats import IGNORE_INDEX

MASK = 4
ORDINARY = np.arange(5, 1005)


def mask(input_ids, units, instances, seed=0, probability=0.15, replacements=ORDINARY):
    return mask_tokens(
        np.asarray(input_ids),
        np.asarray(units),
        np.asarray(instances),
        mlm_probability=probability,
        mask_token_id=MASK,
        replacements=replacements,
        generator=np.random.default_rng(seed),
    )


def big_batch(rows=400, length=100):
    """Every row: [CLS], 90 pieces, [SEP], 8 padding."""
    generator = np.random.default_rng(1)
    input_ids = generator.integers(5, 1005, size=(rows, length))
    input_ids[:, 0], input_ids[:, 91], input_ids[:, 92:] = 2, 3, 0
    maskable = np.zeros(input_ids.shape, dtype=bool)
    maskable[:, 1:91] = True
    units = np.where(maskable, np.cumsum(maskable).reshape(maskable.shape) - 1, -1)
    instances = np.where(np.arange(length) < 92, np.arange(rows)[:, None], -1)
    return input_ids, units, instances


@pytest.mark.parametrize("probability", [0.15, 0.37])
def test_share_and_80_10_10_split(probability):
    input_ids, units, instances = big_batch()
    masked = mask(input_ids, units, instances, probability=probability)
    chosen = masked.labels != IGNORE_INDEX
    assert chosen.sum() / (units >= 0).sum() == pytest.approx(probability, abs=0.006)
    assert (masked.labels[chosen] == input_ids[chosen]).all()
    assert (masked.input_ids[~chosen] == input_ids[~chosen]).all()
    as_mask = (masked.input_ids == MASK)[chosen].mean()
    kept = (masked.input_ids == input_ids)[chosen].mean()
    assert as_mask == pytest.approx(0.8, abs=0.02)
    # A random piece is the original one in 1 of 1,000 draws.
    assert kept == pytest.approx(0.1, abs=0.02)
    assert 1 - as_mask - kept == pytest.approx(0.1, abs=0.02)


def test_pre_07_no_special_or_padding_position_over_10_000_sequences():
    input_ids, units, instances = big_batch(rows=1000)
    for seed in range(10):
        masked = mask(input_ids, units, instances, seed)
        assert (masked.labels[units < 0] == IGNORE_INDEX).all()
        assert (masked.input_ids[units < 0] == input_ids[units < 0]).all()
        assert not np.isin(masked.input_ids[units >= 0], [0, 1, 2, 3]).any()


def test_pre_06_every_instance_has_a_masked_piece():
    # Two instances in one row, of two pieces and of one.
    input_ids, units, instances = (
        [[2, 10, 11, 3, 2, 12, 3, 0]],
        [[-1, 0, 1, -1, -1, 2, -1, -1]],
        [[0] * 4 + [1] * 3 + [-1]],
    )
    for seed in range(200):
        labels = mask(input_ids, units, instances, seed).labels[0]
        assert (labels[:4] != IGNORE_INDEX).sum() >= 1
        assert labels[5] == 12


def test_pre_09_a_piece_with_id_0_can_be_predicted():
    masked = mask([[2, 0, 3]], [[-1, 0, -1]], [[0, 0, 0]], replacements=np.arange(2))
    assert masked.labels.tolist() == [[IGNORE_INDEX, 0, IGNORE_INDEX]]


def test_whole_words_are_masked_together_and_the_share_stays():
    input_ids, _, instances = big_batch()
    units = np.where(input_ids >= 5, np.arange(input_ids.size).reshape(input_ids.shape) // 3, -1)
    _, compact = np.unique(units, return_inverse=True)
    units = np.where(units >= 0, compact.reshape(units.shape) - 1, -1)
    # A unit of row r never reaches row r + 1, as rows end with specials and padding.
    masked = mask(input_ids, units, instances, probability=0.2)
    chosen = masked.labels != IGNORE_INDEX
    for unit in range(0, units.max() + 1, 7):
        assert len(set(chosen[units == unit].tolist())) == 1
    assert chosen.sum() / (units >= 0).sum() == pytest.approx(0.2, abs=0.01)


def test_masks_are_a_function_of_the_generator():
    batch = big_batch(rows=10)
    assert (mask(*batch, seed=3).labels == mask(*batch, seed=3).labels).all()
    assert (mask(*batch, seed=3).labels != mask(*batch, seed=4).labels).any()


def test_best_fit_takes_the_fullest_row_that_has_room():
    packed = pack(np.array([3, 7, 2, 5, 1, 2]), 10)
    rows = [packed.instances[a:b].tolist() for a, b in zip(packed.row_starts, packed.row_starts[1:], strict=False)]
    # Longest first: 7 opens row 0 (3 left), 5 opens row 1 (5 left), 3 fills row 0; 2, 2 and 1 fill row 1.
    assert rows == [[1, 0], [3, 2, 5, 4]]


@given(st.lists(st.integers(1, 32), max_size=200))
@settings(deadline=None)
def test_packing_loses_nothing_and_never_overflows(lengths):
    lengths = np.array(lengths, dtype=np.int64)
    packed = pack(lengths, 32)
    assert sorted(packed.instances.tolist()) == list(range(len(lengths)))
    instances, place = packed.of_rows(np.arange(packed.num_rows))
    assert (instances == packed.instances).all()
    filled = np.bincount(place, weights=lengths[instances], minlength=packed.num_rows)
    assert (filled <= 32).all()
    # Any two rows opened by best fit hold more than one row's worth together.
    assert packed.num_rows <= 1 or np.sort(filled)[:2].sum() > 32


def test_instances_of_chosen_rows():
    packed = pack(np.array([6, 4, 10, 5]), 10)
    instances, place = packed.of_rows(np.array([2, 0, 2]))
    assert instances.tolist() == [3, 2, 3]
    assert place.tolist() == [0, 1, 2]
    instances, place = packed.of_rows(np.array([1]))
    assert (instances.tolist(), place.tolist()) == ([0, 1], [0, 0])
