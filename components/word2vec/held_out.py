"""Negative-sampling loss on held-out text.

gensim's own training loss is a float32 sum that stops growing on large corpora, and it is taken while the vectors
change. This one looks at the same held-out positions with the same noise words after every epoch.

Legend of shape suffixes: P positions, C context slots, K noise words, D vector_size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.word2vec.data import Sentences

MAX_POSITIONS = 2000


@dataclass(frozen=True)
class HeldOutLoss:
    """Fixed held-out positions: input words, the word to predict, noise words; -1 marks an empty slot."""

    inputs_PC: NDArray[np.int64]
    targets_P: NDArray[np.int64]
    noise_PK: NDArray[np.int64]

    @classmethod
    def draw(
        cls,
        sentences: Sentences,
        vocabulary: dict[str, int],
        *,
        window: int,
        negative: int,
        ns_exponent: float,
        sg: int,
        seed: int,
    ) -> HeldOutLoss | None:
        """Choose the positions; None when the held-out split has no two known words in a row.

        Args:
            sentences: Held-out sentences; the first positions are taken.
            vocabulary: Words with counts, in the order of the vectors.
            window: Words on each side.
            negative: Noise words per position.
            ns_exponent: Noise words are drawn by count to this power.
            sg: 0 predicts a word from its window (CBOW); 1 a word of the window from the word (skip-gram).
            seed: Draws the noise and skip-gram's window word.
        """
        generator = np.random.default_rng(seed)
        inputs, targets = [], []
        for centre, context in _positions(sentences, vocabulary, window):
            if sg:
                inputs.append([centre])
                targets.append(int(generator.choice(context)))
            else:
                inputs.append(context + [-1] * (2 * window - len(context)))
                targets.append(centre)
            if len(targets) == MAX_POSITIONS:
                break
        if not targets:
            return None
        weights = np.array(list(vocabulary.values()), dtype=np.float64) ** ns_exponent
        noise = generator.choice(len(weights), size=(len(targets), negative), p=weights / weights.sum())
        return cls(np.array(inputs), np.array(targets), noise)

    def of(self, input_vectors: NDArray[np.float32], output_vectors: NDArray[np.float32]) -> float:
        """Mean of ``-log s(u_t h) - sum log s(-u_n h)`` over the positions, in nats (Mikolov et al. 2013b, eq. 4).

        Args:
            input_vectors: Shape [V, D]; h is their mean over a position's inputs.
            output_vectors: Shape [V, D]; u.
        """
        used_PC = self.inputs_PC >= 0
        hidden_PD = np.where(used_PC[..., None], input_vectors[self.inputs_PC], 0).sum(axis=1)
        hidden_PD = hidden_PD / used_PC.sum(axis=1, keepdims=True)
        true_P = np.einsum("pd,pd->p", hidden_PD, output_vectors[self.targets_P])
        noise_PK = np.einsum("pd,pkd->pk", hidden_PD, output_vectors[self.noise_PK])
        return float(np.mean(np.logaddexp(0, -true_P) + np.logaddexp(0, noise_PK).sum(axis=1)))


def _positions(sentences: Sentences, vocabulary: dict[str, int], window: int) -> Iterator[tuple[int, list[int]]]:
    index = {word: row for row, word in enumerate(vocabulary)}
    for words in sentences:
        rows = [index[word] for word in words if word in index]
        for place, centre in enumerate(rows):
            context = rows[max(0, place - window) : place] + rows[place + 1 : place + 1 + window]
            if context:
                yield centre, context
