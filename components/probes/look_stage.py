"""Probe: pictures of a recurrent encoder's gates and of BERT's attention heads, for chosen sentences."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.recurrent import load_recurrent
from components.errors import InputError
from components.formats import read_encoder_card
from components.probes.attention import AttentionReader, WordAttention
from components.probes.curves import draw_attention, draw_gates, picture_language
from components.probes.gates import gate_activations
from components.probes.pictures import find_font
from components.probes.probe_file import Findings, say, table, write_findings, write_not_meaningful
from components.probes.structure_config import Language, LookProbeConfig, LookSentence
from components.text.normalization import NormalizationConfig, normalize

GATE_NAMES = {
    "input": "输入门",
    "forget": "遗忘门",
    "output": "输出门",
    "reset": "重置门",
    "update": "更新门",
}
MAX_HEADS_LISTED = 24


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
        ``look_<gate>_gate_mean`` for a recurrent encoder; ``look_attention_entropy`` in nats for BERT; nothing else.

    Raises:
        InputError: A sentence is too long to draw.
    """
    family = str(read_encoder_card(encoder)["family"])
    sentences = config.sentences or shipped_sentences(config.language)
    title = say(config.language, "Gates and attention, to look at", "门与注意力的直观图")
    if family == "bert":
        findings = _look_at_attention(config, encoder, sentences, out_dir)
        return write_findings(out_dir, "look", family, title, findings)
    if family == "recurrent" and read_encoder_card(encoder)["cell"] != "rnn":
        findings = _look_at_gates(config, encoder, sentences, out_dir)
        return write_findings(out_dir, "look", family, title, findings)
    write_not_meaningful(
        out_dir, "look", family, title, language=config.language,
        en=f"This {family} encoder has neither gates nor attention: there is nothing to draw.",
        zh="该编码器既没有门也没有注意力，无图可画。",
    )  # fmt: skip
    return {}


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


def _look_at_gates(
    config: LookProbeConfig, encoder: Path, sentences: tuple[LookSentence, ...], out_dir: Path
) -> Findings:
    model = load_recurrent(encoder)
    written = picture_language(config.language)
    findings, totals = Findings({}), dict[str, list[float]]()
    for number, sentence in enumerate(sentences, 1):
        ids = model.encode(_clean(sentence.text))
        if not ids:
            continue
        _check_length(len(ids), config.max_seq_length, sentence.text)
        with torch.no_grad():
            gates = gate_activations(model.stacks[0], model.embedding(torch.tensor(ids)))  # type: ignore[arg-type]
        tokens = [model.vocabulary.words[index] for index in ids]
        shown = {say(written, name, GATE_NAMES[name]): gate for name, gate in gates.items()}
        picture = f"gates_{number}.png"
        heading = say(written, "Gates over time (rows: units)", "门随时间的变化（每行一个单元）")
        draw_gates(shown, tokens, out_dir / picture, title=heading)
        findings.pictures.append(picture)
        columns = [say(config.language, "token", "词"), *(say(config.language, n, GATE_NAMES[n]) for n in gates)]
        rows = [
            [token, *(round(float(gate[t].mean()), 3) for gate in gates.values())] for t, token in enumerate(tokens)
        ]
        findings.tables.append(table(say(config.language, "Mean gate: ", "门的均值：") + sentence.text, columns, rows))
        for name, gate in gates.items():
            totals.setdefault(name, []).append(float(gate.mean()))
    means = {name: float(np.mean(values)) for name, values in totals.items()}
    findings.metrics.update({f"look_{name}_gate_mean": mean for name, mean in means.items()})
    if means:
        en = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
        zh = "，".join(f"{GATE_NAMES[name]} {mean:.2f}" for name, mean in means.items())
        findings.sentences.append(
            {
                "en": f"Mean opening of the gates (0 closed, 1 open) while reading forwards: {en}.",
                "zh": f"正向阅读时各门的平均开度（0 关，1 开）：{zh}。",
            }
        )
    return findings


def _look_at_attention(
    config: LookProbeConfig, encoder: Path, sentences: tuple[LookSentence, ...], out_dir: Path
) -> Findings:
    reader = AttentionReader(encoder)
    written = picture_language(config.language)
    findings, entropies = Findings({}), []
    for number, sentence in enumerate(sentences, 1):
        text, word = _clean(sentence.text), _clean(sentence.word)
        start = text.find(word)
        found = reader.read(text, start, start + len(word)) if start >= 0 else None
        if found is None:
            continue
        _check_length(len(found.tokens), config.max_seq_length, sentence.text)
        picture = f"attention_{number}.png"
        # Where no font has the word's characters, the number of the sentence stands for it.
        shown = word if find_font([word]) else str(number)
        heading = say(written, f"Attention from “{shown}”", f"“{shown}”的注意力")
        draw_attention(
            found.weights, found.tokens, out_dir / picture,
            title=heading, panel=say(written, "layer", "层"), row=say(written, "head", "头"),
        )  # fmt: skip
        findings.pictures.append(picture)
        findings.tables.append(_head_table(config.language, word, found))
        entropies.append(float(-(found.weights * np.log(np.maximum(found.weights, 1e-12))).sum(-1).mean()))
    if entropies:
        mean = float(np.mean(entropies))
        findings.metrics["look_attention_entropy"] = mean
        findings.sentences.append(
            {
                "en": f"From the chosen words a head spreads over {np.exp(mean):.1f} pieces on average (exponential of "
                "its mean entropy).",
                "zh": f"从所选词出发，一个头平均关注 {np.exp(mean):.1f} 个词片（平均熵的指数）。",
            }
        )
    return findings


def _head_table(language: Language, word: str, found: WordAttention) -> dict[str, object]:
    num_layers, num_heads, _ = found.weights.shape
    places = [(layer, head) for layer in range(num_layers) for head in range(num_heads)]
    sharpest = sorted(places, key=lambda place: -found.weights[place].max())[:MAX_HEADS_LISTED]
    rows = [
        [layer + 1, head + 1, found.tokens[int(found.weights[layer, head].argmax())],
         round(float(found.weights[layer, head].max()), 3)]
        for layer, head in sorted(sharpest)
    ]  # fmt: skip
    columns = [
        say(language, en, zh)
        for en, zh in (("layer", "层"), ("head", "头"), ("looks most at", "最关注"), ("weight", "权重"))
    ]
    return table(say(language, f"Sharpest heads from “{word}”", f"“{word}”最集中的注意力头"), columns, rows)
