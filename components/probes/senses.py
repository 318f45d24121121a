"""Whether vectors tell the senses of a word apart: leave-one-out nearest centroid, with ties shared.

Each context in turn goes to the sense whose other contexts' mean is nearest, on vectors of length one. Two details keep
chance where it belongs:

- Leaving a context out shortens its own sense's list, and a mean of fewer vectors lies farther from everything, so that
  plain distances put vectors of pure noise below chance, near 0 in many dimensions. The squared length of a mean is
  therefore estimated without bias, from the products of distinct contexts.
- Equal vectors tie with every sense, and a tie is shared between the senses: a static vector gets 1/K of K senses
  exactly, not all or nothing.

Legend of shape suffixes: N contexts of one word, K its senses, D numbers per vector, R resamples, W words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.probes.intervals import Share, binomial_share, percentiles

TIE = 1e-9
"""Scores of vectors of length one that differ by less are the same."""
LEAST_CONTEXTS = 3
"""Contexts a sense needs: with one left out, two give a mean and the products of distinct contexts."""
LEAST_CLUSTERS = 10
"""Words from which on whole words are resampled; fewer say nothing about other words."""


@dataclass(frozen=True)
class Credits:
    """How right the decisions about one word were."""

    senses: tuple[str, ...]
    """The sense of each of N contexts."""
    values_N: NDArray[np.float64]


def sense_credits(vectors_ND: NDArray[np.float32], senses: Sequence[str]) -> NDArray[np.float64]:
    """How right the leave-one-out nearest centroid is on each context of one word.

    Args:
        vectors_ND: Vectors, finite.
        senses: Sense of each; every sense at least ``LEAST_CONTEXTS`` times.

    Returns:
        Shape [N]: 1 for right, 0 for wrong, 1/m for a tie of m senses that the right one is among.
    """
    units = vectors_ND.astype(np.float64)
    units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    products_NN = units @ units.T
    names = sorted(set(senses))
    member_NK = np.array([[sense == name for name in names] for sense in senses])
    scores_NK = np.stack([_scores(products_NN, member_NK[:, number]) for number in range(len(names))], axis=1)
    best_NK = scores_NK >= scores_NK.max(axis=1, keepdims=True) - TIE
    return np.asarray((best_NK & member_NK).sum(axis=1) / best_NK.sum(axis=1), dtype=np.float64)


def _scores(products_NN: NDArray[np.float64], member_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For each context x the score x·c − |c|²/2 of one sense with mean c over the contexts other than x.

    |c|² is the mean product of distinct contexts of the sense, which noise does not lengthen.
    """
    own = np.diag(products_NN)
    without_own = products_NN - np.diag(own)
    towards_N = without_own[:, member_N].sum(axis=1)
    left_N = member_N.sum() - member_N
    among = without_own[np.ix_(member_N, member_N)].sum()
    among_N = among - np.where(member_N, 2 * towards_N, 0.0)
    return np.asarray(towards_N / left_N - among_N / (left_N * (left_N - 1)) / 2)


def chance_level(senses_by_word: Iterable[Sequence[str]]) -> float:
    """What guessing gives: the mean over words of one in the number of the word's senses."""
    return float(np.mean([1 / len(set(senses)) for senses in senses_by_word]))


def summarize(credits: Mapping[str, Credits], *, num_resamples: int, seed: int) -> Share:
    """Accuracy over words: in each word the mean over its senses of the share right, so that no frequent sense rules.

    The interval is a bootstrap: over words, each with all its contexts, where there are at least ``LEAST_CLUSTERS``
    (Field & Welsh 2007); else over the contexts of each sense. Where resampling never changes the value, it is
    Wilson's interval (1927) for the number of contexts.

    Args:
        credits: For each of W words its contexts' credits.
        num_resamples: R.
        seed: Seed of the draws.
    """
    values_W = np.array([word_accuracy(item) for item in credits.values()])
    num_items = sum(len(item.senses) for item in credits.values())
    generator = np.random.default_rng(seed)
    if len(credits) >= LEAST_CLUSTERS:
        drawn_R = values_W[generator.integers(0, len(values_W), (num_resamples, len(values_W)))].mean(axis=1)
    else:
        drawn_R = np.mean([_resampled(item, num_resamples, generator) for item in credits.values()], axis=0)
    value = float(values_W.mean())
    low, high = percentiles(drawn_R)
    if high - low < TIE:
        return binomial_share(value * num_items, num_items)
    return Share(value, min(low, value), max(high, value), num_items)


def two_dimensions(vectors_ND: NDArray[np.float32]) -> NDArray[np.float64]:
    """The first two principal components of the vectors, shape [N, 2]; signs are fixed, so that a picture is too."""
    centred = vectors_ND.astype(np.float64) - vectors_ND.mean(axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(centred), 2))
    count = min(2, len(sizes))
    points[:, :count] = left[:, :count] * sizes[:count]
    # Equal vectors differ by rounding only; that is no direction.
    points[:, np.abs(points).max(axis=0) < TIE] = 0
    signs = np.sign(points[np.abs(points).round(6).argmax(axis=0), [0, 1]])
    return np.asarray(points * np.where(signs == 0, 1, signs))


def word_accuracy(item: Credits) -> float:
    """The mean over a word's senses of the share right."""
    return float(np.mean([row.mean() for row in _by_sense(item)]))


def _resampled(item: Credits, num_resamples: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """The word's accuracy in each resample of the contexts of each sense, shape [R]."""
    drawn = [row[generator.integers(0, len(row), (num_resamples, len(row)))].mean(axis=1) for row in _by_sense(item)]
    return np.asarray(np.mean(drawn, axis=0))


def _by_sense(item: Credits) -> list[NDArray[np.float64]]:
    names = np.asarray(item.senses)
    return [item.values_N[names == sense] for sense in sorted(set(item.senses))]
