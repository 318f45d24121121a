"""Near duplicates: texts as sets of shingles, found by MinHash LSH and confirmed by their exact Jaccard similarity.

MinHash: Broder 1997, "On the resemblance and containment of documents". LSH banding: Leskovec, Rajaraman and Ullman,
"Mining of Massive Datasets", section 3.4. Signatures and index come from the datasketch library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"[\W_]+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MINIMUM_RECALL = 0.99
"""Chance that a pair exactly at the threshold becomes a candidate; more similar pairs are found more surely."""


def shingle_hashes(text: str, unit: Literal["characters", "words"], size: int) -> NDArray[np.uint64]:
    """The distinct shingles of a text as 64-bit hashes.

    Case, white space and punctuation do not count, so that a review with one more exclamation mark is the same; a text
    of nothing else is taken as it is. A text shorter than ``size`` units is one shingle.

    Args:
        text: Normalised text.
        unit: What is counted: characters, or words (runs of letters and digits).
        size: Units per shingle, at least 1.

    Returns:
        Sorted distinct hashes, shape [S], uint64.
    """
    folded = text.casefold()
    if unit == "words":
        units = np.array([_word_hash(word) for word in _WORD.findall(folded) or folded.split()], dtype=np.uint64)
    else:
        kept = _NO_WORD.sub("", folded) or "".join(folded.split())
        units = np.frombuffer(kept.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    num_shingles = max(1, len(units) - size + 1)
    hashes = np.zeros(num_shingles, dtype=np.uint64)
    for offset in range(min(size, len(units))):
        hashes = (hashes ^ units[offset : offset + num_shingles]) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return np.unique(hashes)


def _word_hash(word: str) -> int:
    value = 0
    for character in word:
        value = (value * 1_000_003 + ord(character) + 1) & 0xFFFF_FFFF_FFFF_FFFF
    return value


def jaccard(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> float:
    """Size of the intersection over size of the union of two sorted sets without repetition, 0 to 1."""
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    places = np.searchsorted(large, small)
    shared = int((large[np.minimum(places, len(large) - 1)] == small).sum())
    return shared / (len(left) + len(right) - shared)


def choose_bands(threshold: float, num_perm: int) -> tuple[int, int]:
    """Bands and rows per band: the fewest candidates that still find a pair at the threshold with the wanted recall.

    A pair of similarity s becomes a candidate with probability 1 - (1 - s^r)^b for b bands of r rows.
    """
    rows = 1
    for candidate in range(1, num_perm // 2 + 1):  # the index wants at least two bands
        if 1 - (1 - threshold**candidate) ** (num_perm // candidate) >= MINIMUM_RECALL:
            rows = candidate
    return num_perm // rows, rows


def candidates(
    shingles: Sequence[NDArray[np.uint64]], *, threshold: float, num_perm: int
) -> Iterator[tuple[int, list[int]]]:
    """For every text the texts that share an LSH bucket with it, itself excluded, in ascending order.

    Args:
        shingles: One hash set per text.
        threshold: Jaccard similarity that must be found, above 0 to 1.
        num_perm: Hash functions per signature.
    """
    bands, rows = choose_bands(threshold, num_perm)
    index = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    sets = (values.tolist() for values in shingles)
    signatures = list(MinHash.generator(sets, num_perm=bands * rows, scheme="affine64", hashfunc=int, seed=1))
    for number, signature in enumerate(signatures):
        index.insert(number, signature, check_duplication=False)
    for number, signature in enumerate(signatures):
        yield number, sorted(other for other in index.query(signature) if other != number)
