"""Gate activations of a recurrent layer over time, recomputed from its weights.

``nn.LSTM`` and ``nn.GRU`` give their states and keep their gates to themselves; so the equations are worked through
here, and how far the states that come out are from the module's own is measured beside them.

Legend of shape suffixes: L length, E width of the input, H hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

GatedLayer = nn.LSTM | nn.GRU


@dataclass(frozen=True)
class Gates:
    """Gates of one sequence, and how well they explain the layer."""

    by_name: dict[str, NDArray[np.float64]]
    """Shape [L, H] each, in (0, 1)."""
    state_difference: float
    """Largest difference between the states worked out from these gates and the module's own."""


def gate_activations(layer: GatedLayer, inputs_LE: Tensor) -> Gates:
    """Gates of the first layer of a forward stack.

    LSTM (Hochreiter & Schmidhuber 1997; forget gate of Gers et al. 2000): ``input``, ``forget``, ``output``. GRU (Cho
    et al. 2014): ``reset``, ``update`` (the share of the old state that is kept).

    Args:
        layer: In evaluation mode.
        inputs_LE: One sequence of embedded tokens, float32.

    Raises:
        ValueError: The layer has no gates.
    """
    if not isinstance(layer, GatedLayer):
        raise ValueError(f"{type(layer).__name__} has no gates: give an nn.LSTM or nn.GRU")
    with torch.no_grad():
        expected_LH = first_layer(layer)(inputs_LE[None])[0][0]
        gates, states_LH = _lstm(layer, inputs_LE) if isinstance(layer, nn.LSTM) else _gru(layer, inputs_LE)
    by_name = {name: np.asarray(gate.numpy(), dtype=np.float64) for name, gate in gates.items()}
    return Gates(by_name, float((states_LH - expected_LH).abs().max()))


def first_layer(layer: GatedLayer) -> GatedLayer:
    """The layer alone, where it is the lowest of several."""
    if layer.num_layers == 1:
        return layer
    kind = nn.LSTM if isinstance(layer, nn.LSTM) else nn.GRU
    alone: GatedLayer = kind(layer.input_size, layer.hidden_size, batch_first=True)
    alone.load_state_dict({name: value for name, value in layer.state_dict().items() if name.endswith("_l0")})
    return alone.eval()


def _weights(layer: GatedLayer) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights for the input and for the old state, then their biases."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return cast("tuple[Tensor, Tensor, Tensor, Tensor]", tuple(layer.get_parameter(name) for name in names))


def _lstm(layer: nn.LSTM, inputs_LE: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    size = layer.hidden_size
    weight_ih, weight_hh, bias_ih, bias_hh = _weights(layer)
    hidden_H, cell_H = torch.zeros(size), torch.zeros(size)
    steps, states = [], []
    for row in inputs_LE @ weight_ih.T + bias_ih + bias_hh:
        i, f, g, o = torch.split(row + weight_hh @ hidden_H, size)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        cell_H = f * cell_H + i * g.tanh()
        hidden_H = o * cell_H.tanh()
        steps.append(torch.stack([i, f, o]))
        states.append(hidden_H)
    gates = torch.stack(steps, dim=1)
    return dict(zip(("input", "forget", "output"), gates, strict=True)), torch.stack(states)


def _gru(layer: nn.GRU, inputs_LE: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    size = layer.hidden_size
    weight_ih, weight_hh, bias_ih, bias_hh = _weights(layer)
    hidden_H = torch.zeros(size)
    steps, states = [], []
    for row in inputs_LE @ weight_ih.T + bias_ih:
        r_in, z_in, n_in = torch.split(row, size)
        r_old, z_old, n_old = torch.split(weight_hh @ hidden_H + bias_hh, size)
        r, z = (r_in + r_old).sigmoid(), (z_in + z_old).sigmoid()
        hidden_H = (1 - z) * (n_in + r * n_old).tanh() + z * hidden_H
        steps.append(torch.stack([r, z]))
        states.append(hidden_H)
    gates = torch.stack(steps, dim=1)
    return dict(zip(("reset", "update"), gates, strict=True)), torch.stack(states)
