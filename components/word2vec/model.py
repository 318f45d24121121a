"""Word2Vec training with gensim: vocabulary, memory check, epochs."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec

from components.errors import ConfigError, InputError
from components.word2vec.config import Word2VecConfig
from components.word2vec.data import Census, Sentences

DEFAULT_ALPHA = {0: 0.05, 1: 0.025}
"""First learning rate by sg, as in the original word2vec tool."""


def stable_hash(word: str) -> int:
    """CRC-32 of a word: unlike ``hash``, the same in every process."""
    return zlib.crc32(word.encode())


def select_vocabulary(counts: Counter[str], min_count: int, *, source: Path) -> dict[str, int]:
    """Words with at least ``min_count`` occurrences, most frequent first, ties in code point order.

    Raises:
        InputError: No word is left; names the highest count.
    """
    kept = {word: count for word, count in counts.items() if count >= min_count}
    if not kept:
        word, highest = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        raise InputError(
            f"train_word2vec: min_count={min_count} keeps 0 of {len(counts)} types; "
            f"the highest count is {highest}" + (f" ({word!r})" if word else ""),
            file=source,
            remedy=f"lower min_count to {highest} or less, or add text" if highest else "add text",
        )
    return dict(sorted(kept.items(), key=lambda item: (-item[1], item[0])))


def check_memory(num_types: int, vector_size: int, max_memory_mib: int) -> float:
    """Estimate the two weight tables (input and output vectors, float32) before they are allocated.

    Returns:
        The estimate in MiB.

    Raises:
        ConfigError: The estimate exceeds the limit.
    """
    needed_mib = num_types * vector_size * 4 * 2 / 2**20
    if needed_mib > max_memory_mib:
        raise ConfigError(
            f"train_word2vec needs about {needed_mib:,.0f} MiB for {num_types:,} types x vector_size {vector_size} "
            f"x 4 bytes x 2 tables; max_memory_mib is {max_memory_mib:,}. "
            "Remedy: raise min_count, lower vector_size, or raise max_memory_mib."
        )
    return needed_mib


@dataclass(frozen=True)
class TrainedVectors:
    """A trained gensim model and how long training took."""

    model: Any
    seconds: float
    words_per_second: float
    """Running words of all epochs, before frequent ones are sampled away, per wall-clock second."""


class _EpochEnd(CallbackAny2Vec):  # type: ignore[misc]
    def __init__(self, report: Callable[[Any, int], None]) -> None:
        self._report = report
        self._epoch = 0

    def on_epoch_end(self, model: Any) -> None:
        """Report the number of finished epochs."""
        self._epoch += 1
        self._report(model, self._epoch)


def fit(
    sentences: Sentences,
    census: Census,
    vocabulary: dict[str, int],
    config: Word2VecConfig,
    *,
    on_epoch: Callable[[Any, int], None],
) -> TrainedVectors:
    """Train vectors by negative sampling (Mikolov et al. 2013b, section 2.2).

    Args:
        sentences: Iterated once per epoch.
        census: Counts of the same sentences.
        vocabulary: Kept words with their counts, most frequent first.
        config: gensim's settings.
        on_epoch: Called with the model and the number of finished epochs.
    """
    own = {"alpha", "min_count", "epochs", "units", "oov_policy", "max_memory_mib"}
    options = {**config.model_dump(exclude=own), "alpha": config.alpha or DEFAULT_ALPHA[config.sg]}
    # The vocabulary comes sorted with ties in a fixed order; numpy's argsort, which gensim would use, breaks ties
    # differently on different processors.
    model = Word2Vec(min_count=1, sorted_vocab=0, hashfxn=stable_hash, **options)
    model.build_vocab_from_freq(vocabulary, corpus_count=census.num_sentences)
    started = time.perf_counter()
    _, num_words = model.train(
        corpus_iterable=sentences,
        total_examples=census.num_sentences,
        epochs=config.epochs,
        callbacks=[_EpochEnd(on_epoch)],
    )
    seconds = time.perf_counter() - started
    return TrainedVectors(model, seconds, num_words / seconds)
