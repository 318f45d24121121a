"""The probe "similarity": do the vectors of similar words lie near each other?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.contextual import BagContexts, ContextualEncoder, load_contextual
from components.probes.layers import layer_index
from components.probes.meaning_config import SimilarityProbeConfig
from components.probes.memory import memory_growth
from components.probes.probe_file import write_findings, write_not_meaningful
from components.probes.similarity import LEAST_PAIRS
from components.probes.similarity_measures import (
    KnownWords,
    LayerSimilarity,
    angles,
    know_words,
    measure_layer,
    neighbours,
    read_lists,
    vocabulary_analogies,
)
from components.probes.similarity_report import SimilarityResults, describe, draw, title_of


def probe_similarity(
    config: SimilarityProbeConfig, *, encoder: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Measure what an encoder's vectors of single words say about similarity.

    One-hot vectors of different words are at right angles, so that nothing is similar to anything, and their memory
    grows with the square of the vocabulary. Learned vectors follow the company a word keeps (Firth 1957; Mikolov et
    al. 2013): their cosines are compared with people's scores, with triples, and with analogies.

    Args:
        config: Word lists and headline layer.
        encoder: Encoder artifact of any family.
        out_dir: Gets ``probe.json``, ``memory.png`` and, where a list could be ranked, ``spearman.png``.
        log_metrics: Receives ``progress``.

    Returns:
        At the headline layer ``similarity_spearman`` (the mean over the lists), ``similarity_triple_accuracy`` and
        ``similarity_analogy_accuracy`` with ``_low``, ``_high`` and ``_chance``; a number that the encoder cannot have
        is absent. Also how many words of the lists it knows whole, in parts or not at all.

    Raises:
        ConfigError: The headline layer does not exist, or there is no list.
        InputError: A list cannot be used.
    """
    lists = read_lists(config)
    loaded = load_contextual(encoder)
    headline = layer_index(config.layer, loaded.layers)
    known = know_words(loaded, lists.words(), config.batch_size)
    log_metrics({"progress": 0.3})
    metrics = _coverage(known)
    if metrics["similarity_num_words"] - metrics["similarity_num_unknown_words"] < LEAST_PAIRS:
        _write_unknown(config, loaded.family, out_dir)
        return metrics
    layers = [measure_layer(name, number, known, lists) for number, name in enumerate(loaded.layers)]
    log_metrics({"progress": 0.7})
    results = SimilarityResults(
        loaded.family, layers, headline, vocabulary_analogies(loaded, lists.analogies), angles(loaded),
        memory_growth(_vocab_size(loaded), None if loaded.table is None else loaded.table.vectors_VD),
        neighbours(loaded, config, lists), Counter(known.coverage),
    )  # fmt: skip
    metrics |= _metrics(results, layers[headline])
    figures = draw(config.language, results, out_dir)
    findings = describe(config.language, results, metrics, figures)
    return write_findings(
        out_dir, "similarity", loaded.family, title_of(config.language), findings, language=config.language
    )


def _vocab_size(loaded: ContextualEncoder) -> int:
    if loaded.table is not None:
        return len(loaded.table.words)
    assert isinstance(loaded, BagContexts)
    return len(loaded.bag.features)


def _coverage(known: KnownWords) -> Metrics:
    counts = Counter(known.coverage)
    return {
        "similarity_num_words": float(len(known.coverage)),
        **{f"similarity_num_{kind}_words": float(counts[kind]) for kind in ("whole", "parts", "unknown")},
    }


def _metrics(results: SimilarityResults, layer: LayerSimilarity) -> Metrics:
    metrics: Metrics = {"similarity_vocab_size": float(results.memory[-1].num_words)}
    found = [item for item in layer.correlations.values() if item is not None]
    if found:
        metrics["similarity_spearman"] = float(np.mean([item.value for item in found]))
    if len(found) == 1:
        metrics |= {"similarity_spearman_low": found[0].low, "similarity_spearman_high": found[0].high}
    analogies = layer.analogies
    shares = (
        ("triple", layer.triples, 0.5),
        ("analogy", analogies.accuracy if analogies else None, analogies.chance if analogies else 0.0),
        ("analogy_vocabulary", results.vocabulary.accuracy if results.vocabulary else None,
         results.vocabulary.chance if results.vocabulary else 0.0),
    )  # fmt: skip
    for name, share, chance in shares:
        if share is not None:
            prefix = f"similarity_{name}"
            metrics |= {
                f"{prefix}_accuracy": share.value,
                f"{prefix}_accuracy_low": share.low,
                f"{prefix}_accuracy_high": share.high,
                f"{prefix}_chance": chance,
            }
    if results.angles is not None:
        metrics |= {
            "similarity_orthogonal_share": results.angles.share_orthogonal,
            "similarity_mean_cosine": results.angles.mean_cosine,
        }
    return metrics


def _write_unknown(config: SimilarityProbeConfig, family: str, out_dir: Path) -> None:
    write_not_meaningful(
        out_dir, "similarity", family, title_of(config.language), language=config.language,
        en=f"The encoder knows fewer than {LEAST_PAIRS} words of the lists: its vocabulary is of another language or "
        "domain.",
        zh=f"该编码器认识的词不足 {LEAST_PAIRS} 个：它的词表属于另一种语言或另一领域。",
    )  # fmt: skip
