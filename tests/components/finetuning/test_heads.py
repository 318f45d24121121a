from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from torch import nn

from components.examples import Example
from components.finetuning.best_epoch import BestEpoch
from components.finetuning.classification import decode_labels, softmax
from components.finetuning.linear import ABSENT_LABEL_BIAS, _fit_head, _scaling
from components.finetuning.model import POOLS, States
from components.finetuning.rows import Row, collate
from components.finetuning.text_reader import label_loss


def test_pools_leave_padding_out() -> None:
    hidden = torch.tensor([[[1.0, -5.0], [3.0, -1.0], [99.0, 99.0]], [[2.0, 2.0], [4.0, 0.0], [0.0, 4.0]]])
    states = States(hidden, torch.tensor([[7.0, 8.0], [9.0, 10.0]]))
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert POOLS["mean"](states, mask).tolist() == [[2.0, -3.0], [2.0, 2.0]]
    assert POOLS["max"](states, mask).tolist() == [[3.0, -1.0], [4.0, 4.0]]
    assert POOLS["cls"](states, mask).tolist() == POOLS["last"](states, mask).tolist() == [[7.0, 8.0], [9.0, 10.0]]


def test_collate() -> None:
    rows = [
        Row(0, {"input_ids": np.array([5]), "label": np.array([2])}),
        Row(1, {"input_ids": np.array([6, 7, 8]), "label": np.array([0])}),
    ]
    batch = collate(rows, {"input_ids": 9}, torch.device("cpu"))
    assert batch["input_ids"].tolist() == [[5, 9, 9], [6, 7, 8]]
    assert batch["input_ids_lengths"].tolist() == [1, 3]
    assert batch["label"].tolist() == [[2], [0]]


def test_loss_and_decoding_by_hand() -> None:
    logits = np.log(np.array([[3.0, 1.0], [1.0, 1.0], [1.0, 4.0]]))
    np.testing.assert_allclose(softmax(logits), [[0.75, 0.25], [0.5, 0.5], [0.2, 0.8]], atol=1e-15)
    found = decode_labels([Example(name, "", "") for name in "abc"], logits, {"labels": ["x", "y"]})
    assert [(p.id, p.label) for p in found] == [("a", "x"), ("b", "x"), ("c", "y")]
    loss = label_loss(torch.tensor(logits), torch.tensor([0, 0, 1]), 0.0)
    assert float(loss) == pytest.approx(-np.mean(np.log([0.75, 0.5, 0.8])), abs=1e-6)
    # Smoothing 0.5 over two labels: three quarters of the target on the right one, a quarter on the other.
    smoothed = label_loss(torch.tensor(logits[:1]), torch.tensor([0]), 0.5)
    assert float(smoothed) == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25), abs=1e-6)
    assert np.isfinite(softmax(np.array([[1e4, -1e4]]))).all()


@pytest.mark.parametrize("num_labels", [2, 3, 4])
@pytest.mark.parametrize("standardize", [False, True])
def test_linear_head_gives_the_probabilities_of_scikit_learn(num_labels: int, standardize: bool) -> None:
    generator = np.random.default_rng(num_labels)
    features = generator.normal(3.0, 5.0, size=(60, 5))
    targets = generator.integers(0, num_labels, size=60)
    shift, scale = _scaling(csr_matrix(features)) if standardize else (np.zeros(5), np.ones(5))
    head = _fit_head(csr_matrix(features), targets, num_labels, 0.7, shift, scale)
    scaled = (features - shift) / scale
    reference = LogisticRegression(C=0.7, max_iter=2000, tol=1e-6).fit(scaled, targets)
    np.testing.assert_allclose(softmax(head.logits(csr_matrix(features))), reference.predict_proba(scaled), atol=1e-9)


def test_linear_head_never_predicts_a_label_without_examples() -> None:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    head = _fit_head(csr_matrix(features), np.array([0, 2, 0, 2]), 3, 1.0, np.zeros(2), np.ones(2))
    assert head.bias[1] == ABSENT_LABEL_BIAS
    assert softmax(head.logits(csr_matrix(features)))[:, 1].max() < 1e-30
    assert head.logits(csr_matrix(features)).argmax(axis=1).tolist() == [0, 2, 0, 2]


def test_peers_6_best_epoch_keeps_the_first_and_the_earlier_of_equals(tmp_path: Path) -> None:
    model, best = nn.Linear(2, 1), BestEpoch(tmp_path)
    for epoch, score in enumerate([0.0, 0.0, 0.4, 0.4, 0.3], 1):
        nn.init.constant_(model.weight, epoch)
        best.offer(epoch, score, model)
        best.save()
        if epoch == 2:
            assert BestEpoch(tmp_path).epoch == 1
    best.restore(model)
    assert best.epoch == 3
    assert model.weight.tolist() == [[3.0, 3.0]]
    again = BestEpoch(tmp_path)
    nn.init.zeros_(model.weight)
    again.restore(model)
    assert again.epoch == 3
    assert model.weight.tolist() == [[3.0, 3.0]]
