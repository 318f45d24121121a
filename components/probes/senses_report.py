"""What the probe "one word, two senses" found, in words, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.contract import Metrics
from components.probes.curves import picture_language
from components.probes.intervals import Share
from components.probes.layers import layer_name
from components.probes.meaning_config import SenseProbeConfig
from components.probes.pictures import Bar, Cloud, draw_clouds, draw_intervals
from components.probes.probe_file import Figure, Findings, percent, rate, say, table
from components.probes.senses import Credits, chance_level, two_dimensions, word_accuracy
from components.probes.word_files import SenseContext
from components.text.sentences import Language

NUM_PICTURE_WORDS = 4
HEADLINE = ("sense_accuracy", "sense_accuracy_low", "sense_accuracy_high", "sense_chance")
_STATIC = {"bag_of_words", "word2vec"}


@dataclass(frozen=True)
class SenseLayer:
    """What was found at one layer."""

    layer: str
    """The encoder's name of it."""
    credits: Mapping[str, Credits]
    """By word; a word of which too little is known here is absent."""
    accuracy: Share | None

    def name(self, language: Language) -> str:
        """Its name for readers."""
        return layer_name(self.layer, language)


def title_of(language: Language) -> str:
    """Heading of the probe."""
    return say(language, "One word, two senses", "一词两义")


def describe(
    config: SenseProbeConfig,
    family: str,
    layers: Sequence[SenseLayer],
    headline: int,
    metrics: Metrics,
    figures: list[Figure],
) -> Findings:
    """Tables by layer and by word, and sentences about the headline layer, which was measured."""
    tables = [_layer_table(config.language, layers), _word_table(config.language, layers[headline])]
    return Findings(metrics, HEADLINE, tables, figures, _sentences(family, layers, headline))


def draw(
    config: SenseProbeConfig,
    layers: Sequence[SenseLayer],
    headline: int,
    contexts: Sequence[SenseContext],
    vectors: NDArray[np.float32],
    out_dir: Path,
) -> list[Figure]:
    """Draw accuracy by layer, and the contexts of some words at the headline layer; returns the figures."""
    language = picture_language(config.language)
    by_layer = say(
        config.language,
        "How often the sense of an ambiguous word is found from its vector, by layer",
        "各层用词向量判断多义词词义的准确率",
    )
    measured = [(layer.name(language), layer.accuracy) for layer in layers if layer.accuracy is not None]
    draw_intervals(
        [Bar(name, share.value, share.low, share.high) for name, share in measured],
        chance=_chance(layers[headline]), chance_name=say(language, "chance", "随机水平"), title=title_of(language),
        axis=say(language, "sense accuracy, 95 % interval", "词义准确率，95% 区间"), path=out_dir / "senses.png",
    )  # fmt: skip
    words = config.picture_words or tuple(layers[headline].credits)[:NUM_PICTURE_WORDS]
    clouds = [cloud for word in words if (cloud := _cloud(word, contexts, vectors)) is not None]
    if not clouds:
        return [Figure("senses.png", by_layer)]
    title = say(language, "Contexts in the plane (principal components)", "语境的二维投影（主成分）")
    draw_clouds(clouds, title=f"{title} · {layers[headline].name(language)}", path=out_dir / "contexts.png")
    in_plane = say(
        config.language,
        "Sentences with one word, projected on two principal components; the marker is the sense",
        "含同一个词的句子投影到前两个主成分；标记表示词义",
    )
    return [Figure("senses.png", by_layer), Figure("contexts.png", in_plane)]


def _cloud(word: str, contexts: Sequence[SenseContext], vectors: NDArray[np.float32]) -> Cloud | None:
    finite = np.isfinite(vectors.sum(axis=1))
    rows = [row for row, context in enumerate(contexts) if context.word == word and finite[row]]
    if not rows:
        return None
    return Cloud(word, two_dimensions(vectors[rows]), [contexts[row].sense for row in rows])


def _chance(layer: SenseLayer) -> float:
    return chance_level(item.senses for item in layer.credits.values())


def _layer_table(language: Language, layers: Sequence[SenseLayer]) -> dict[str, object]:
    columns = say(
        language, "layer|accuracy|95 % from|to|chance|words|contexts", "层|准确率|95% 下限|上限|随机水平|词数|语境数"
    ).split("|")
    rows: list[list[str | float]] = [
        [layer.name(language), rate(share.value), rate(share.low), rate(share.high), rate(_chance(layer)),
         len(layer.credits), share.num_items]
        for layer in layers if (share := layer.accuracy) is not None
    ]  # fmt: skip
    return table(say(language, "Sense accuracy by layer, leave one out", "各层词义准确率（留一法）"), columns, rows)


def _word_table(language: Language, layer: SenseLayer) -> dict[str, object]:
    columns = say(language, "word|senses|accuracy|contexts", "词|词义|准确率|语境数").split("|")
    rows: list[list[str | float]] = [
        [word, " / ".join(dict.fromkeys(item.senses)), rate(word_accuracy(item)), len(item.senses)]
        for word, item in layer.credits.items()
    ]
    return table(say(language, f"By word, {layer.name(language)}", f"按词，{layer.name(language)}"), columns, rows)


def _sentences(family: str, layers: Sequence[SenseLayer], headline: int) -> list[dict[str, str]]:
    layer, chance = layers[headline], _chance(layers[headline])
    assert layer.accuracy is not None
    share = layer.accuracy
    if headline == 0:
        return [_static_sentence(family, share)]
    found = {
        "above": ("tells the senses apart better than guessing", "区分词义优于随机"),
        "below": ("is below guessing", "低于随机"),
        "same": ("is not separable from guessing", "与随机水平没有可分辨的差别"),
    }["above" if share.low > chance else "below" if share.high < chance else "same"]
    figures = f"{percent(share)}"
    sentences = [{
        "en": f"At {layer.name('en')}, the word's vector {found[0]}: {figures} against {rate(chance)} by chance, "
        f"{len(layer.credits)} words.",
        "zh": f"{layer.name('zh')}的词向量{found[1]}：{figures}，随机水平 {rate(chance)}，"
        f"共 {len(layer.credits)} 个词。",
    }]  # fmt: skip
    before = layers[0].accuracy
    if before is not None:
        sentences.append(_static_sentence(family, before))
    return sentences


def _static_sentence(family: str, share: Share) -> dict[str, str]:
    if family in _STATIC:
        return {
            "en": "Every word has one vector whatever the sentence says, so all decisions are ties: "
            f"{rate(share.value)}, chance by construction.",
            "zh": f"不论句子如何，每个词只有一个向量，所有判断都是平局：{rate(share.value)}，必然等于随机水平。",
        }
    return {
        "en": f"Before any context is read, the word has one vector and accuracy is {rate(share.value)}, chance by "
        "construction.",
        "zh": f"读上下文之前每个词只有一个向量，准确率为 {rate(share.value)}，必然等于随机水平。",
    }
