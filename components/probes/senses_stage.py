"""The probe "one word, two senses": vectors of ambiguous words in context, layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.contextual import ContextualEncoder, load_contextual
from components.errors import ConfigError
from components.probes.intervals import Share
from components.probes.layers import layer_index
from components.probes.meaning_config import SenseProbeConfig
from components.probes.probe_file import write_findings, write_not_meaningful
from components.probes.senses import LEAST_CONTEXTS, Credits, chance_level, sense_credits, summarize
from components.probes.senses_report import SenseLayer, describe, draw, title_of
from components.probes.word_files import SenseContext, read_contexts, shipped_list

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class _Selection:
    """The contexts that can be measured, and how many were left out for which reason."""

    contexts: list[SenseContext]
    dropped: dict[str, int]


def probe_senses(
    config: SenseProbeConfig, *, encoder: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Measure how well an encoder's vectors of an ambiguous word tell its senses apart, in every layer.

    Vectors in context can separate senses (Reif et al. 2019, section 4; Wiedemann et al. 2019). A static vector cannot:
    a word has one, so that every decision is a tie and accuracy is exactly chance.

    Args:
        config: Contexts, headline layer and resampling.
        encoder: Encoder artifact of any family.
        out_dir: Gets ``probe.json``, ``senses.png`` (accuracy by layer) and ``contexts.png`` (contexts in the plane).
        log_metrics: Receives ``progress``.

    Returns:
        ``sense_accuracy`` at the headline layer with ``_low``, ``_high`` and ``sense_chance``, and what was left out;
        no accuracy where the encoder knows too few of the words.

    Raises:
        ConfigError: The headline layer does not exist, no list is given, or a picture word is not in the lists.
        InputError: A list cannot be used.
    """
    selection = _select(_read(config), config.max_contexts)
    contexts = selection.contexts
    _check_picture_words(config, contexts)
    loaded = load_contextual(encoder)
    headline = layer_index(config.layer, loaded.layers)
    vectors = _vectors(loaded, contexts, config.batch_size)
    log_metrics({"progress": 0.8})
    layers = [_measure(name, rows, contexts, config) for name, rows in zip(loaded.layers, vectors, strict=True)]
    metrics = _counts(contexts, selection.dropped, layers[headline])
    main = layers[headline].accuracy
    if main is None:
        _write_unknown(config, loaded.family, out_dir)
        return metrics
    metrics |= _accuracies(main, layers[headline])
    figures = draw(config, layers, headline, contexts, vectors[headline], out_dir)
    findings = describe(config, loaded.family, layers, headline, metrics, figures)
    return write_findings(
        out_dir, "senses", loaded.family, title_of(config.language), findings, language=config.language
    )


def _read(config: SenseProbeConfig) -> list[SenseContext]:
    files = [Path(name) for name in config.contexts]
    shipped = [shipped_list(f"senses_{config.language}.tsv")] if config.shipped_lists else []
    if not files and not shipped:
        raise ConfigError("the probe has no contexts. Remedy: set shipped_lists: true, or name files in contexts.")
    return [context for file in [*shipped, *files] for context in read_contexts(file, config.language)]


def _select(contexts: Sequence[SenseContext], max_contexts: int) -> _Selection:
    """At most so many contexts a sense, and only words with two senses of enough contexts."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for context in contexts:
        seen[context.word, context.sense] += 1
        if seen[context.word, context.sense] <= max_contexts:
            kept.append(context)
    common = [context for context in kept if seen[context.word, context.sense] >= LEAST_CONTEXTS]
    pairs = {(context.word, context.sense) for context in common}
    num_senses = Counter(word for word, _ in pairs)
    usable = [context for context in common if num_senses[context.word] > 1]
    dropped = {
        "limit": len(contexts) - len(kept),
        "rare_sense": len(kept) - len(common),
        "one_sense": len(common) - len(usable),
    }
    if not usable:
        raise ConfigError(
            f"no word of the lists has two senses with {LEAST_CONTEXTS} contexts each. Remedy: add contexts."
        )
    return _Selection(usable, dropped)


def _check_picture_words(config: SenseProbeConfig, contexts: Sequence[SenseContext]) -> None:
    words = dict.fromkeys(context.word for context in contexts)
    if missing := [word for word in config.picture_words if word not in words]:
        raise ConfigError(
            f"picture_words {', '.join(missing)}: not in the lists with two senses of {LEAST_CONTEXTS} contexts. "
            f"Remedy: name some of {', '.join(list(words)[:10])}."
        )


def _vectors(loaded: ContextualEncoder, contexts: Sequence[SenseContext], batch_size: int) -> list[Vectors]:
    """Vectors of all contexts by layer; in layer 0 the word's own, however a sentence was cut into words."""
    words = list(dict.fromkeys(context.word for context in contexts))
    place = {word: row for row, word in enumerate(words)}
    static = loaded.word_vectors(words, batch_size=batch_size)[0][[place[context.word] for context in contexts]]
    if len(loaded.layers) == 1:
        return [static]
    texts, spans = [context.text for context in contexts], [context.span for context in contexts]
    return [static, *loaded.span_vectors(texts, spans, batch_size=batch_size)[1:]]


def _measure(layer: str, vectors: Vectors, contexts: Sequence[SenseContext], config: SenseProbeConfig) -> SenseLayer:
    finite = np.isfinite(vectors.sum(axis=1))
    by_word: dict[str, list[int]] = {}
    for row, context in enumerate(contexts):
        if finite[row]:
            by_word.setdefault(context.word, []).append(row)
    credits = {}
    for word, rows in by_word.items():
        counts = Counter(contexts[row].sense for row in rows)
        enough = [row for row in rows if counts[contexts[row].sense] >= LEAST_CONTEXTS]
        senses = tuple(contexts[row].sense for row in enough)
        if len(set(senses)) > 1:
            credits[word] = Credits(senses, sense_credits(vectors[enough], senses))
    accuracy = summarize(credits, num_resamples=config.num_resamples, seed=config.seed) if credits else None
    return SenseLayer(layer, credits, accuracy)


def _counts(contexts: Sequence[SenseContext], dropped: dict[str, int], main: SenseLayer) -> Metrics:
    """Contexts read = measured + left out, by reason."""
    measured = sum(len(item.senses) for item in main.credits.values())
    return {
        "sense_num_words": float(len(main.credits)),
        "sense_num_contexts": float(measured),
        "sense_num_unknown_contexts": float(len(contexts) - measured),
        **{f"sense_num_dropped_{reason}": float(count) for reason, count in dropped.items()},
    }


def _accuracies(main: Share, layer: SenseLayer) -> Metrics:
    return {
        "sense_accuracy": main.value,
        "sense_accuracy_low": main.low,
        "sense_accuracy_high": main.high,
        "sense_chance": chance_level(item.senses for item in layer.credits.values()),
    }


def _write_unknown(config: SenseProbeConfig, family: str, out_dir: Path) -> None:
    write_not_meaningful(
        out_dir, "senses", family, title_of(config.language), language=config.language,
        en="The encoder has no vector for any of the words: its vocabulary is of another language or domain.",
        zh="该编码器对这些词都没有向量：它的词表属于另一种语言或另一领域。",
    )  # fmt: skip
