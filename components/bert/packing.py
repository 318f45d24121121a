"""Best-fit packing of instances of different lengths into rows of one length (Krell et al. 2021, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PackedRows:
    """Which instances share a row."""

    instances: NDArray[np.int64]
    """Shape [N]: instance numbers, row after row."""
    row_starts: NDArray[np.int64]
    """Shape [num_rows + 1], indices into ``instances``."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.row_starts) - 1

    def of_rows(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The instances in ``rows``, shape [P], and for each its place in ``rows``, shape [P]."""
        starts, counts = self.row_starts[rows], np.diff(self.row_starts)[rows]
        place = np.repeat(np.arange(len(rows)), counts)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.instances[np.repeat(starts, counts) + offset], place


def pack(lengths: NDArray[np.int64], row_length: int) -> PackedRows:
    """Put the longest instances first, each into the fullest row that still has room for it.

    Args:
        lengths: Shape [N], each in 1..row_length.
        row_length: Pieces of a row.

    Returns:
        Every instance in exactly one row; rows in the order in which they were opened.
    """
    rows: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(row_length + 1)]
    # Bit r is set while some row has r free pieces: the lowest set bit at or above a length is its best fit.
    free = 0
    for instance in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[instance])
        candidates = free >> length
        if candidates:
            room = length + (candidates & -candidates).bit_length() - 1
            row = with_room[room].pop()
            if not with_room[room]:
                free &= ~(1 << room)
            rows[row].append(instance)
        else:
            room, row = row_length, len(rows)
            rows.append([instance])
        if room > length:
            with_room[room - length].append(row)
            free |= 1 << (room - length)
    counts = [len(row) for row in rows]
    flat = np.array([instance for row in rows for instance in row], dtype=np.int64)
    return PackedRows(flat, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
