"""Training checkpoints: complete under their final name or not there at all.

A checkpoint is a folder ``step-00000200`` with the model and optimiser as safetensors, the loop's state as JSON and a
manifest of hashes. It is written beside, flushed, and renamed; reading verifies the manifest and falls back.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from components.artifacts import MANIFEST, hash_folder, sync_folder, write_atomic
from components.errors import ArtifactError, TrainingError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointState:
    """What a checkpoint knows beside tensors."""

    step: int = 0
    """Finished training steps."""
    seconds: float = 0.0
    """Wall-clock time of the loop so far, over all attempts."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The last averages reported."""
    window: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Sum and count of each metric since the last report, so that a resumed run reports the same averages."""
    num_threads: int = field(default_factory=torch.get_num_threads)


def save_checkpoint(
    checkpoint_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: CheckpointState
) -> Path:
    """Save a complete checkpoint under its final name, or nothing; all but it and its predecessor go afterwards.

    Raises:
        TrainingError: The disk is full or not writable; the previous checkpoint is intact.
    """
    final = checkpoint_dir / f"step-{state.step:08d}"
    scratch = checkpoint_dir / f".writing-{os.getpid()}-{state.step}"
    try:
        checkpoint_dir.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        save_model(model, str(scratch / "model.safetensors"))
        save_file(_optimizer_tensors(model, optimizer), scratch / "optimizer.safetensors")
        write_atomic(scratch / "state.json", json.dumps(asdict(state)).encode())
        write_atomic(scratch / MANIFEST, json.dumps(hash_folder(scratch)).encode())
        sync_folder(scratch)
        shutil.rmtree(final, ignore_errors=True)
        scratch.replace(final)
        _sync_entries(checkpoint_dir)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise TrainingError(_cannot_save(final, model, error)) from error
    _remove_others(checkpoint_dir, final)
    return final


def _cannot_save(final: Path, model: nn.Module, error: Exception) -> str:
    needed = 3 * sum(p.numel() * p.element_size() for p in model.parameters())
    existing = next(folder for folder in final.parents if folder.exists())
    return (
        f"cannot save checkpoint {final}: {error}; about {needed:,} bytes needed, "
        f"{shutil.disk_usage(existing).free:,} free. Remedy: free space and run the same command again."
    )


def _sync_entries(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_others(checkpoint_dir: Path, final: Path) -> None:
    # Later steps than the one just reached are damaged ones that resuming had to skip.
    others = sorted(path for path in checkpoint_dir.glob("step-*") if path != final)
    older = [path for path in others if path.name < final.name]
    for path in others:
        if path not in older[-1:]:
            shutil.rmtree(path, ignore_errors=True)


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
    values = json.loads((path / "state.json").read_text(encoding="utf-8"))
    window = {name: (total, count) for name, (total, count) in values.pop("window").items()}
    state = CheckpointState(**values, window=window)
    if state.num_threads != torch.get_num_threads():
        logger.warning(
            "checkpoint %s was made with %d threads, this run has %d: sums may differ in the last digits",
            path,
            state.num_threads,
            torch.get_num_threads(),
        )
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
