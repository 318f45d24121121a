"""How much a position still moves the answer: the norm of the gradient against the distance.

Vanishing gradients (Bengio et al. 1994; Hochreiter 1991) are the reason why a plain recurrent network learns nothing
across a long distance and the motive of the LSTM's additive cell (Hochreiter & Schmidhuber 1997, section 3).

Legend of shape suffixes: B batch, L length, E width of the input.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SMALLEST = 1e-30
"""Norms below this are drawn and written as this: float32 gradients underflow to zero."""


def gradient_norms(read: Callable[[Tensor], Tensor], inputs_BLE: Tensor) -> NDArray[np.float64]:
    """Mean norm of the gradient of a read-out with respect to each input vector.

    The read-out is the sum of the numbers that ``read`` gives, each with a fixed random sign, so that no direction is
    favoured and logits that share a softmax do not cancel out.

    Args:
        read: Maps embedded sequences to numbers, a row per sequence.
        inputs_BLE: Embedded sequences, float.

    Returns:
        Shape [L]; entry d belongs to the input d positions before the last one.
    """
    inputs_BLE = inputs_BLE.detach().clone().requires_grad_()
    numbers = read(inputs_BLE)
    signs = torch.randint(2, numbers.shape, generator=torch.Generator().manual_seed(0)).to(numbers) * 2 - 1
    (gradient_BLE,) = torch.autograd.grad((numbers * signs).sum(), inputs_BLE)
    norms_L = gradient_BLE.double().norm(dim=-1).mean(dim=0).flip(0)
    norms: NDArray[np.float64] = np.maximum(norms_L.numpy(), SMALLEST)
    return norms
