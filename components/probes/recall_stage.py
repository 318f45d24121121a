"""Probe: how far back do networks of one size learn to remember, and how far do their gradients reach?

Legend of shape suffixes: S seeds, K distances, N test sequences, R resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.probes.curves import Curve, draw_curves, picture_language
from components.probes.draws import generator_at
from components.probes.gradients import gradient_norms
from components.probes.intervals import percentiles, resample_seeds
from components.probes.probe_file import NO_ENCODER, Figure, Findings, Table, say, table, write_findings
from components.probes.recall import RecallModel, RecallTask, RecurrentReader, build_model, count_parameters
from components.probes.structure_config import RecallModelName, RecallProbeConfig
from components.training import StepLoss, TrainingSettings, train

NAMES: dict[RecallModelName, str] = {"rnn": "RNN", "lstm": "LSTM", "bilstm": "BiLSTM", "bert": "BERT"}
GRADIENT_MODELS: tuple[RecallModelName, ...] = ("rnn", "lstm")
_TEST, _GRADIENT = 1 << 30, 1 << 29
_GRADIENT_SEQUENCES = 16
_WARMUP_SHARE = 0.1


@dataclass(frozen=True)
class RecallResult:
    """What one kind of model did in all its trainings."""

    num_parameters: int
    accuracy_K: NDArray[np.float64]
    low_K: NDArray[np.float64]
    high_K: NDArray[np.float64]
    memory: int
    """The largest tested distance up to which accuracy lies above the middle of chance and 1; 0 when there is none."""
    memory_low: int
    memory_high: int
    gradients: dict[str, NDArray[np.float64]]
    """"before" and "after" training: mean gradient norm by distance; empty for models that are not asked."""


def probe_recall(config: RecallProbeConfig, *, out_dir: Path, log_metrics: LogMetrics = ignore_metrics) -> Metrics:
    """Train every network on the recall task and measure accuracy against distance.

    The probe is about architectures, not about a particular encoder: all are trained here, from scratch, with the same
    steps, sequences and learning rate and as many parameters. What it finds is what was learned under this training,
    not what a network could hold; the setting is part of every sentence.

    Args:
        config: Distances, sizes and schedule.
        out_dir: Receives ``probe.json``, ``recall.png``, ``gradients.png``.
        log_metrics: Receives ``progress``.

    Returns:
        ``recall_<model>_memory`` in tokens, ``recall_<model>_accuracy`` over all distances, and
        ``recall_<model>_log10_gradient_reach``.
    """
    task = RecallTask(config.num_values, config.num_fillers, config.distances, config.max_lead)
    results: dict[RecallModelName, RecallResult] = {}
    for number, name in enumerate(config.models):
        results[name] = run_model(name, task, config)
        log_metrics({"progress": (number + 1) / len(config.models)})
    findings = Findings(
        _metrics(results),
        tuple(f"recall_{name}_memory" for name in results),
        [_accuracy_table(results, task, config), *_gradient_tables(results, config)],
        _draw(results, task, config, out_dir),
        _sentences(results, config),
    )
    title = say(
        config.language, "Distance: how far back a network learned to remember", "距离：网络学会记住多远之前的词"
    )
    return write_findings(out_dir, "recall", NO_ENCODER, title, findings, language=config.language)


def run_model(name: RecallModelName, task: RecallTask, config: RecallProbeConfig) -> RecallResult:
    """Train and test one kind of model from every seed."""
    right, gradients, num_parameters = list[NDArray[np.bool_]](), dict[str, NDArray[np.float64]](), 0
    for number in range(config.num_seeds):
        seed = config.seed + number
        model = build_model(name, task, config.num_parameters, seed)
        num_parameters = count_parameters(model)
        watched = model if number == 0 and name in GRADIENT_MODELS else None
        if isinstance(watched, RecurrentReader):
            gradients["before"] = reach(watched, task, seed)
        _train(model, task, config, seed)
        right.append(_test(model, task, config.num_test_sequences, seed))
        if isinstance(watched, RecurrentReader):
            gradients["after"] = reach(watched, task, seed)
    right_SKN = np.stack(right)
    accuracy_RK, memory_R = resample_seeds(
        right_SKN, lambda row: memory_length(row, task), num_resamples=config.num_resamples, seed=config.seed
    )
    bands = np.array([percentiles(column) for column in accuracy_RK.T])
    accuracy_K = right_SKN.mean(axis=(0, 2))
    low, high = (int(bound) for bound in np.quantile(memory_R, [0.025, 0.975], method="inverted_cdf"))
    return RecallResult(
        num_parameters, accuracy_K, bands[:, 0], bands[:, 1], int(memory_length(accuracy_K, task)), low, high, gradients
    )


def memory_length(accuracy_K: NDArray[np.float64], task: RecallTask) -> float:
    """Effective memory length: the largest tested distance up to which accuracy is above the middle of chance and 1.

    Args:
        accuracy_K: Accuracy at each of the task's distances.
        task: Gives the distances, rising, and chance.

    Returns:
        Tokens; 0 where accuracy at the shortest distance is not above the middle.
    """
    below = np.flatnonzero(accuracy_K <= (1 + task.chance) / 2)
    reached = int(below[0]) if below.size else len(task.distances)
    return float(task.distances[reached - 1]) if reached else 0.0


def reach(model: RecurrentReader, task: RecallTask, seed: int) -> NDArray[np.float64]:
    """Gradient norms by distance on sequences of the longest distance."""
    generator = generator_at(seed, _GRADIENT)
    input_ids_BL, _ = task.draw(task.distances[-1], _GRADIENT_SEQUENCES, generator)
    norms: NDArray[np.float64] = gradient_norms(model.read, model.embedding(input_ids_BL))[: task.distances[-1] + 1]
    return norms


def _train(model: RecallModel, task: RecallTask, config: RecallProbeConfig, seed: int) -> None:
    def losses_at(step: int) -> Iterator[StepLoss]:
        input_ids_BL, values_B = task.training_batch(step, config.batch_size, seed)
        yield StepLoss(nn.functional.cross_entropy(model(input_ids_BL), values_B))

    warmup_steps = int(_WARMUP_SHARE * config.num_train_steps)
    train(model, losses_at, TrainingSettings(config.num_train_steps, config.learning_rate, seed, warmup_steps))
    model.eval()


def _test(model: RecallModel, task: RecallTask, num_sequences: int, seed: int) -> NDArray[np.bool_]:
    generator = generator_at(seed, _TEST)
    rows = []
    with torch.inference_mode():
        for distance in task.distances:
            input_ids_BL, values_B = task.draw(distance, num_sequences, generator)
            rows.append((model(input_ids_BL).argmax(-1) == values_B).numpy())
    return np.stack(rows)


def _metrics(results: dict[RecallModelName, RecallResult]) -> Metrics:
    metrics: Metrics = {}
    for name, result in results.items():
        metrics[f"recall_{name}_memory"] = float(result.memory)
        metrics[f"recall_{name}_accuracy"] = float(result.accuracy_K.mean())
        if result.gradients:
            norms = result.gradients["after"]
            metrics[f"recall_{name}_log10_gradient_reach"] = float(np.log10(norms[-1] / norms[1]))
    return metrics


def _accuracy_table(results: dict[RecallModelName, RecallResult], task: RecallTask, config: RecallProbeConfig) -> Table:
    columns = [
        say(config.language, "network", "网络"),
        say(config.language, "parameters", "参数量"),
        say(config.language, "memory in tokens [95 %]", "记忆长度（词）[95 %]"),
        *(f"k = {distance}" for distance in task.distances),
    ]
    rows = [
        [NAMES[name], result.num_parameters, f"{result.memory} [{result.memory_low}, {result.memory_high}]"]
        + [
            f"{value:.2f} [{low:.2f}, {high:.2f}]"
            for value, low, high in zip(result.accuracy_K, result.low_K, result.high_K, strict=True)
        ]
        for name, result in results.items()
    ]
    title = say(
        config.language,
        f"Accuracy when the deciding token lies k positions back (chance {task.chance:.2f})",
        f"关键词在 k 个位置之前时的准确率（随机水平 {task.chance:.2f}）",
    )
    return table(title, columns, rows)


def _gradient_tables(results: dict[RecallModelName, RecallResult], config: RecallProbeConfig) -> list[Table]:
    watched = {name: result.gradients for name, result in results.items() if result.gradients}
    if not watched:
        return []
    title = say(
        config.language,
        "Gradient norm at distance k, relative to distance 1",
        "距离 k 处的梯度范数（相对于距离 1）",
    )
    when = {"before": say(config.language, "untrained", "训练前"), "after": say(config.language, "trained", "训练后")}
    rows = [
        [NAMES[name], when[moment], *(f"{norms[distance] / norms[1]:.1e}" for distance in config.distances)]
        for name, moments in watched.items()
        for moment, norms in moments.items()
    ]
    columns = [say(config.language, "network", "网络"), "", *(f"k = {distance}" for distance in config.distances)]
    return [table(title, columns, rows)]


def _draw(
    results: dict[RecallModelName, RecallResult], task: RecallTask, config: RecallProbeConfig, out_dir: Path
) -> list[Figure]:
    language, spoken = picture_language(config.language), config.language
    curves = {
        NAMES[name]: Curve(list(task.distances), result.accuracy_K, result.low_K, result.high_K)  # type: ignore[arg-type]
        for name, result in results.items()
    }
    x = say(language, "distance k (tokens)", "距离 k（词）")
    draw_curves(
        curves, out_dir / "recall.png", x=x, y=say(language, "accuracy", "准确率"),
        title=say(
            language,
            f"Learned in {config.num_train_steps:,} steps at {config.num_parameters:,} parameters",
            f"{config.num_parameters:,} 个参数训练 {config.num_train_steps:,} 步后学会的记忆",
        ),
        level=(say(language, "chance", "随机"), task.chance),
    )  # fmt: skip
    when = {"before": say(language, "untrained", "训练前"), "after": say(language, "trained", "训练后")}
    norms = {
        f"{NAMES[name]}, {when[moment]}": Curve(range(1, len(values)), values[1:].tolist())
        for name, result in results.items()
        for moment, values in result.gradients.items()
    }
    caption = say(
        spoken,
        "Accuracy of recalling a token k positions back, learned under this training; bands: 95 %",
        "回忆 k 个位置之前的词的准确率（在此训练下学会的）；色带：95 %",
    )
    figures = [Figure("recall.png", caption)]
    if not norms:
        return figures
    title = say(language, "Gradient of the answer by distance", "答案对各距离输入的梯度")
    y = say(language, "gradient norm", "梯度范数")
    draw_curves(norms, out_dir / "gradients.png", title=title, x=x, y=y, logarithmic=True)
    caption = say(
        spoken,
        "How much the answer still depends on the input k positions back, before and after training",
        "训练前后，答案对 k 个位置之前的输入的依赖程度",
    )
    return [*figures, Figure("gradients.png", caption)]


def _sentences(results: dict[RecallModelName, RecallResult], config: RecallProbeConfig) -> list[dict[str, str]]:
    first, last = config.distances[0], config.distances[-1]

    def length(result: RecallResult, less: str, least: str) -> str:
        interval = f"[{result.memory_low}, {result.memory_high}]"
        if result.memory == 0:
            return f"{less} {first} {interval}"
        return f"{least} {last} {interval}" if result.memory == last else f"{result.memory} {interval}"

    en = "; ".join(f"{NAMES[name]} {length(r, 'less than', 'at least')}" for name, r in results.items())
    zh = "；".join(f"{NAMES[name]} {length(r, '不足', '至少')}" for name, r in results.items())
    trainings = "training" if config.num_seeds == 1 else "trainings"
    memory = {
        "en": f"Learned under this training ({config.num_train_steps:,} steps at {config.num_parameters:,} parameters, "
        f"{config.num_seeds} {trainings} each), effective memory in tokens with its 95 % interval: {en}.",
        "zh": f"在此训练下（{config.num_parameters:,} 个参数、{config.num_train_steps:,} 步，"
        f"各训练 {config.num_seeds} 次）学会的有效记忆长度（词）及 95 % 区间：{zh}。",
    }
    reaches = [_reach_sentence(NAMES[name], r.gradients["after"], last) for name, r in results.items() if r.gradients]
    return [memory, *reaches]


def _reach_sentence(name: str, norms: NDArray[np.float64], last: int) -> dict[str, str]:
    ratio = f"{norms[last] / norms[1]:.0e}"
    return {
        "en": f"In the trained {name}, the gradient {last} tokens back is {ratio} of the one next to the query.",
        "zh": f"训练后的 {name} 中，{last} 个词之前的梯度是查询前一词处的 {ratio} 倍。",
    }
