"""Probe: hidden pieces, next sentences and minimal pairs, for encoders that were pretrained to predict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.transformer import load_pretraining_model
from components.encoders.wordpiece import PieceIds, load_wordpiece, piece_ids
from components.errors import InputError
from components.formats import read_encoder_card
from components.probes.cloze import (
    TOP,
    Hidden,
    Pieces,
    cloze_ranks,
    hide_pieces,
    is_trained,
    pair_passages,
    piece_counts,
    read_pieces,
    says_next,
)
from components.probes.cloze_report import ClozeResults, NextSentence, ScoredPairs, describe, draw, title_of
from components.probes.intervals import Share, binomial_share, clustered_share
from components.probes.minimal_pairs import MinimalPair, limit_pairs, pseudo_log_likelihoods, read_minimal_pairs
from components.probes.probe_file import rate, write_findings, write_not_meaningful
from components.probes.structure_config import ClozeProbeConfig
from components.text.normalization import NormalizationConfig, normalize

LEAST_SENTENCE_PAIRS = 10
"""Fewer pairs of passages than this say nothing."""
MOST_UNKNOWN = 0.5
"""Share of unknown pieces in the held-out text beyond which predictions are about little but punctuation."""
_BATCH_ROWS = 64
"""Long rows at a time, at most."""


@dataclass(frozen=True)
class _Subject:
    """The model under the probe and the text to ask it about."""

    model: Any
    tokenizer: Any
    ids: PieceIds
    held_out: list[Pieces]
    counts: NDArray[np.int64]
    """How often each piece occurs in the baseline's text."""
    length: int

    @property
    def unknown_share(self) -> float:
        """Share of the held-out pieces that are unknown."""
        pieces = [piece for document in self.held_out for sentence in document.sentences for piece in sentence]
        return pieces.count(self.tokenizer.unk_token_id) / len(pieces)


def probe_cloze(
    config: ClozeProbeConfig, *, encoder: Path, corpus: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Measure masked language modelling, next sentence prediction and minimal pairs.

    Args:
        config: Sizes and lists.
        encoder: Any encoder artifact; only BERT with a trained masked-language head predicts pieces.
        corpus: Corpus artifact, whose validation split the encoder was not trained on.
        out_dir: Receives ``probe.json`` and ``cloze.png``.
        log_metrics: Receives ``progress``.

    Returns:
        ``cloze_accuracy``, ``cloze_top5_accuracy``, ``cloze_minimal_pair_accuracy`` and, where next sentence
        prediction was trained, ``cloze_nsp_accuracy``, each with ``_low``, ``_high`` and the baseline that reads no
        context; and what was scored and left out. Nothing for an encoder that predicts no piece.

    Raises:
        InputError: The corpus has no held-out text, or the list of minimal pairs cannot be used.
    """
    card, title, language = read_encoder_card(encoder), title_of(config.language), config.language
    pairs = read_minimal_pairs(Path(config.minimal_pairs_file) if config.minimal_pairs_file else None, language)
    model = load_pretraining_model(encoder)[0] if card["family"] == "bert" else None
    if model is None or not is_trained(model.cls.predictions):
        why = "no" if model is None else "no trained"
        write_not_meaningful(
            out_dir, "cloze", card["family"], title, language=language,
            en=f"This {card['family']} encoder has {why} masked-language head: it predicts no hidden piece.",
            zh="该编码器没有（训练过的）掩码语言模型输出层，无法预测被遮住的词片。",
        )  # fmt: skip
        return {}
    subject = _load(config, model, encoder, corpus)
    hidden = _hide(config, subject)
    if not hidden or subject.unknown_share > MOST_UNKNOWN:
        write_not_meaningful(
            out_dir, "cloze", card["family"], title, language=language,
            en=f"{rate(subject.unknown_share)} of the held-out text is unknown to the encoder: its vocabulary is of "
            "another language.",
            zh=f"留出文本中 {rate(subject.unknown_share)} 是该编码器的未知词片：它的词表属于另一种语言。",
        )  # fmt: skip
        return {}
    shares, baselines = _cloze(config, subject, hidden)
    log_metrics({"progress": 0.4})
    trained = card.get("objective") != "mlm" and is_trained(model.cls.seq_relationship)
    following = _next_sentence(config, subject) if trained else NextSentence(None, None)
    log_metrics({"progress": 0.6})
    scored = _minimal_pairs(config, subject, limit_pairs(pairs, config.max_pairs_per_phenomenon, config.seed))
    results = _results(shares, baselines, following, scored, len(pairs))
    findings = describe(language, results, draw(language, results, out_dir))
    return write_findings(out_dir, "cloze", card["family"], title, findings, language=language)


def _load(config: ClozeProbeConfig, model: Any, encoder: Path, corpus: Path) -> _Subject:
    tokenizer = load_wordpiece(encoder)
    held_out = read_pieces(corpus, "validation", tokenizer)
    if not held_out:
        raise InputError("no held-out text", file=corpus, remedy="raise the corpus's share of validation documents")
    counts = piece_counts(read_pieces(corpus, "train", tokenizer, config.num_baseline_documents), len(tokenizer))
    length = min(config.max_seq_length, int(model.config.max_position_embeddings))
    return _Subject(model, tokenizer, piece_ids(tokenizer), held_out, counts, length)


def _hide(config: ClozeProbeConfig, subject: _Subject) -> list[Hidden]:
    return hide_pieces(
        subject.held_out, config.num_cloze, length=subject.length, cls=subject.ids.cls, sep=subject.ids.sep,
        unk=subject.tokenizer.unk_token_id, seed=config.seed,
    )  # fmt: skip


def _cloze(
    config: ClozeProbeConfig, subject: _Subject, hidden: Sequence[Hidden]
) -> tuple[dict[str, Share], dict[str, float]]:
    ids, batch_size = subject.ids, min(config.batch_size, _BATCH_ROWS)
    ranks = cloze_ranks(subject.model, hidden, mask_id=ids.mask, pad_id=ids.pad, batch_size=batch_size)
    known = subject.counts.copy()
    known[subject.tokenizer.unk_token_id] = 0  # Never hidden, so no guess worth making.
    frequent = np.argsort(-known, kind="stable")[:TOP].tolist()
    truth = [item.row[item.place] for item in hidden]
    shares, baselines = {}, {}
    for name, top in (("cloze_accuracy", 1), (f"cloze_top{TOP}_accuracy", TOP)):
        shares[name] = clustered_share(
            ranks < top, [item.document for item in hidden], num_resamples=config.num_resamples, seed=config.seed
        )
        baselines[name] = float(np.mean([piece in frequent[:top] for piece in truth]))
    return shares, baselines


def _next_sentence(config: ClozeProbeConfig, subject: _Subject) -> NextSentence:
    found = pair_passages(subject.held_out, config.num_sentence_pairs, length=subject.length, seed=config.seed)
    if len(found.pairs) < LEAST_SENTENCE_PAIRS:
        return NextSentence(None, found)
    ids, batch_size = subject.ids, min(config.batch_size, _BATCH_ROWS)
    said = says_next(subject.model, found.pairs, cls=ids.cls, sep=ids.sep, pad_id=ids.pad, batch_size=batch_size)
    right = said == np.array([pair.is_next for pair in found.pairs])
    documents = [pair.document for pair in found.pairs]
    share = clustered_share(right, documents, num_resamples=config.num_resamples, seed=config.seed)
    return NextSentence(share, found)


def _minimal_pairs(config: ClozeProbeConfig, subject: _Subject, pairs: Sequence[MinimalPair]) -> ScoredPairs:
    rows, phenomena, same, long, unknown = [], [], 0, 0, 0
    for pair in pairs:
        good, bad = (
            list(subject.tokenizer(normalize(text, NormalizationConfig()).text)["input_ids"])
            for text in (pair.good, pair.bad)
        )
        if good == bad:
            same += 1
        elif max(len(good), len(bad)) > subject.model.config.max_position_embeddings:
            long += 1
        elif subject.tokenizer.unk_token_id in {*good, *bad}:
            unknown += 1
        else:
            rows += [good, bad]
            phenomena.append(pair.phenomenon)
    likelihoods = pseudo_log_likelihoods(
        subject.model, rows, mask_id=subject.ids.mask, pad_id=subject.ids.pad, batch_size=config.batch_size
    )
    logs = np.log((subject.counts + 1) / (subject.counts + 1).sum())
    unigram = np.array([logs[row[1:-1]].sum() for row in rows])
    return ScoredPairs(phenomena, _credit(likelihoods), _credit(unigram), same, long, unknown)


def _credit(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    difference = np.round(scores[0::2] - scores[1::2], 6)
    return np.where(difference > 0, 1.0, np.where(difference == 0, 0.5, 0.0))


def _results(
    shares: dict[str, Share], baselines: dict[str, float], following: NextSentence, scored: ScoredPairs, num_pairs: int
) -> ClozeResults:
    if following.share is not None:
        shares, baselines = shares | {"cloze_nsp_accuracy": following.share}, baselines | {"cloze_nsp_accuracy": 0.5}
    if number := len(scored.credit):
        name = "cloze_minimal_pair_accuracy"
        shares = shares | {name: binomial_share(float(scored.credit.sum()), number)}
        baselines = baselines | {name: float(scored.unigram_credit.mean())}
    return ClozeResults(shares, baselines, following, scored, num_pairs)
