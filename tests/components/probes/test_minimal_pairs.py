from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining

from components.errors import InputError
from components.probes.minimal_pairs import MinimalPair, limit_pairs, pseudo_log_likelihoods, read_minimal_pairs

MASK, PAD = 4, 0


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return BertForPreTraining(
        BertConfig(
            vocab_size=12,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=16,
            initializer_range=0.4,
        )
    ).eval()


def directly(model, row):
    """One row, one place, no batch, no padding, and the model's own forward pass."""
    total = 0.0
    for place in range(1, len(row) - 1):
        hidden = [*row[:place], MASK, *row[place + 1 :]]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([hidden])).prediction_logits[0, place].double()
        total += float(logits.log_softmax(-1)[row[place]])
    return total


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_pseudo_log_likelihood_against_a_direct_computation(model, batch_size):
    rows = [[2, 5, 6, 7, 3], [2, 8, 3], [2, 9, 10, 11, 5, 6, 7, 8, 3], [2, 3]]
    found = pseudo_log_likelihoods(model, rows, mask_id=MASK, pad_id=PAD, batch_size=batch_size)
    np.testing.assert_allclose(found, [directly(model, row) for row in rows], atol=1e-4)
    assert found[3] == 0


def test_nothing_to_score(model):
    assert pseudo_log_likelihoods(model, [], mask_id=MASK, pad_id=PAD, batch_size=4).tolist() == []


@pytest.mark.parametrize(("language", "least"), [("zh", 6), ("en", 6)])
def test_the_lists_that_ship(language, least):
    pairs = read_minimal_pairs(None, language)
    assert len(pairs) >= 35
    assert min(Counter(pair.phenomenon for pair in pairs).values()) >= least
    assert all(pair.good != pair.bad for pair in pairs)
    assert len(set(pairs)) == len(pairs)


def test_a_list_of_ones_own(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text('{"sentence_good": "a b", "sentence_bad": "b a", "phenomenon": "order", "more": 1}\n')
    assert read_minimal_pairs(path, "en") == [MinimalPair("a b", "b a", "order")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no minimal pair"),
        ('{"sentence_good": "a", "sentence_bad": " ", "phenomenon": "x"}\n', r":1: .* lacks text"),
        ('{"sentence_good": "a", "sentence_bad": 3, "phenomenon": "x"}\n', "lacks text"),
    ],
)
def test_a_list_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "own.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_minimal_pairs(path, "en")
    with pytest.raises(InputError, match="no such file"):
        read_minimal_pairs(tmp_path / "absent.jsonl", "en")


def test_the_limit_counts_by_phenomenon():
    pairs = [MinimalPair(str(number), "x", "odd" if number % 2 else "even") for number in range(20)]
    found = limit_pairs(pairs, 3, seed=0)
    assert Counter(pair.phenomenon for pair in found) == {"even": 3, "odd": 3}
    assert found == [pair for pair in pairs if pair in found]
    assert found == limit_pairs(pairs, 3, seed=0) != limit_pairs(pairs, 3, seed=1)
    assert limit_pairs(pairs, 10, seed=0) == pairs
