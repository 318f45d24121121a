"""Keeps the weights of the best epoch, also across a kill."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor, nn

from components.artifacts import write_atomic


@dataclass(frozen=True)
class _Kept:
    epoch: int
    score: float
    tensors: dict[str, Tensor]


class BestEpoch:
    """The epoch with the highest validation score; the first one is always kept, the earlier one wins a tie.

    Training restarts from its last checkpoint and then repeats the same epochs, so it is enough that the best epoch
    up to a checkpoint is on disk before that checkpoint is.
    """

    def __init__(self, checkpoint_dir: Path | None) -> None:
        self._path = checkpoint_dir / "best_epoch.safetensors" if checkpoint_dir else None
        self._kept = self._read()
        self._saved = self._kept

    @property
    def epoch(self) -> int:
        """Number of the kept epoch, from 1."""
        return self._require().epoch

    def offer(self, epoch: int, score: float, model: nn.Module) -> None:
        """Keep a copy of the weights if ``score`` beats every earlier epoch's."""
        if self._kept is None or score > self._kept.score:
            tensors = {name: tensor.detach().clone().contiguous() for name, tensor in model.state_dict().items()}
            self._kept = _Kept(epoch, score, tensors)

    def save(self) -> None:
        """Write the kept epoch to the checkpoint folder unless it is there already."""
        if self._path is not None and self._kept is not None and self._kept is not self._saved:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            facts = json.dumps({"epoch": self._kept.epoch, "score": self._kept.score})
            write_atomic(self._path, save(self._kept.tensors, metadata={"facts": facts}))
            self._saved = self._kept

    def restore(self, model: nn.Module) -> None:
        """Put the kept weights back into the model."""
        model.load_state_dict(self._require().tensors)

    def _require(self) -> _Kept:
        assert self._kept is not None, "no epoch was offered"
        return self._kept

    def _read(self) -> _Kept | None:
        if self._path is None or not self._path.is_file():
            return None
        from safetensors import safe_open

        with safe_open(self._path, framework="pt") as stream:
            facts = json.loads(stream.metadata()["facts"])
        return _Kept(facts["epoch"], facts["score"], load_file(self._path))
