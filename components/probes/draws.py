"""Random draws that follow a seed and a step."""

from __future__ import annotations

import torch

from components.training import step_seed


def generator_at(seed: int, step: int) -> torch.Generator:
    """A generator of its own for every (seed, step).

    torch's generator on the CPU starts from the lower 32 bits of a seed alone, into which both are hashed.
    """
    return torch.Generator().manual_seed(step_seed(seed, step))
