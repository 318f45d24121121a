"""The one training loop, shared by recurrent language models, BERT pretraining and fine-tuning.

Randomness is a function of (seed, step): the loop reseeds torch before every step, and callers derive a step's data
from the step number. A checkpoint therefore needs no generator state, and a resumed run repeats and skips nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from components.checkpoints import CheckpointState, latest_checkpoint, resume, save_checkpoint
from components.contract import LogMetrics, ignore_metrics
from components.errors import TrainingError

__all__ = [
    "CheckpointState",
    "Precision",
    "StepLoss",
    "TrainingResult",
    "TrainingSettings",
    "autocast",
    "choose_device",
    "choose_precision",
    "latest_checkpoint",
    "learning_rate_at",
    "make_optimizer",
    "resume",
    "save_checkpoint",
    "seed_everything",
    "step_seed",
    "train",
]

logger = logging.getLogger(__name__)

Precision = Literal["float32", "bfloat16"]


def seed_everything(seed: int) -> None:
    """Seed torch on every device; numpy users take their own ``Generator`` from the same seed."""
    torch.manual_seed(seed)


def step_seed(seed: int, step: int) -> int:
    """A seed for one training step, of 64 well-mixed bits.

    The CPU's generator reads only the low 32 bits of a seed, so that packing seed and step side by side would give
    every seed the same numbers at a step.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{step}".encode()).digest()[:8], "big") >> 1


def choose_device() -> torch.device:
    """CUDA where there is one, else the CPU; ``RUNGS_DEVICE`` overrides, as a property of the machine."""
    return torch.device(os.environ.get("RUNGS_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))


def choose_precision(requested: Literal["auto", "float32", "bfloat16"], device: torch.device) -> Precision:
    """bfloat16 where the hardware multiplies it natively (CUDA 8.0+, CPUs with AVX512-BF16 or AMX), else float32."""
    if requested != "auto":
        return requested
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = torch.ops.mkldnn._is_mkldnn_bf16_supported() and _cpu_has_bf16()
    return "bfloat16" if native else "float32"


def _cpu_has_bf16() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and any(flag in cpuinfo.read_text() for flag in ("avx512_bf16", "amx_bf16"))


def autocast(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """bfloat16 autocast over float32 master weights, or nothing."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")


@dataclass(frozen=True)
class TrainingSettings:
    """Flat settings of one training run, in the field's usual names and units."""

    num_train_steps: int
    learning_rate: float
    seed: int
    warmup_steps: int = 0
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    schedule: Literal["linear", "constant"] = "linear"
    max_minutes: float | None = None
    """Wall clock to fill instead of ``num_train_steps``; the result then depends on the machine's speed."""
    checkpoint_every_steps: int = 200
    log_every_steps: int = 20
    precision: Precision = "float32"
    learning_rate_scales: Mapping[str, float] = field(default_factory=dict)
    """Factor on the learning rate of the parameters whose name starts with the key; 1 for all others."""


@dataclass(frozen=True)
class StepLoss:
    """One micro-batch's share of a step's loss. The shares of a step add up to the loss of the whole batch."""

    loss: Tensor
    metrics: Mapping[str, Tensor | float] = field(default_factory=dict)
    """Values to average over steps, each detached; of a step's micro-batches the sum is taken."""
    row_ids: tuple[str, ...] = ()
    """Where the rows came from, to name them when the loss is not finite."""


@dataclass(frozen=True)
class TrainingResult:
    """What a finished run reports beside its weights."""

    num_steps: int
    seconds: float
    """Wall-clock time of the loop over all attempts, including those before a resume."""
    resumed_from_step: int
    final_metrics: dict[str, float]
    step_seconds: float = 0.0
    """Wall-clock time of this attempt in training steps alone: batches, forward, backward, update."""


def train(
    model: nn.Module,
    losses_at: Callable[[int], Iterable[StepLoss]],
    settings: TrainingSettings,
    *,
    checkpoint_dir: Path | None = None,
    log_metrics: LogMetrics = ignore_metrics,
    on_step: Callable[[int], None] | None = None,
) -> TrainingResult:
    """Train ``model`` in place with AdamW until its steps or minutes are used up.

    Args:
        model: Module on its device; parameters stay float32.
        losses_at: Gives the micro-batch losses of step 0, 1, …; must depend on nothing but the step and fixed data.
        settings: Schedule and optimiser settings.
        checkpoint_dir: Where to save every ``checkpoint_every_steps`` and to resume from; None trains in one go.
        log_metrics: Receives averages every ``log_every_steps`` and ``progress`` in [0, 1].
        on_step: Called after each step with the number of finished steps.

    Raises:
        TrainingError: A loss, gradient norm or weight is not finite (the last good checkpoint stays), or the disk is
            full.
    """
    optimizer = make_optimizer(model, settings)
    state = resume(model, optimizer, checkpoint_dir) if checkpoint_dir else CheckpointState()
    step, averages, window = state.step, dict(state.metrics), _Window(state.window)
    started, step_seconds = time.perf_counter() - state.seconds, 0.0
    model.train()
    while (progress := _progress(settings, step, time.perf_counter() - started)) < 1.0:
        begun = time.perf_counter()
        learning_rate = learning_rate_at(settings, step, progress)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * group["scale"]
        torch.manual_seed(step_seed(settings.seed, step))
        window.add(_train_step(model, optimizer, losses_at(step), settings.max_grad_norm, step, checkpoint_dir))
        step += 1
        step_seconds += time.perf_counter() - begun
        if on_step:
            on_step(step)
        done = _progress(settings, step, time.perf_counter() - started)
        if step % settings.log_every_steps == 0 or done >= 1.0:
            averages = window.take()
            log_metrics({**averages, "learning_rate": learning_rate, "progress": min(done, 1.0)}, step=step)
        if checkpoint_dir and step % settings.checkpoint_every_steps == 0 and done < 1.0:
            _require_finite_weights(model, step, checkpoint_dir)
            seconds = time.perf_counter() - started
            save_checkpoint(
                checkpoint_dir, model, optimizer, CheckpointState(step, seconds, averages, window.content())
            )
    _require_finite_weights(model, step, checkpoint_dir)
    return TrainingResult(step, time.perf_counter() - started, state.step, averages or window.take(), step_seconds)


def _progress(settings: TrainingSettings, step: int, seconds: float) -> float:
    if settings.max_minutes is not None:
        return seconds / (60 * settings.max_minutes)
    return step / settings.num_train_steps if settings.num_train_steps else 1.0


def learning_rate_at(settings: TrainingSettings, step: int, progress: float) -> float:
    """Linear warm-up over ``warmup_steps``, then constant or linear decay to zero at ``progress`` 1."""
    warmup = min(1.0, (step + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0
    if settings.schedule == "constant":
        return settings.learning_rate * warmup
    warmed = 0.0 if settings.max_minutes is not None else settings.warmup_steps / max(settings.num_train_steps, 1)
    decay = min(1.0, (1.0 - progress) / max(1.0 - warmed, 1e-9))
    return settings.learning_rate * warmup * decay


def _train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    losses: Iterable[StepLoss],
    max_grad_norm: float,
    step: int,
    checkpoint_dir: Path | None,
) -> dict[str, float]:
    totals: dict[str, float] = {"loss": 0.0}
    rows: tuple[str, ...] = ()
    for share in losses:
        share.loss.backward()  # type: ignore[no-untyped-call]
        rows += share.row_ids
        for name, value in {"loss": share.loss.detach(), **share.metrics}.items():
            totals[name] = totals.get(name, 0.0) + float(value)
    norm = float(nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm))
    if not torch.isfinite(torch.tensor([norm, totals["loss"]])).all():
        raise TrainingError(
            f"step {step}: loss {totals['loss']}, gradient norm {norm} is not finite; "
            f"rows {', '.join(rows[:8]) or 'unknown'}; {_last_good(checkpoint_dir)}. "
            "Remedy: lower learning_rate or max_grad_norm, or use float32."
        )
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return totals


def _require_finite_weights(model: nn.Module, step: int, checkpoint_dir: Path | None) -> None:
    """The update itself can overflow: such weights are neither saved nor returned."""
    names = [name for name, parameter in model.named_parameters() if not bool(torch.isfinite(parameter).all())]
    if names:
        raise TrainingError(
            f"after step {step}: weights of {', '.join(names[:4])} ({len(names)} tensors) are not finite; "
            f"{_last_good(checkpoint_dir)}. Remedy: lower learning_rate."
        )


def _last_good(checkpoint_dir: Path | None) -> str:
    kept = latest_checkpoint(checkpoint_dir) if checkpoint_dir else None
    return f"last good checkpoint: {kept or 'none'}"


class _Window:
    """Averages of the metrics since the last report."""

    def __init__(self, content: Mapping[str, tuple[float, int]]) -> None:
        self._totals = dict(content)

    def add(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            total, count = self._totals.get(name, (0.0, 0))
            self._totals[name] = (total + value, count + 1)

    def content(self) -> dict[str, tuple[float, int]]:
        return dict(self._totals)

    def take(self) -> dict[str, float]:
        averages = {name: total / count for name, (total, count) in self._totals.items()}
        self._totals = {}
        return averages


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW with decoupled weight decay on matrices only (Devlin et al. 2019, appendix A.2), fused kernel."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in sorted(model.named_parameters(), key=lambda named: named[1].ndim < 2):
        if parameter.requires_grad:
            scale = next((s for prefix, s in settings.learning_rate_scales.items() if name.startswith(prefix)), 1.0)
            weight_decay = settings.weight_decay if parameter.ndim >= 2 else 0.0
            groups.setdefault((scale, weight_decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": group, "scale": scale, "weight_decay": decay} for (scale, decay), group in groups.items()],
        lr=settings.learning_rate,
        fused=True,
    )
