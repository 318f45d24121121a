"""What the probe "similarity" found, in words, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.contract import Metrics
from components.formats import EncoderFamily
from components.probes.curves import picture_language
from components.probes.layers import layer_name
from components.probes.memory import Memory
from components.probes.pictures import Bar, draw_growth, draw_intervals
from components.probes.probe_file import Figure, Findings, percent, rate, say, table
from components.probes.similarity import Correlation, Orthogonality
from components.probes.similarity_measures import Analogies, LayerSimilarity
from components.text.sentences import Language

HEADLINE = (
    "similarity_spearman",
    "similarity_triple_accuracy",
    "similarity_analogy_accuracy",
    "similarity_orthogonal_share",
)
_MIB = 2**20


@dataclass(frozen=True)
class SimilarityResults:
    """Everything that was measured on one encoder."""

    family: EncoderFamily
    layers: Sequence[LayerSimilarity]
    headline: int
    vocabulary: Analogies | None
    """Analogies among the whole vocabulary, at layer 0."""
    angles: Orthogonality | None
    memory: Sequence[Memory]
    neighbours: Sequence[tuple[str, Sequence[tuple[str, float]]]]
    coverage: Mapping[str, int]
    """Words of the lists by how much of them is known."""


def title_of(language: Language) -> str:
    """Heading of the probe."""
    return say(language, "Similarity of words", "词的相似度")


def describe(language: Language, results: SimilarityResults, metrics: Metrics, figures: list[Figure]) -> Findings:
    """Tables, and sentences that say what the numbers allow to say."""
    tables = [
        _correlation_table(language, results),
        _choice_table(language, results),
        _angle_table(language, results),
        _memory_table(language, results.memory),
        _coverage_table(language, results.coverage),
        _neighbour_table(language, results),
    ]
    sentences = [*_angle_sentences(results), *_list_sentences(results.layers[results.headline])]
    return Findings(metrics, HEADLINE, [item for item in tables if item["rows"]], figures, sentences)


def draw(spoken: Language, results: SimilarityResults, out_dir: Path) -> list[Figure]:
    """Draw the memory of the vectors and, where there are any, the correlations; returns the figures."""
    language = picture_language(spoken)
    memory = Figure(
        "memory.png",
        say(spoken, "Memory that the vectors of all words take", "全部词向量占用的内存随词表大小的变化"),
    )
    curves: dict[str, list[float]] = {
        say(language, "one-hot, every number", "独热，全部存储"): [item.one_hot_dense for item in results.memory],
        say(language, "one-hot, only the ones", "独热，稀疏存储"): [item.one_hot_sparse for item in results.memory],
    }
    if learned := [item.learned for item in results.memory if item.learned is not None]:
        curves[say(language, "this encoder's vectors", "该编码器的向量")] = [float(size) for size in learned]
    draw_growth(
        [item.num_words for item in results.memory], curves, path=out_dir / "memory.png",
        title=say(language, "Memory of all word vectors", "全部词向量的内存"),
        across=say(language, "words in the vocabulary", "词表中的词数"), up="MiB",
    )  # fmt: skip
    found = results.layers[results.headline].correlations.items()
    bars = [Bar(file, item.value, item.low, item.high) for file, item in found if item is not None]
    if not bars:
        return [memory]
    name = layer_name(results.layers[results.headline].layer, language)
    draw_intervals(
        bars, chance=0.0, chance_name=say(language, "no relation", "无关"), title=f"{title_of(language)} · {name}",
        axis=say(language, "Spearman's correlation with people, 95 % interval", "与人工评分的 Spearman 相关，95% 区间"),
        path=out_dir / "spearman.png",
    )  # fmt: skip
    caption = say(spoken, "Agreement with people's scores of similarity", "与人工相似度评分的一致程度")
    return [Figure("spearman.png", caption), memory]


def _correlation_table(language: Language, results: SimilarityResults) -> dict[str, Any]:
    columns = say(language, "list|layer|Spearman|95 % from|to|pairs known", "词表|层|Spearman|95% 下限|上限|已知词对")
    rows = [
        [file, layer_name(layer.layer, language), *_numbers(language, item)]
        for layer in results.layers for file, item in layer.correlations.items()
    ]  # fmt: skip
    title = say(language, "Correlation with people's scores", "与人工评分的相关")
    return table(title, columns.split("|"), rows)


def _numbers(language: Language, item: Correlation | None) -> list[str]:
    if item is None:
        return [say(language, "no ranking", "无法排序"), "–", "–", "–"]
    return [f"{item.value:.3f}", f"{item.low:.3f}", f"{item.high:.3f}", f"{item.num_items} / {item.num_pairs}"]


def _choice_table(language: Language, results: SimilarityResults) -> dict[str, Any]:
    columns = say(language, "question|layer|right [95 %]|chance|items", "问题|层|准确率 [95%]|随机水平|题数").split("|")
    rows: list[list[str | float]] = []
    for layer in results.layers:
        name = layer_name(layer.layer, language)
        if layer.triples is not None:
            question = say(language, "nearer of two words", "两词中更近者")
            rows.append([question, name, percent(layer.triples), rate(0.5), layer.triples.num_items])
        rows += _analogy_rows(language, name, layer.analogies, say(language, "words of the lists", "词表所列词"))
    whole = say(language, "whole vocabulary", "整个词表")
    rows += _analogy_rows(language, layer_name(results.layers[0].layer, language), results.vocabulary, whole)
    return table(say(language, "Triples and analogies", "三元组与类比"), columns, rows)


def _analogy_rows(language: Language, layer: str, found: Analogies | None, among: str) -> list[list[str | float]]:
    if found is None:
        return []
    names = (
        say(language, f"analogy, among {among}", f"类比，在{among}中"),
        say(language, f"nearest word instead, among {among}", f"只取最近词，在{among}中"),
    )
    return [
        [name, layer, percent(share), f"{100 * found.chance:.2g} %", share.num_items]
        for name, share in zip(names, (found.accuracy, found.without_offset), strict=True)
    ]


def _angle_table(language: Language, results: SimilarityResults) -> dict[str, Any]:
    columns = say(
        language,
        "words compared|pairs at right angles|mean absolute cosine|largest",
        "比较的词数|正交的词对|余弦绝对值均值|最大值",
    ).split("|")
    found = results.angles
    rows: list[list[str | float]] = [] if found is None else [[
        found.num_words, rate(found.share_orthogonal), f"{found.mean_cosine:.3f}", f"{found.max_cosine:.3f}"
    ]]  # fmt: skip
    return table(say(language, "Angles between words of the vocabulary", "词表中词与词的夹角"), columns, rows)


def _memory_table(language: Language, memory: Sequence[Memory]) -> dict[str, Any]:
    columns = say(
        language, "words|one-hot, MiB|one-hot sparse, MiB|learned, MiB", "词数|独热 MiB|稀疏独热 MiB|学得的向量 MiB"
    ).split("|")
    rows: list[list[str | float]] = [
        [item.num_words, *(_mib(size) for size in (item.one_hot_dense, item.one_hot_sparse, item.learned))]
        for item in memory
    ]
    return table(say(language, "Memory of all word vectors", "全部词向量的内存"), columns, rows)


def _mib(size: int | None) -> str:
    return "–" if size is None else f"{size / _MIB:,.2f}"


def _coverage_table(language: Language, coverage: Mapping[str, int]) -> dict[str, Any]:
    columns = say(language, "known whole|from parts|unknown", "整词已知|由部分组成|未知").split("|")
    row = [coverage.get(kind, 0) for kind in ("whole", "parts", "unknown")]
    return table(say(language, "Words of the lists", "词表所列的词"), columns, [row])


def _neighbour_table(language: Language, results: SimilarityResults) -> dict[str, Any]:
    columns = say(language, "word|nearest words (cosine)", "词|最近的词（余弦）").split("|")
    rows = [[word, ", ".join(f"{name} {value:.2f}" for name, value in found)] for word, found in results.neighbours]
    return table(say(language, "Nearest neighbours", "最近邻"), columns, rows)


def _angle_sentences(results: SimilarityResults) -> list[dict[str, str]]:
    found, last = results.angles, results.memory[-1]
    sentences = []
    if found is not None and found.share_orthogonal == 1:
        sentences.append({
            "en": f"All {found.num_words:,} words compared are at right angles to each other: these vectors call "
            "nothing similar.",
            "zh": f"所比较的 {found.num_words:,} 个词两两正交：这种向量认为没有任何词彼此相似。",
        })  # fmt: skip
    elif found is not None:
        sentences.append({
            "en": f"Of the pairs among {found.num_words:,} words, {rate(found.share_orthogonal)} are at right angles; "
            f"the mean absolute cosine is {found.mean_cosine:.3f}.",
            "zh": f"在 {found.num_words:,} 个词的词对中，{rate(found.share_orthogonal)} 正交；"
            f"余弦绝对值平均 {found.mean_cosine:.3f}。",
        })  # fmt: skip
    own = "" if last.learned is None else f"; this encoder's vectors take {_mib(last.learned)} MiB"
    own_zh = "" if last.learned is None else f"；该编码器的向量占 {_mib(last.learned)} MiB"
    sentences.append({
        "en": f"One-hot vectors of its {last.num_words:,} words take {_mib(last.one_hot_dense)} MiB written out and "
        f"{_mib(last.one_hot_sparse)} MiB as places{own}.",
        "zh": f"其 {last.num_words:,} 个词的独热向量全部写出占 {_mib(last.one_hot_dense)} MiB，"
        f"稀疏存储占 {_mib(last.one_hot_sparse)} MiB{own_zh}。",
    })  # fmt: skip
    return sentences


def _list_sentences(layer: LayerSimilarity) -> list[dict[str, str]]:
    sentences = [_correlation_sentence(file, item) for file, item in layer.correlations.items()]
    if (share := layer.triples) is not None:
        verdict = _against(share.low, share.high, 0.5)
        sentences.append({
            "en": f"In {percent(share)} of {share.num_items} triples the related word is the nearer one: {verdict[0]} "
            "(50 %).",
            "zh": f"{share.num_items} 个三元组中有 {percent(share)} 把相关的词排得更近：{verdict[1]}（50%）。",
        })  # fmt: skip
    if (found := layer.analogies) is not None:
        share, alone = found.accuracy, found.without_offset
        sentences.append({
            "en": f"{percent(share)} of {share.num_items} analogies are solved among the lists' {found.num_candidates} "
            f"words; taking the nearest word without the analogy solves {percent(alone)}.",
            "zh": f"在所列 {found.num_candidates} 个词中解出 {share.num_items} 道类比题的 {percent(share)}；"
            f"不做类比、只取最近词可解出 {percent(alone)}。",
        })  # fmt: skip
    return sentences


def _correlation_sentence(file: str, item: Correlation | None) -> dict[str, str]:
    if item is None:
        return {
            "en": f"{file}: the vectors give no ranking, as all known pairs are equally similar or too few are known.",
            "zh": f"{file}：向量给不出排序——已知词对的相似度全部相同，或已知的词对太少。",
        }
    verdict = _against(item.low, item.high, 0.0)
    interval = f"{item.value:.2f} [{item.low:.2f}, {item.high:.2f}]"
    known, total = item.num_items, item.num_pairs
    return {
        "en": f"{file}: Spearman's correlation with people is {interval} over {known} of {total} pairs, {verdict[0]}.",
        "zh": f"{file}：与人工评分的 Spearman 相关为 {interval}，{total} 对中的 {known} 对，{verdict[1]}。",
    }


def _against(low: float, high: float, chance: float) -> tuple[str, str]:
    if low > chance:
        return "above chance", "高于随机水平"
    if high < chance:
        return "below chance", "低于随机水平"
    return "not separable from chance", "与随机水平没有可分辨的差别"
