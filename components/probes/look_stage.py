"""Probe: pictures of a recurrent encoder's gates and of BERT's attention heads, for chosen sentences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import cast

import numpy as np
import torch

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.recurrent import RecurrentEncoder, load_recurrent
from components.errors import InputError
from components.fonts import find_font
from components.formats import read_encoder_card
from components.probes.attention import AttentionReader, LeftOut, WordAttention
from components.probes.curves import draw_attention, draw_gates, picture_language
from components.probes.gates import GatedLayer, Gates, gate_activations
from components.probes.probe_file import Figure, Findings, Table, say, table, write_findings, write_not_meaningful
from components.probes.structure_config import LookProbeConfig, LookSentence
from components.text.normalization import NormalizationConfig, normalize
from components.text.sentences import Language
from components.text.vocabulary import UNK_ID

GATE_NAMES = {
    "input": "输入门",
    "forget": "遗忘门",
    "output": "输出门",
    "reset": "重置门",
    "update": "更新门",
}
REASONS: dict[LeftOut, tuple[str, str]] = {
    "no_token": ("no token in it", "没有词"),
    "no_word": ("the word has no piece of its own", "找不到该词的词片"),
    "unknown": ("the encoder knows too little of it", "编码器认识得太少"),
    "too_long": ("longer than the encoder's positions", "超过编码器的位置数"),
}
MAX_HEADS_LISTED = 24


@dataclass
class _Seen:
    """What was drawn, and which sentences were left out for which reason."""

    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    left_out: Counter[LeftOut] = field(default_factory=Counter)


def probe_look(
    config: LookProbeConfig, *, encoder: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Draw what happens inside an encoder while it reads.

    Args:
        config: Sentences and language.
        encoder: Any encoder artifact; only LSTM, GRU and BERT have something to look at.
        out_dir: Receives ``probe.json`` and a picture per sentence.
        log_metrics: Unused; the probe takes seconds.

    Returns:
        ``look_<gate>_gate_mean`` and ``look_gate_state_difference`` for a recurrent encoder,
        ``look_attention_entropy`` in nats for BERT, with the number of sentences drawn and left out by reason; nothing
        for an encoder without gates and attention, or one that knows no sentence.

    Raises:
        InputError: A sentence is too long to draw.
    """
    card = read_encoder_card(encoder)
    family, language = str(card["family"]), config.language
    sentences = config.sentences or shipped_sentences(language)
    title = say(language, "Gates and attention, to look at", "门与注意力的直观图")
    if family != "bert" and (family != "recurrent" or card["cell"] == "rnn"):
        name = "recurrent encoder of plain cells" if family == "recurrent" else f"{family} encoder"
        write_not_meaningful(
            out_dir, "look", family, title, language=language,
            en=f"This {name} has neither gates nor attention: there is nothing to draw.",
            zh="该编码器既没有门也没有注意力，无图可画。",
        )  # fmt: skip
        return {}
    look = _look_at_attention if family == "bert" else _look_at_gates
    findings, left_out = look(config, encoder, sentences, out_dir)
    if not findings.figures:
        en, zh = (", ".join(f"{REASONS[why][place]}: {n}" for why, n in left_out.items()) for place in (0, 1))
        write_not_meaningful(
            out_dir, "look", family, title, language=language,
            en=f"None of the {len(sentences)} sentences can be drawn ({en}).",
            zh=f"{len(sentences)} 个句子都无法画出（{zh}）。",
        )  # fmt: skip
        return {}
    findings.tables.append(_ledger(language, len(findings.figures), left_out))
    findings.metrics["look_num_sentences"] = float(len(findings.figures))
    findings.metrics.update({f"look_num_dropped_{why}": float(left_out[why]) for why in REASONS})
    return write_findings(out_dir, "look", family, title, findings, language=language)


def shipped_sentences(language: Language) -> tuple[LookSentence, ...]:
    """The sentences that ship for a language."""
    text = (files("components.probes") / "lists" / f"look_{language}.json").read_text(encoding="utf-8")
    return tuple(LookSentence(**row) for row in json.loads(text))


def _clean(text: str) -> str:
    return normalize(text, NormalizationConfig()).text


def _check_length(length: int, limit: int, text: str) -> None:
    if length > limit:
        raise InputError(
            f"sentence {text[:20]!r}… has {length} tokens, limit {limit}",
            remedy="choose a shorter sentence or raise max_seq_length",
        )


def _ledger(language: Language, num_drawn: int, left_out: Counter[LeftOut]) -> Table:
    rows = [
        [say(language, "drawn", "已画"), num_drawn],
        *([say(language, *REASONS[why]), left_out[why]] for why in REASONS),
        [say(language, "all", "合计"), num_drawn + left_out.total()],
    ]
    columns = ["", say(language, "sentences", "数量")]
    return table(say(language, "Sentences", "句子"), columns, rows)


def _look_at_gates(
    config: LookProbeConfig, encoder: Path, sentences: Sequence[LookSentence], out_dir: Path
) -> tuple[Findings, Counter[LeftOut]]:
    model, seen, found = load_recurrent(encoder), _Seen(), list[Gates]()
    for number, sentence in enumerate(sentences, 1):
        ids = model.encode(_clean(sentence.text))
        if 2 * ids.count(UNK_ID) >= len(ids):
            seen.left_out["unknown" if ids else "no_token"] += 1
            continue
        _check_length(len(ids), config.max_seq_length, sentence.text)
        with torch.no_grad():
            gates = gate_activations(cast("GatedLayer", model.stacks[0]), model.embedding(torch.tensor(ids)))
        found.append(gates)
        _show_gates(config.language, seen, model, ids, gates, sentence.text, out_dir / f"gates_{number}.png")
    if not found:
        return Findings({}), seen.left_out
    means = {name: float(np.mean([gates.by_name[name].mean() for gates in found])) for name in found[0].by_name}
    difference = max(gates.state_difference for gates in found)
    metrics = {f"look_{name}_gate_mean": mean for name, mean in means.items()}
    findings = Findings(
        metrics | {"look_gate_state_difference": difference}, tuple(metrics), seen.tables, seen.figures,
        [_gate_sentence(means, difference)],
    )  # fmt: skip
    return findings, seen.left_out


def _show_gates(
    language: Language, seen: _Seen, model: RecurrentEncoder, ids: list[int], gates: Gates, text: str, path: Path
) -> None:
    tokens = [model.vocabulary.words[index] for index in ids]
    written = picture_language(language)
    draw_gates(
        {say(written, name, GATE_NAMES[name]): gate for name, gate in gates.by_name.items()}, tokens, path,
        title=say(written, "Gates over time (rows: units)", "门随时间的变化（每行一个单元）"),
        bar=say(written, "0 closed, 1 open", "0 关，1 开"),
    )  # fmt: skip
    caption = say(language, "Openings of the gates while reading: ", "阅读时各门的开度：")
    seen.figures.append(Figure(path.name, caption + text))
    columns = [say(language, "token", "词"), *(say(language, name, GATE_NAMES[name]) for name in gates.by_name)]
    rows = [
        [token, *(round(float(gate[place].mean()), 3) for gate in gates.by_name.values())]
        for place, token in enumerate(tokens)
    ]
    seen.tables.append(table(say(language, "Mean gate: ", "门的均值：") + text, columns, rows))


def _gate_sentence(means: dict[str, float], difference: float) -> dict[str, str]:
    en = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
    zh = "，".join(f"{GATE_NAMES[name]} {mean:.2f}" for name, mean in means.items())
    return {
        "en": f"Mean opening of the gates (0 closed, 1 open) while reading forwards: {en}. States worked out from "
        f"these gates differ from the encoder's own by at most {difference:.0e}.",
        "zh": f"正向阅读时各门的平均开度（0 关，1 开）：{zh}。"
        f"由这些门推出的状态与编码器自身的状态最多相差 {difference:.0e}。",
    }


def _look_at_attention(
    config: LookProbeConfig, encoder: Path, sentences: Sequence[LookSentence], out_dir: Path
) -> tuple[Findings, Counter[LeftOut]]:
    reader, seen, found = AttentionReader(encoder), _Seen(), list[WordAttention]()
    for number, sentence in enumerate(sentences, 1):
        text, word = _clean(sentence.text), _clean(sentence.word)
        start = text.find(word) if word else -1
        attention = "no_word" if start < 0 else reader.read(text, start, start + len(word))
        if not isinstance(attention, WordAttention):
            seen.left_out[attention] += 1
            continue
        _check_length(len(attention.tokens), config.max_seq_length, sentence.text)
        found.append(attention)
        _show_attention(config.language, seen, word, attention, sentence.text, out_dir / f"attention_{number}.png")
    if not found:
        return Findings({}), seen.left_out
    entropy = float(np.mean([attention.entropy for attention in found]))
    length = float(np.mean([len(attention.tokens) for attention in found]))
    spread = np.exp(entropy)
    said = {
        "en": f"From the chosen words a head spreads over {spread:.1f} of {length:.1f} pieces on average (exponential "
        "of its mean entropy).",
        "zh": f"从所选词出发，一个头平均关注 {length:.1f} 个词片中的 {spread:.1f} 个（平均熵的指数）。",
    }
    metrics = {"look_attention_entropy": entropy}
    return Findings(metrics, tuple(metrics), seen.tables, seen.figures, [said]), seen.left_out


def _show_attention(
    language: Language, seen: _Seen, word: str, attention: WordAttention, text: str, path: Path
) -> None:
    written = picture_language(language)
    # Where no font has the word's characters, the picture's number stands for it.
    shown = word if find_font([word]) else f"#{len(seen.figures) + 1}"
    draw_attention(
        attention.weights, attention.tokens, path,
        title=say(written, f"Attention from “{shown}”", f"“{shown}”的注意力"),
        panel=say(written, "layer", "层"), row=say(written, "head", "头"), bar=say(written, "weight", "权重"),
        marked=attention.places,
    )  # fmt: skip
    caption = say(language, f"Where the heads look from “{word}” in: ", f"各注意力头从“{word}”看向哪里：")
    seen.figures.append(Figure(path.name, caption + text))
    seen.tables.append(_head_table(language, word, attention))


def _head_table(language: Language, word: str, found: WordAttention) -> Table:
    num_layers, num_heads, _ = found.weights.shape
    places = [(layer, head) for layer in range(num_layers) for head in range(num_heads)]
    sharpest = sorted(places, key=lambda place: -found.weights[place].max())[:MAX_HEADS_LISTED]
    rows = [
        [layer + 1, head + 1, found.tokens[int(found.weights[layer, head].argmax())],
         round(float(found.weights[layer, head].max()), 3)]
        for layer, head in sorted(sharpest)
    ]  # fmt: skip
    columns = say(language, "layer|head|looks most at|weight", "层|头|最关注|权重").split("|")
    return table(say(language, f"Sharpest heads from “{word}”", f"“{word}”最集中的注意力头"), columns, rows)
