"""Dynamic masking for masked language modelling (Devlin et al. 2019, section 3.1), over whole batches at once.

Shape legend: R rows, S pieces of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.formats import IGNORE_INDEX

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Of the pieces to predict, 80 % become [MASK], 10 % a random piece, and the rest stay as they are."""


@dataclass(frozen=True)
class Masked:
    """Model input and what to predict."""

    input_ids: NDArray[np.int64]
    """Shape [R, S]."""
    labels: NDArray[np.int64]
    """Shape [R, S]: the original piece where it is to be predicted, -100 elsewhere."""


def mask_tokens(
    input_ids: NDArray[np.int64],
    units: NDArray[np.int64],
    instances: NDArray[np.int64],
    *,
    mlm_probability: float,
    mask_token_id: int,
    replacements: NDArray[np.int64],
    generator: np.random.Generator,
) -> Masked:
    """Choose each unit with ``mlm_probability``; every instance has at least one, so that no loss is empty.

    Args:
        input_ids: Shape [R, S].
        units: Shape [R, S]: pieces with the same number are masked together (a word, or the piece alone); -1 where
            nothing may be masked (special tokens, padding). Numbers are 0..U-1 over the whole batch.
        instances: Shape [R, S]: number of the instance a piece belongs to, 0..N-1; read where ``units`` >= 0.
        mlm_probability: Chance of a unit, in (0, 1).
        mask_token_id: Id of [MASK].
        replacements: Ids to draw random pieces from: the vocabulary without special tokens.
        generator: Source of all random numbers.
    """
    maskable = units >= 0
    num_units = int(units.max()) + 1 if maskable.any() else 0
    draws = generator.random(num_units)
    unit_instance = np.zeros(num_units, dtype=np.int64)
    unit_instance[units[maskable]] = instances[maskable]
    chosen = draws < mlm_probability
    chosen[_lowest_per_instance(draws, unit_instance)] = True
    selected = np.zeros(units.shape, dtype=np.bool_)
    selected[maskable] = chosen[units[maskable]]
    labels = np.where(selected, input_ids, IGNORE_INDEX)
    fate = generator.random(units.shape)
    random_ids = replacements[generator.integers(len(replacements), size=units.shape)]
    masked_ids = np.where(selected & (fate < MASK_SHARE), mask_token_id, input_ids)
    replaced = selected & (fate >= MASK_SHARE) & (fate < MASK_SHARE + RANDOM_SHARE)
    return Masked(np.where(replaced, random_ids, masked_ids), labels)


def _lowest_per_instance(draws: NDArray[np.float64], unit_instance: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.lexsort((draws, unit_instance))
    first = np.diff(unit_instance[order], prepend=-1) != 0
    lowest: NDArray[np.int64] = order[first]
    return lowest
