"""Exact and near duplicates in bounded memory.

Both indexes live in one SQLite file with a fixed cache, so memory does not grow with the corpus; the file takes about
0.8 KB a document and is deleted at the end. Near duplicates are MinHash signatures (Broder 1997) over character
5-grams, found through locality-sensitive hashing in bands (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets,
section 3.4) and confirmed by the signatures' estimate of the Jaccard similarity.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

NUM_PERMUTATIONS = 128
SHINGLE_CHARS = 5
MAX_CANDIDATES = 64
CACHE_KB = 16_384
_BATCH_SHINGLES = 4096
_FALSE_NEGATIVE_WEIGHT = 0.9
"""Candidates are confirmed by their signatures, so bands are chosen to miss few rather than to accept few."""


def compact(text: str) -> str:
    """A text without its white space: what duplicates are compared by."""
    return "".join(text.split())


def text_digest(text: str) -> int:
    """64-bit digest of a text, as SQLite's signed integer."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def _shingle_hashes(text: str) -> NDArray[np.uint32]:
    """32-bit hashes of the distinct character 5-grams; a shorter text is one shingle."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    width = min(SHINGLE_CHARS, len(codes))
    count = len(codes) - width + 1
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(width):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + codes[offset : offset + count]
    hashes ^= hashes >> np.uint64(31)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    return np.unique((hashes >> np.uint64(32)).astype(np.uint32))


@cache
def _permutations() -> NDArray[np.uint32]:
    permutations: NDArray[np.uint32] = MinHash(num_perm=NUM_PERMUTATIONS, seed=1, scheme="affine32").permutations
    return permutations


def minhash_signature(text: str) -> NDArray[np.uint32]:
    """MinHash signature of a text without white space.

    Args:
        text: At least one character.

    Returns:
        Shape [128], uint32; the share of equal entries of two signatures estimates their Jaccard similarity.
    """
    minhash = MinHash(num_perm=NUM_PERMUTATIONS, seed=1, hashfunc=int, permutations=_permutations(), scheme="affine32")
    shingles = _shingle_hashes(text)
    # Batches bound the memory of the [shingles, permutations] product for long texts.
    for start in range(0, len(shingles), _BATCH_SHINGLES):
        minhash.update_batch(shingles[start : start + _BATCH_SHINGLES].tolist())
    signature: NDArray[np.uint32] = minhash.hashvalues
    return signature


@contextmanager
def duplicate_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A scratch SQLite database with a bounded cache, deleted at the end."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()
        path.unlink(missing_ok=True)


class ExactIndex:
    """Digests of the texts seen so far, each with the id of the first document that had it."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._table = f"{name}_exact"
        connection.execute(f"CREATE TABLE {self._table} (digest INTEGER PRIMARY KEY, id TEXT) WITHOUT ROWID")

    def find(self, text: str) -> str | None:
        """Id of the text that is the same, or None."""
        query = f"SELECT id FROM {self._table} WHERE digest = ?"  # noqa: S608
        row = self._connection.execute(query, (text_digest(text),)).fetchone()
        return None if row is None else str(row[0])

    def add(self, text: str, text_id: str) -> None:
        """Remember a text; the first id stays."""
        self._connection.execute(
            f"INSERT OR IGNORE INTO {self._table} VALUES (?, ?)",  # noqa: S608
            (text_digest(text), text_id),
        )


class NearIndex:
    """Signatures seen so far, found through their bands."""

    def __init__(self, connection: sqlite3.Connection, name: str, threshold: float) -> None:
        self._connection = connection
        self._threshold = threshold
        self._bands, self._signatures = f"{name}_bands", f"{name}_signatures"
        self._num_bands, self._rows = _banding(threshold)
        connection.execute(
            f"CREATE TABLE {self._bands} (key INTEGER, document INTEGER, PRIMARY KEY (key, document)) WITHOUT ROWID"
        )
        connection.execute(f"CREATE TABLE {self._signatures} (document INTEGER PRIMARY KEY, id TEXT, signature BLOB)")
        self._size = 0

    def find(self, signature: NDArray[np.uint32]) -> tuple[str, float] | None:
        """Id and estimated similarity of the most similar text at or above the threshold, or None."""
        if self._size == 0:
            return None
        keys = self._keys(signature)
        marks = ",".join("?" * len(keys))
        rows = self._connection.execute(
            f"SELECT id, signature FROM {self._signatures} WHERE document IN (SELECT DISTINCT document FROM "  # noqa: S608
            f"{self._bands} WHERE key IN ({marks}) ORDER BY document LIMIT {MAX_CANDIDATES})",
            keys,
        ).fetchall()
        best: tuple[str, float] | None = None
        for text_id, blob in rows:
            similarity = float(np.mean(np.frombuffer(blob, dtype=np.uint32) == signature))
            if similarity >= self._threshold and (best is None or similarity > best[1]):
                best = (text_id, similarity)
        return best

    def add(self, signature: NDArray[np.uint32], text_id: str) -> None:
        """Remember a signature."""
        document, self._size = self._size, self._size + 1
        self._connection.execute(
            f"INSERT INTO {self._signatures} VALUES (?, ?, ?)",  # noqa: S608
            (document, text_id, signature.tobytes()),
        )
        self._connection.executemany(
            f"INSERT OR IGNORE INTO {self._bands} VALUES (?, ?)",  # noqa: S608
            [(key, document) for key in self._keys(signature)],
        )

    def _keys(self, signature: NDArray[np.uint32]) -> list[int]:
        """One 64-bit key a band."""
        keys = []
        for band in range(self._num_bands):
            values = signature[band * self._rows : (band + 1) * self._rows].tobytes()
            digest = hashlib.blake2b(values, digest_size=8, salt=band.to_bytes(2, "big")).digest()
            keys.append(int.from_bytes(digest, "big", signed=True))
        return keys


@cache
def _banding(threshold: float) -> tuple[int, int]:
    weights = (1 - _FALSE_NEGATIVE_WEIGHT, _FALSE_NEGATIVE_WEIGHT)
    # A threshold of exactly 1 leaves the optimiser an empty interval.
    lsh = MinHashLSH(threshold=min(threshold, 0.99), num_perm=NUM_PERMUTATIONS, weights=weights)
    return int(lsh.b), int(lsh.r)
