"""Random draws that follow a seed and a step."""

from __future__ import annotations

import numpy as np
import torch


def generator_at(seed: int, step: int) -> torch.Generator:
    """A generator of its own for every (seed, step).

    torch's generator on the CPU starts from the lower 32 bits of a seed alone, so both are hashed into these.
    """
    state = np.random.SeedSequence((seed, step)).generate_state(1)
    return torch.Generator().manual_seed(int(state[0]))
