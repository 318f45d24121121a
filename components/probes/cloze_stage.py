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
    Pieces,
    cloze_ranks,
    hide_pieces,
    pair_passages,
    piece_counts,
    read_pieces,
    says_next,
)
from components.probes.curves import draw_bars, picture_language
from components.probes.intervals import Share, binomial_share, clustered_share
from components.probes.minimal_pairs import MinimalPair, limit_pairs, pseudo_log_likelihoods, read_minimal_pairs
from components.probes.probe_file import Findings, percent, rate, say, table, write_findings, write_not_meaningful
from components.probes.structure_config import ClozeProbeConfig
from components.text.normalization import NormalizationConfig, normalize


@dataclass(frozen=True)
class _Subject:
    """The model under the probe and the text to ask it about."""

    model: Any
    tokenizer: Any
    ids: PieceIds
    held_out: list[Pieces]
    counts: NDArray[np.int64]
    length: int


def probe_cloze(
    config: ClozeProbeConfig, *, encoder: Path, corpus: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Measure masked language modelling, next sentence prediction and minimal pairs.

    Args:
        config: Sizes and lists.
        encoder: Any encoder artifact; only BERT with its masked-language head predicts pieces.
        corpus: Corpus artifact, whose validation split the encoder was not trained on.
        out_dir: Receives ``probe.json`` and ``cloze.png``.
        log_metrics: Receives ``progress``.

    Returns:
        ``cloze_accuracy``, ``cloze_top5_accuracy`` and their unigram baselines, ``cloze_minimal_pair_accuracy``, and
        ``cloze_nsp_accuracy`` where next sentence prediction was trained.

    Raises:
        InputError: The corpus has no held-out text, or the list of minimal pairs cannot be used.
    """
    card = read_encoder_card(encoder)
    family, title = (
        str(card["family"]),
        say(config.language, "Cloze, next sentence, minimal pairs", "完形、下一句与最小对立对"),
    )
    pairs = read_minimal_pairs(Path(config.minimal_pairs_file) if config.minimal_pairs_file else None, config.language)
    model, missing = load_pretraining_model(encoder) if family == "bert" else (None, None)
    if model is None or missing is None or any(name.startswith("cls.predictions") for name in missing.missing):
        write_not_meaningful(
            out_dir, "cloze", family, title, language=config.language,
            en=f"This {family} encoder has no masked-language head: it predicts no hidden piece.",
            zh="该编码器没有掩码语言模型的输出层，无法预测被遮住的词片。",
        )  # fmt: skip
        return {}
    subject = _load(config, model, encoder, corpus)
    shares, baselines = _cloze(config, subject)
    log_metrics({"progress": 0.4})
    nsp = card.get("objective") != "mlm" and not any(name.startswith("cls.seq") for name in missing.missing)
    if nsp and len(subject.held_out) > 1:
        shares |= _next_sentence(config, subject)
    log_metrics({"progress": 0.6})
    scored = _minimal_pairs(config, subject, limit_pairs(pairs, config.max_pairs_per_phenomenon, config.seed))
    findings = _findings(config, shares, baselines, scored, len(pairs), nsp, out_dir)
    return write_findings(out_dir, "cloze", family, title, findings)


def _load(config: ClozeProbeConfig, model: Any, encoder: Path, corpus: Path) -> _Subject:
    tokenizer = load_wordpiece(encoder)
    held_out = read_pieces(corpus, "validation", tokenizer)
    if not held_out:
        raise InputError("no held-out text", file=corpus, remedy="raise the corpus's share of validation documents")
    counts = piece_counts(read_pieces(corpus, "train", tokenizer, config.num_baseline_documents), len(tokenizer))
    length = min(config.max_seq_length, int(model.config.max_position_embeddings))
    return _Subject(model, tokenizer, piece_ids(tokenizer), held_out, counts, length)


def _cloze(config: ClozeProbeConfig, subject: _Subject) -> tuple[dict[str, Share], dict[str, float]]:
    ids = subject.ids
    hidden = hide_pieces(
        subject.held_out, config.num_cloze, length=subject.length, cls=ids.cls, sep=ids.sep,
        unk=subject.tokenizer.unk_token_id, seed=config.seed,
    )  # fmt: skip
    ranks = cloze_ranks(subject.model, hidden, mask_id=ids.mask, pad_id=ids.pad, batch_size=min(config.batch_size, 64))
    frequent = np.argsort(-subject.counts, kind="stable")[:TOP].tolist()
    truth = [item.row[item.place] for item in hidden]
    shares, baselines = {}, {}
    for name, top in (("cloze_accuracy", 1), (f"cloze_top{TOP}_accuracy", TOP)):
        shares[name] = clustered_share(
            ranks < top, [item.document for item in hidden], num_resamples=config.num_resamples, seed=config.seed
        )
        baselines[name] = float(np.mean([piece in frequent[:top] for piece in truth]))
    return shares, baselines


def _next_sentence(config: ClozeProbeConfig, subject: _Subject) -> dict[str, Share]:
    pairs = pair_passages(subject.held_out, config.num_sentence_pairs, length=subject.length, seed=config.seed)
    if len(pairs) < 2:
        return {}
    ids = subject.ids
    said = says_next(
        subject.model, pairs, cls=ids.cls, sep=ids.sep, pad_id=ids.pad, batch_size=min(config.batch_size, 64)
    )
    right = said == np.array([pair.is_next for pair in pairs])
    documents = [pair.document for pair in pairs]
    return {
        "cloze_nsp_accuracy": clustered_share(right, documents, num_resamples=config.num_resamples, seed=config.seed)
    }


@dataclass(frozen=True)
class _Scored:
    """Credit of each pair (1, 0, or 0.5 for a tie): the model's and that of piece frequencies alone."""

    phenomena: list[str]
    credit: NDArray[np.float64]
    unigram_credit: NDArray[np.float64]
    num_same: int
    """Pairs whose sentences have the same pieces for this encoder; they cannot be told apart and are left out."""
    num_long: int
    """Pairs too long for the encoder's positions."""


def _minimal_pairs(config: ClozeProbeConfig, subject: _Subject, pairs: Sequence[MinimalPair]) -> _Scored:
    rows, phenomena, same, long = [], [], 0, 0
    for pair in pairs:
        good, bad = (
            list(subject.tokenizer(normalize(text, NormalizationConfig()).text)["input_ids"])
            for text in (pair.good, pair.bad)
        )
        if good == bad:
            same += 1
        elif max(len(good), len(bad)) > subject.model.config.max_position_embeddings:
            long += 1
        else:
            rows += [good, bad]
            phenomena.append(pair.phenomenon)
    likelihoods = pseudo_log_likelihoods(
        subject.model, rows, mask_id=subject.ids.mask, pad_id=subject.ids.pad, batch_size=config.batch_size
    )
    logs = np.log((subject.counts + 1) / (subject.counts + 1).sum())
    unigram = np.array([logs[row[1:-1]].sum() for row in rows])
    return _Scored(phenomena, _credit(likelihoods), _credit(unigram), same, long)


def _credit(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    difference = np.round(scores[0::2] - scores[1::2], 6)
    return np.where(difference > 0, 1.0, np.where(difference == 0, 0.5, 0.0))


def _findings(
    config: ClozeProbeConfig, shares: dict[str, Share], baselines: dict[str, float], scored: _Scored, num_all: int,
    nsp: bool, out_dir: Path,
) -> Findings:  # fmt: skip
    if "cloze_nsp_accuracy" in shares:
        baselines = {**baselines, "cloze_nsp_accuracy": 0.5}
    if len(scored.credit):
        shares = {
            **shares,
            "cloze_minimal_pair_accuracy": binomial_share(float(scored.credit.sum()), len(scored.credit)),
        }
        baselines = {**baselines, "cloze_minimal_pair_accuracy": float(scored.unigram_credit.mean())}
    names = _names(config.language)
    written = picture_language(config.language)
    draw_bars(
        {_names(written)[name]: share for name, share in shares.items()}, out_dir / "cloze.png",
        title=say(written, "Prediction in context (dashes: without context)", "语境中的预测（虚线：不看语境）"),
        y=say(written, "accuracy", "准确率"), levels={_names(written)[n]: value for n, value in baselines.items()},
    )  # fmt: skip
    columns = [say(config.language, a, b) for a, b in (("task", "任务"), ("accuracy [95 %]", "准确率 [95 %]"),
               ("baseline without context", "不看语境的基线"), ("items", "数量"))]  # fmt: skip
    rows = [[names[n], percent(share), rate(baselines[n]), share.num_items] for n, share in shares.items()]
    tables = [table(say(config.language, "Accuracy", "准确率"), columns, rows), *_pair_tables(config, scored, num_all)]
    metrics = {name: share.value for name, share in shares.items()}
    metrics |= {f"{n.removesuffix('_accuracy')}_baseline": value for n, value in baselines.items()}
    return Findings(metrics, tables, ["cloze.png"], _sentences(shares, baselines, nsp))


def _names(language: str) -> dict[str, str]:
    if language == "zh":
        return {
            "cloze_accuracy": "完形 top-1", f"cloze_top{TOP}_accuracy": f"完形 top-{TOP}",
            "cloze_nsp_accuracy": "下一句", "cloze_minimal_pair_accuracy": "最小对立对",
        }  # fmt: skip
    return {
        "cloze_accuracy": "cloze top-1", f"cloze_top{TOP}_accuracy": f"cloze top-{TOP}",
        "cloze_nsp_accuracy": "next sentence", "cloze_minimal_pair_accuracy": "minimal pairs",
    }  # fmt: skip


def _pair_tables(config: ClozeProbeConfig, scored: _Scored, num_all: int) -> list[dict[str, Any]]:
    columns = [say(config.language, a, b) for a, b in (("phenomenon", "现象"), ("accuracy [95 %]", "准确率 [95 %]"),
               ("piece frequency alone", "仅按词频"), ("pairs", "对数"))]  # fmt: skip
    rows = []
    for name in dict.fromkeys(scored.phenomena):
        chosen = np.array([phenomenon == name for phenomenon in scored.phenomena])
        share = binomial_share(float(scored.credit[chosen].sum()), int(chosen.sum()))
        rows.append([name, percent(share), rate(float(scored.unigram_credit[chosen].mean())), share.num_items])
    kept = len(scored.credit)
    ledger = [
        [say(config.language, "scored", "计分"), kept],
        [say(config.language, "same pieces for this encoder", "词片相同"), scored.num_same],
        [say(config.language, "too long", "过长"), scored.num_long],
        [say(config.language, "beyond the limit per phenomenon", "超出每类上限"), num_all - kept - scored.num_same - scored.num_long],
        [say(config.language, "all", "合计"), num_all],
    ]  # fmt: skip
    return [
        table(say(config.language, "Minimal pairs (chance 50 %)", "最小对立对（随机 50 %）"), columns, rows),
        table(
            say(config.language, "Minimal pairs: count", "最小对立对：数量"),
            ["", say(config.language, "pairs", "对数")],
            ledger,
        ),
    ]


def _sentences(shares: dict[str, Share], baselines: dict[str, float], nsp: bool) -> list[dict[str, str]]:
    sentences = []
    texts = {
        "cloze_accuracy": ("Hidden pieces of held-out text", "留出文本中被遮住的词片"),
        "cloze_nsp_accuracy": ("Next sentence on held-out documents", "留出文档的下一句判断"),
        "cloze_minimal_pair_accuracy": ("Minimal pairs", "最小对立对"),
    }
    for name, (en, zh) in texts.items():
        if name in shares:
            share, base = shares[name], baselines[name]
            better = share.low > base
            sentences.append(
                {
                    "en": f"{en}: {percent(share)} right, {rate(base)} without looking at the context; "
                    + ("the encoder uses the context." if better else "not separable from the baseline."),
                    "zh": f"{zh}：{percent(share)} 正确，不看语境为 {rate(base)}；"
                    + ("编码器利用了语境。" if better else "与基线无法区分。"),
                }
            )
    if not nsp:
        en = "Next sentence prediction was not trained, so no number is given."
        sentences.append({"en": en, "zh": "该编码器未训练下一句预测，故不给出数字。"})
    return sentences
