"""What the probe of prediction in context found, in words, tables and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.contract import Metrics
from components.probes.cloze import TOP, PassagePairs
from components.probes.curves import draw_bars, picture_language
from components.probes.intervals import Share, binomial_share
from components.probes.probe_file import Figure, Findings, Table, percent, rate, say, table
from components.text.sentences import Language

_NAMES = {
    "cloze_accuracy": ("hidden piece", "被遮词片"),
    f"cloze_top{TOP}_accuracy": (f"hidden piece,\namong top {TOP}", f"被遮词片，\n前 {TOP} 之中"),
    "cloze_nsp_accuracy": ("next sentence", "下一句"),
    "cloze_minimal_pair_accuracy": ("minimal pairs", "最小对立对"),
}
_SENTENCES = {
    "cloze_accuracy": ("Hidden pieces of held-out text", "留出文本中被遮住的词片"),
    "cloze_nsp_accuracy": ("Next sentence on held-out documents", "留出文档的下一句判断"),
    "cloze_minimal_pair_accuracy": ("Minimal pairs", "最小对立对"),
}


@dataclass(frozen=True)
class NextSentence:
    """Accuracy of next sentence prediction, if it was measured, and the pairs, if the head was ever trained."""

    share: Share | None
    pairs: PassagePairs | None


@dataclass(frozen=True)
class ScoredPairs:
    """Credit of each pair (1, 0, or 0.5 for a tie): the model's and that of piece frequencies alone."""

    phenomena: list[str]
    credit: NDArray[np.float64]
    unigram_credit: NDArray[np.float64]
    num_same: int
    """Pairs whose sentences have the same pieces for this encoder; they cannot be told apart and are left out."""
    num_long: int
    """Pairs too long for the encoder's positions."""
    num_unknown: int
    """Pairs with a piece that the encoder does not know."""


@dataclass(frozen=True)
class ClozeResults:
    """Everything that was measured on one encoder."""

    shares: dict[str, Share]
    baselines: dict[str, float]
    """By the names of ``shares``: accuracy without looking at the context."""
    following: NextSentence
    scored: ScoredPairs
    num_pairs: int
    """Minimal pairs of the list."""

    @property
    def num_beyond(self) -> int:
        """Minimal pairs beyond the limit per phenomenon."""
        scored = self.scored
        return self.num_pairs - len(scored.credit) - scored.num_same - scored.num_long - scored.num_unknown


def title_of(language: Language) -> str:
    """Heading of the probe."""
    return say(language, "Cloze, next sentence, minimal pairs", "完形、下一句与最小对立对")


def describe(language: Language, results: ClozeResults, figures: list[Figure]) -> Findings:
    """Metrics, tables, and sentences that say what the numbers allow to say."""
    columns = say(
        language, "task|accuracy [95 %]|baseline without context|items", "任务|准确率 [95 %]|不看语境的基线|数量"
    ).split("|")
    rows = [
        [
            say(language, *_NAMES[name]).replace("\n", " "),
            percent(share),
            rate(results.baselines[name]),
            share.num_items,
        ]
        for name, share in results.shares.items()
    ]
    tables = [
        table(say(language, "Accuracy", "准确率"), columns, rows),
        _phenomenon_table(language, results.scored),
        _pair_ledger(language, results),
        *_boundary_ledger(language, results.following.pairs),
    ]
    return Findings(_metrics(results), tuple(results.shares), tables, figures, _sentences(results))


def draw(language: Language, results: ClozeResults, out_dir: Path) -> list[Figure]:
    """Draw the accuracies with their intervals and baselines; returns the figures."""
    written = picture_language(language)
    names = {name: say(written, *_NAMES[name]) for name in results.shares}
    draw_bars(
        {names[name]: share for name, share in results.shares.items()}, out_dir / "cloze.png",
        title=say(written, "Prediction in context (dashes: without context)", "语境中的预测（虚线：不看语境）"),
        y=say(written, "accuracy", "准确率"), levels={names[name]: results.baselines[name] for name in names},
    )  # fmt: skip
    caption = say(
        language,
        "What the encoder predicts from context, with 95 % intervals; dashes: the same without context",
        "编码器根据语境所作的预测及 95 % 区间；虚线：不看语境",
    )
    return [Figure("cloze.png", caption)]


def _metrics(results: ClozeResults) -> Metrics:
    metrics: Metrics = {}
    for name, share in results.shares.items():
        metrics |= {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}
        metrics[f"{name.removesuffix('_accuracy')}_baseline"] = results.baselines[name]
    metrics["cloze_num_minimal_pairs"] = float(len(results.scored.credit))
    metrics["cloze_num_dropped_same_pieces"] = float(results.scored.num_same)
    metrics["cloze_num_dropped_too_long"] = float(results.scored.num_long)
    metrics["cloze_num_dropped_unknown_piece"] = float(results.scored.num_unknown)
    metrics["cloze_num_dropped_limit"] = float(results.num_beyond)
    if (found := results.following.pairs) is not None:
        metrics["cloze_num_sentence_pairs"] = float(len(found.pairs))
        metrics["cloze_num_dropped_boundaries"] = float(found.num_without_foreign)
    return metrics


def _phenomenon_table(language: Language, scored: ScoredPairs) -> Table:
    columns = say(
        language, "phenomenon|accuracy [95 %]|piece frequency alone|pairs", "现象|准确率 [95 %]|仅按词频|对数"
    ).split("|")
    rows = []
    for name in dict.fromkeys(scored.phenomena):
        chosen = np.array([phenomenon == name for phenomenon in scored.phenomena])
        share = binomial_share(float(scored.credit[chosen].sum()), int(chosen.sum()))
        rows.append([name, percent(share), rate(float(scored.unigram_credit[chosen].mean())), share.num_items])
    return table(say(language, "Minimal pairs (chance 50 %)", "最小对立对（随机 50 %）"), columns, rows)


def _pair_ledger(language: Language, results: ClozeResults) -> Table:
    scored = results.scored
    rows = [
        [say(language, "scored", "计分"), len(scored.credit)],
        [say(language, "same pieces for this encoder", "词片相同"), scored.num_same],
        [say(language, "too long", "过长"), scored.num_long],
        [say(language, "a piece is unknown", "含未知词片"), scored.num_unknown],
        [say(language, "beyond the limit per phenomenon", "超出每类上限"), results.num_beyond],
        [say(language, "all", "合计"), results.num_pairs],
    ]
    columns = ["", say(language, "pairs", "对数")]
    return table(say(language, "Minimal pairs: count", "最小对立对：数量"), columns, rows)


def _boundary_ledger(language: Language, found: PassagePairs | None) -> list[Table]:
    if found is None:
        return []
    rows = [
        [say(language, "drawn as pairs", "用作句对"), len(found.pairs)],
        [say(language, "no foreign passage of that length", "其他文档中没有等长的段落"), found.num_without_foreign],
        [say(language, "not needed", "未用"), found.num_not_needed],
        [say(language, "all", "合计"), found.num_boundaries],
    ]
    columns = ["", say(language, "boundaries", "数量")]
    return [table(say(language, "Sentence boundaries", "句子边界"), columns, rows)]


def _sentences(results: ClozeResults) -> list[dict[str, str]]:
    sentences = [_share_sentence(name, results) for name in _SENTENCES if name in results.shares]
    if not len(results.scored.credit):
        sentences.append({
            "en": "No minimal pair could be scored: for this encoder the sentences have the same pieces, "
            "unknown pieces, or too many.",
            "zh": "没有可计分的最小对立对：对该编码器而言，两句的词片相同、未知或过多。",
        })  # fmt: skip
    if results.following.pairs is None:
        en = "Next sentence prediction was not trained, so no number is given."
        sentences.append({"en": en, "zh": "该编码器未训练下一句预测，故不给出数字。"})
    elif results.following.share is None:
        number = len(results.following.pairs.pairs)
        en = f"Only {number} pairs of passages can be drawn from the held-out documents: too few for next sentences."
        sentences.append({"en": en, "zh": f"留出文档中只能抽出 {number} 个段落对，不足以衡量下一句判断。"})
    return sentences


def _share_sentence(name: str, results: ClozeResults) -> dict[str, str]:
    share, base = results.shares[name], results.baselines[name]
    en, zh = _SENTENCES[name]
    said_en, said_zh = ("below the baseline", "低于基线") if share.high < base else (
        ("the encoder uses the context", "编码器利用了语境") if share.low > base
        else ("not separable from the baseline", "与基线无法区分")
    )  # fmt: skip
    return {
        "en": f"{en}: {percent(share)} right, {rate(base)} without looking at the context; {said_en}.",
        "zh": f"{zh}：{percent(share)} 正确，不看语境为 {rate(base)}；{said_zh}。",
    }
