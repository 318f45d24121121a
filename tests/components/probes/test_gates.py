from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from components.probes.gates import first_layer, gate_activations


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def set_weights(layer, **values):
    with torch.no_grad():
        for name, rows in values.items():
            layer.get_parameter(f"{name}_l0").copy_(torch.tensor(rows))


def test_two_steps_of_an_lstm_by_hand():
    layer = nn.LSTM(1, 1, batch_first=True)
    set_weights(layer, weight_ih=[[0.5], [-1.0], [2.0], [0.25]], weight_hh=[[1.0], [0.5], [-1.0], [2.0]],
                bias_ih=[0.1, 1.0, 0.0, -0.2], bias_hh=[0.0, 0.5, 0.3, 0.0])  # fmt: skip
    found = gate_activations(layer, torch.tensor([[1.0], [-2.0]]))
    i, f, g, o = sigmoid(0.6), sigmoid(0.5), math.tanh(2.3), sigmoid(0.05)
    state = o * math.tanh(i * g)
    second = sigmoid(-0.9 + state), sigmoid(3.5 + 0.5 * state), sigmoid(-0.7 + 2 * state)
    assert list(found.by_name) == ["input", "forget", "output"]
    for gate, expected in zip(found.by_name.values(), zip((i, f, o), second, strict=True), strict=True):
        np.testing.assert_allclose(gate[:, 0], expected, atol=1e-6)


def test_two_steps_of_a_gru_by_hand():
    layer = nn.GRU(1, 1, batch_first=True)
    set_weights(layer, weight_ih=[[0.5], [-1.0], [2.0]], weight_hh=[[1.0], [0.5], [-1.0]],
                bias_ih=[0.1, 1.0, 0.0], bias_hh=[0.0, 0.5, 0.3])  # fmt: skip
    found = gate_activations(layer, torch.tensor([[1.0], [-2.0]]))
    r, z = sigmoid(0.6), sigmoid(0.5)
    state = (1 - z) * math.tanh(2.0 + r * 0.3)
    assert list(found.by_name) == ["reset", "update"]
    np.testing.assert_allclose(found.by_name["reset"][:, 0], [r, sigmoid(-0.9 + state)], atol=1e-6)
    np.testing.assert_allclose(found.by_name["update"][:, 0], [z, sigmoid(3.5 + 0.5 * state)], atol=1e-6)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_gates_are_bounded_and_explain_the_states_of_the_layer(kind, num_layers):
    torch.manual_seed(0)
    layer = kind(6, 8, num_layers=num_layers, batch_first=True).eval()
    found = gate_activations(layer, 3 * torch.randn(11, 6))
    assert found.state_difference < 1e-6
    for gate in found.by_name.values():
        assert gate.shape == (11, 8)
        assert gate.min() > 0
        assert gate.max() < 1


def test_gates_that_do_not_explain_the_states_are_told(monkeypatch):
    torch.manual_seed(0)
    layer = nn.LSTM(2, 3, batch_first=True)
    monkeypatch.setattr("components.probes.gates.first_layer", lambda layer: nn.LSTM(2, 3, batch_first=True))
    assert gate_activations(layer, torch.randn(5, 2)).state_difference > 0.01


def test_the_lowest_layer_alone():
    torch.manual_seed(0)
    layer = nn.GRU(2, 3, num_layers=2, batch_first=True)
    alone = first_layer(layer)
    assert alone.num_layers == 1
    assert torch.equal(alone.weight_hh_l0, layer.weight_hh_l0)


def test_a_plain_network_has_no_gates():
    with pytest.raises(ValueError, match="RNN has no gates"):
        gate_activations(nn.RNN(2, 3), torch.zeros(1, 2))
