"""The one training loop, shared by recurrent language models, BERT pretraining and fine-tuning.

Randomness is a function of (seed, step): the loop reseeds torch before every step, and callers derive a step's data
from the step number. A checkpoint therefore needs no generator state, and a resumed run repeats and skips nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from components.artifacts import MANIFEST, hash_folder, sync_folder, write_atomic
from components.contract import LogMetrics, ignore_metrics
from components.errors import ArtifactError, TrainingError

logger = logging.getLogger(__name__)

Precision = Literal["float32", "bfloat16"]


def seed_everything(seed: int) -> None:
    """Seed torch on every device; numpy users take their own ``Generator`` from the same seed."""
    torch.manual_seed(seed)


def step_seed(seed: int, step: int) -> int:
    """A seed for one training step: distinct for every (seed, step) with seed < 2**31 and step < 2**32."""
    return (seed << 32) | step


def choose_device() -> torch.device:
    """CUDA where there is one, else the CPU; ``RUNGS_DEVICE`` overrides (a property of the machine, not of a result)."""
    return torch.device(os.environ.get("RUNGS_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))


def choose_precision(requested: Literal["auto", "float32", "bfloat16"], device: torch.device) -> Precision:
    """bfloat16 where the hardware multiplies it natively (CUDA 8.0+, CPUs with AVX512-BF16 or AMX), else float32."""
    if requested != "auto":
        return requested
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() and _cpu_has_bf16() else "float32"


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
    """Wall-clock time in training steps over all attempts, including those before a resume."""
    resumed_from_step: int
    final_metrics: dict[str, float]


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
        TrainingError: A loss or gradient norm is not finite (the last good checkpoint stays), or the disk is full.
    """
    optimizer = make_optimizer(model, settings)
    state = resume(model, optimizer, checkpoint_dir) if checkpoint_dir else CheckpointState()
    step, elapsed, started = state.step, state.seconds, time.perf_counter()
    window, averages = _Window(), dict(state.metrics)
    model.train()
    while step < settings.num_train_steps or settings.max_minutes is not None:
        seconds = elapsed + time.perf_counter() - started
        progress = _progress(settings, step, seconds)
        if progress >= 1.0:
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(settings, step, progress)
        torch.manual_seed(step_seed(settings.seed, step))
        window.add(_train_step(model, optimizer, losses_at(step), settings.max_grad_norm, step, checkpoint_dir))
        step += 1
        if on_step:
            on_step(step)
        if step % settings.log_every_steps == 0 or step == settings.num_train_steps:
            averages = window.take()
            log_metrics({**averages, "learning_rate": group["lr"], "progress": progress}, step=step)
        if checkpoint_dir and step % settings.checkpoint_every_steps == 0 and step < settings.num_train_steps:
            seconds = elapsed + time.perf_counter() - started
            save_checkpoint(checkpoint_dir, model, optimizer, CheckpointState(step, seconds, averages))
    return TrainingResult(step, elapsed + time.perf_counter() - started, state.step, averages)


def _progress(settings: TrainingSettings, step: int, seconds: float) -> float:
    if settings.max_minutes is not None:
        return seconds / (60 * settings.max_minutes)
    return step / settings.num_train_steps


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
    totals: dict[str, float] = {}
    rows: tuple[str, ...] = ()
    for share in losses:
        share.loss.backward()  # type: ignore[no-untyped-call]
        rows += share.row_ids
        for name, value in {"loss": share.loss.detach(), **share.metrics}.items():
            totals[name] = totals.get(name, 0.0) + float(value)
    norm = float(nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm))
    finite = torch.isfinite(torch.tensor([norm, totals.get("loss", 0.0)])).all()
    if not finite:
        kept = latest_checkpoint(checkpoint_dir) if checkpoint_dir else None
        raise TrainingError(
            f"step {step}: loss {totals.get('loss')}, gradient norm {norm} is not finite; rows {', '.join(rows[:8]) or 'unknown'}; "
            f"last good checkpoint: {kept or 'none'}. Remedy: lower learning_rate or max_grad_norm, or use float32."
        )
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return totals


class _Window:
    """Averages of the metrics since the last report."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        averages = {name: total / self._counts[name] for name, total in self._sums.items()}
        self.__init__()  # type: ignore[misc]
        return averages


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW with decoupled weight decay on matrices only (Devlin et al. 2019, appendix A.2), fused kernel."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.learning_rate, fused=True)


# --- checkpoints -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckpointState:
    """What a checkpoint knows beside tensors."""

    step: int = 0
    seconds: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    num_threads: int = field(default_factory=torch.get_num_threads)


def save_checkpoint(
    checkpoint_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: CheckpointState
) -> Path:
    """Save a complete checkpoint under its final name, or nothing; older ones but the previous go afterwards.

    Raises:
        TrainingError: The disk is full or not writable; the previous checkpoint is intact.
    """
    checkpoint_dir.mkdir(parents=True, exist_ok=True)
    final = checkpoint_dir / f"step-{state.step:08d}"
    scratch = checkpoint_dir / f".writing-{os.getpid()}-{state.step}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        save_model(model, str(scratch / "model.safetensors"))
        save_file(_optimizer_tensors(model, optimizer), scratch / "optimizer.safetensors")
        write_atomic(scratch / "state.json", json.dumps(state.__dict__).encode())
        write_atomic(scratch / MANIFEST, json.dumps(hash_folder(scratch)).encode())
        sync_folder(scratch)
        shutil.rmtree(final, ignore_errors=True)
        scratch.replace(final)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        needed = 3 * sum(p.numel() * p.element_size() for p in model.parameters())
        raise TrainingError(
            f"cannot save checkpoint {final}: {error}; about {needed:,} bytes needed, "
            f"{shutil.disk_usage(checkpoint_dir).free:,} free. Remedy: free space and run the same command again."
        ) from error
    for old in sorted(checkpoint_dir.glob("step-*"))[:-2]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _named_trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {}
    for name, parameter in _named_trainable(model):
        for slot, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{slot}|{name}"] = value.detach().clone().contiguous()
    return tensors


def latest_checkpoint(checkpoint_dir: Path) -> Path | None:
    """The newest checkpoint whose manifest is complete and right; damaged ones are named in the log and skipped."""
    for path in sorted(checkpoint_dir.glob("step-*"), reverse=True):
        try:
            if hash_folder(path) == json.loads((path / MANIFEST).read_text(encoding="utf-8")):
                return path
            problem = "content differs from its manifest"
        except (OSError, ValueError) as error:
            problem = str(error)
        logger.warning("checkpoint %s is not usable (%s); falling back to the one before", path, problem)
    return None


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, checkpoint_dir: Path) -> CheckpointState:
    """Load the newest good checkpoint into model and optimiser; a fresh state when there is none.

    Raises:
        ArtifactError: The checkpoint belongs to a model of another shape.
    """
    for leftover in checkpoint_dir.glob(".writing-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    path = latest_checkpoint(checkpoint_dir)
    if path is None:
        return CheckpointState()
    try:
        load_model(model, path / "model.safetensors", strict=True)
    except (RuntimeError, SafetensorError) as error:
        raise ArtifactError(f"checkpoint {path} does not fit this model: {error}") from error
    _restore_optimizer(model, optimizer, load_file(path / "optimizer.safetensors"))
    state = CheckpointState(**json.loads((path / "state.json").read_text(encoding="utf-8")))
    if state.num_threads != torch.get_num_threads():
        logger.warning(
            "checkpoint %s was made with %d threads, this run has %d: sums may differ in the last digits",
            path, state.num_threads, torch.get_num_threads(),
        )  # fmt: skip
    logger.info("resumed from %s", path)
    return state


def _restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    slots: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        slot, name = key.split("|", 1)
        slots.setdefault(name, {})[slot] = value
    for name, parameter in _named_trainable(model):
        if name in slots:
            device = parameter.device
            optimizer.state[parameter] = {slot: value.to(device) for slot, value in slots[name].items()}
