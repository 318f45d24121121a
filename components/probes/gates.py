"""Gate activations of a recurrent layer over time, recomputed from its weights.

``nn.LSTM`` and ``nn.GRU`` give their states and keep their gates to themselves; so the equations are worked through
here, and the states that come out must equal the module's own.

Legend of shape suffixes: L length, E width of the input, H hidden size.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

TOLERANCE = 1e-4


def gate_activations(layer: nn.RNNBase, inputs_LE: Tensor) -> dict[str, NDArray[np.float64]]:
    """Gates of the first layer of a forward stack.

    LSTM (Hochreiter & Schmidhuber 1997; forget gate of Gers et al. 2000): ``input``, ``forget``, ``output``. GRU (Cho
    et al. 2014): ``reset``, ``update`` (the share of the old state that is kept).

    Args:
        layer: An ``nn.LSTM`` or ``nn.GRU``, in evaluation mode.
        inputs_LE: One sequence of embedded tokens, float32.

    Returns:
        Arrays of shape [L, H] in (0, 1).

    Raises:
        ValueError: The layer has no gates.
        AssertionError: The recomputed states differ from the module's.
    """
    if not isinstance(layer, nn.LSTM | nn.GRU):
        raise ValueError(f"{type(layer).__name__} has no gates")
    with torch.no_grad():
        expected_LH = first_layer(layer)(inputs_LE[None])[0][0]
        gates, states_LH = _lstm(layer, inputs_LE) if isinstance(layer, nn.LSTM) else _gru(layer, inputs_LE)
    difference = float((states_LH - expected_LH).abs().max())
    assert difference <= TOLERANCE, f"recomputed states differ from the module's by {difference}"
    return {name: np.asarray(gate.numpy(), dtype=np.float64) for name, gate in gates.items()}


def first_layer(layer: nn.RNNBase) -> nn.RNNBase:
    """The layer alone, where it is the lowest of several."""
    if layer.num_layers == 1:
        return layer
    alone = type(layer)(layer.input_size, layer.hidden_size, batch_first=True)
    alone.load_state_dict({name: value for name, value in layer.state_dict().items() if name.endswith("_l0")})
    return alone.eval()


def _lstm(layer: nn.LSTM, inputs_LE: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    size = layer.hidden_size
    hidden_H, cell_H = torch.zeros(size), torch.zeros(size)
    from_input = inputs_LE @ layer.weight_ih_l0.T + layer.bias_ih_l0 + layer.bias_hh_l0
    steps, states = [], []
    for row in from_input:
        i, f, g, o = (row + layer.weight_hh_l0 @ hidden_H).split(size)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        cell_H = f * cell_H + i * g.tanh()
        hidden_H = o * cell_H.tanh()
        steps.append(torch.stack([i, f, o]))
        states.append(hidden_H)
    gates = torch.stack(steps, dim=1)
    return dict(zip(("input", "forget", "output"), gates, strict=True)), torch.stack(states)


def _gru(layer: nn.GRU, inputs_LE: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    size = layer.hidden_size
    hidden_H = torch.zeros(size)
    steps, states = [], []
    for row in inputs_LE @ layer.weight_ih_l0.T + layer.bias_ih_l0:
        r_in, z_in, n_in = row.split(size)
        r_old, z_old, n_old = (layer.weight_hh_l0 @ hidden_H + layer.bias_hh_l0).split(size)
        r, z = (r_in + r_old).sigmoid(), (z_in + z_old).sigmoid()
        hidden_H = (1 - z) * (n_in + r * n_old).tanh() + z * hidden_H
        steps.append(torch.stack([r, z]))
        states.append(hidden_H)
    gates = torch.stack(steps, dim=1)
    return dict(zip(("reset", "update"), gates, strict=True)), torch.stack(states)
