"""Loading a BERT encoder, trained here or anywhere else, and proving that its weights really came from disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import BertForPreTraining, BertModel, BertTokenizerFast
from transformers.utils import logging as transformers_logging

from components.encoders.wordpiece import load_wordpiece
from components.errors import InputError, TrainingError


@dataclass(frozen=True)
class LoadReport:
    """Which tensors a model got from a checkpoint."""

    loaded: tuple[str, ...]
    """Tensors of the model that were read."""
    missing: tuple[str, ...]
    """Tensors of the model that the checkpoint lacks; they keep random values."""
    unexpected: tuple[str, ...]
    """Tensors of the checkpoint that the model has no place for, such as pretraining heads."""

    def to_json(self) -> dict[str, list[str]]:
        """Names per kind."""
        return {kind: list(names) for kind, names in asdict(self).items()}


@dataclass(frozen=True)
class LoadedTransformer:
    """An encoder with its tokenizer."""

    model: BertModel
    tokenizer: BertTokenizerFast
    report: LoadReport


def load_transformer(folder: Path | str, *, minimum_loaded: float = 1.0) -> LoadedTransformer:
    """Load a BERT encoder and its tokenizer; heads in the checkpoint are left out.

    Args:
        folder: Encoder artifact, any Hugging Face BERT folder with safetensors, or a hub id.
        minimum_loaded: Least share of the encoder's tensors (embeddings and layers, not the pooler) that must come
            from the checkpoint, in [0, 1].

    Returns:
        The model in evaluation mode, on the CPU, in float32.

    Raises:
        InputError: Nothing usable at ``folder``.
        TrainingError: Too many of the encoder's weights are missing; names them.
    """
    tokenizer = load_wordpiece(folder)
    model, report = _load(BertModel, folder, prefix="", minimum_loaded=minimum_loaded)
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(f"tokenizer has {len(tokenizer)} pieces, the model {model.config.vocab_size}", file=folder)
    return LoadedTransformer(model, tokenizer, report)


def load_pretraining_model(folder: Path | str, **settings: Any) -> tuple[BertForPreTraining, LoadReport]:
    """Load BERT with its pretraining heads; a head that the checkpoint lacks is reported and keeps random weights.

    Args:
        folder: Hugging Face BERT folder or hub id.
        settings: Fields of ``transformers.BertConfig`` to change, such as dropout.

    Raises:
        InputError: Nothing usable at ``folder``.
        TrainingError: Encoder weights are missing.
    """
    return _load(BertForPreTraining, folder, prefix="bert.", minimum_loaded=1.0, **settings)


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' progress bars and load report off the terminal: the run shows its own of both."""
    shown, verbosity = transformers_logging.is_progress_bar_enabled(), transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shown:
            transformers_logging.enable_progress_bar()


def _load(
    kind: type[Any], folder: Path | str, *, prefix: str, minimum_loaded: float, **settings: Any
) -> tuple[Any, LoadReport]:
    try:
        with quiet_transformers():
            model, info = kind.from_pretrained(
                str(folder),
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype="float32",
                **settings,
            )
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"no BERT model could be read: {error}",
            file=folder,
            remedy="give config.json and model.safetensors",
        ) from error
    except RuntimeError as error:
        raise TrainingError(f"{folder}: the stored weights do not fit their config.json: {error}") from error
    report = _report(model, info)
    _require_encoder(report, folder, prefix, minimum_loaded)
    return model.eval(), report


def _report(model: Any, info: dict[str, Any]) -> LoadReport:
    missing = set(info["missing_keys"])
    names = [name for name, _ in model.named_parameters()]
    return LoadReport(
        tuple(name for name in names if name not in missing),
        tuple(sorted(missing)),
        tuple(sorted(info["unexpected_keys"])),
    )


def _require_encoder(report: LoadReport, folder: Path | str, prefix: str, minimum_loaded: float) -> None:
    def encoder(names: tuple[str, ...]) -> list[str]:
        return [name for name in names if name.startswith((f"{prefix}embeddings.", f"{prefix}encoder."))]

    loaded, missing = encoder(report.loaded), encoder(report.missing)
    share = len(loaded) / max(len(loaded) + len(missing), 1)
    if share < minimum_loaded:
        raise TrainingError(
            f"{folder}: {len(missing)} of {len(loaded) + len(missing)} encoder tensors are not in the checkpoint, "
            f"so {1 - share:.0%} of the encoder would be random: {', '.join(missing[:5])}, …; "
            f"not used: {', '.join(report.unexpected[:5]) or 'none'}. Remedy: give a BERT checkpoint."
        )
