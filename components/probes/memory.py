"""How memory grows with the vocabulary: one-hot vectors against learned ones, measured on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import identity

_STEPS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)


@dataclass(frozen=True)
class Memory:
    """Bytes that the vectors of all words take."""

    num_words: int
    one_hot_dense: int
    """A number for every word in every vector."""
    one_hot_sparse: int
    """Only the ones, with their places."""
    learned: int | None
    """The encoder's own table, cut after ``num_words``; None for a bag of words, which has none."""


def memory_growth(vocab_size: int, table_VD: NDArray[np.float32] | None) -> list[Memory]:
    """Memory at rising sizes of the vocabulary, up to the encoder's own.

    Args:
        vocab_size: Words of the encoder.
        table_VD: Its learned vectors, if any.
    """
    sizes = [*(size for size in _STEPS if size < vocab_size), vocab_size]
    return [_measure(size, table_VD) for size in sizes]


def _measure(size: int, table_VD: NDArray[np.float32] | None) -> Memory:
    ones = identity(size, dtype=np.float32, format="csr")
    sparse = ones.data.nbytes + ones.indices.nbytes + ones.indptr.nbytes
    dense = size * size * np.dtype(np.float32).itemsize
    return Memory(size, dense, sparse, None if table_VD is None else table_VD[:size].nbytes)
