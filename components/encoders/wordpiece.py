"""Reading and writing a WordPiece tokenizer as a Hugging Face folder, checked on the way in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import BertTokenizerFast

from components.errors import InputError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""BERT's five special tokens (Devlin et al. 2019, section 3); a vocabulary trained here starts with them."""
_SWITCHES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


@dataclass(frozen=True)
class PieceIds:
    """Ids of the special tokens, and of everything else."""

    pad: int
    cls: int
    sep: int
    mask: int
    ordinary: NDArray[np.int64]
    """Sorted ids of all pieces that are no special tokens."""


def piece_ids(tokenizer: BertTokenizerFast) -> PieceIds:
    """Read the ids off a tokenizer."""
    special = [tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS]
    pad, _, cls, sep, mask = special
    return PieceIds(pad, cls, sep, mask, np.setdiff1d(np.arange(len(tokenizer)), special))


def load_wordpiece(folder: Path | str) -> BertTokenizerFast:
    """Load a BERT tokenizer from a folder or the hub; spellings of special tokens in a text stay plain text.

    Args:
        folder: Local folder with ``tokenizer.json`` or ``vocab.txt``, or a hub id.

    Raises:
        InputError: A special token is missing or double, a line of ``vocab.txt`` is blank or repeated, ids disagree
            between files, or a text switch differs between ``tokenizer_config.json`` and ``tokenizer.json``.
    """
    path = Path(folder)
    if path.is_dir():
        pieces = _check_vocab_file(path / "vocab.txt")
        _check_tokenizer_json(path, pieces)
    try:
        tokenizer = BertTokenizerFast.from_pretrained(str(folder), split_special_tokens=True)
    except (OSError, ValueError) as error:
        raise InputError(f"no tokenizer at {folder}: {error}") from error
    vocab = tokenizer.get_vocab()
    ids = [vocab.get(token, -1) for token in SPECIAL_TOKENS]
    if min(ids) < 0 or len(set(ids)) != len(ids) or max(vocab.values()) != len(vocab) - 1:
        raise InputError(f"special tokens {SPECIAL_TOKENS} have ids {ids} in a vocabulary of {len(vocab)}", file=folder)
    return tokenizer


def save_wordpiece(tokenizer: BertTokenizerFast, folder: Path) -> None:
    """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``vocab.txt`` (one piece a line, in the order of ids)."""
    tokenizer.save_pretrained(str(folder))
    vocab = tokenizer.get_vocab()
    pieces = sorted(vocab, key=lambda piece: vocab[piece])
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8", newline="\n")


def _check_vocab_file(path: Path) -> dict[str, int] | None:
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    pieces: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        piece = line.removesuffix("\r")
        if not piece.strip():
            raise InputError("blank line in the vocabulary", file=path, line=number, remedy="remove the line")
        if piece in pieces:
            raise InputError(
                f"piece {piece!r} already on line {pieces[piece] + 1}",
                file=path,
                line=number,
                remedy="keep one",
            )
        pieces[piece] = number - 1
    missing = [token for token in SPECIAL_TOKENS if token not in pieces]
    if missing:
        raise InputError(
            f"special token {', '.join(missing)} missing from the vocabulary's {len(pieces)} lines",
            file=path,
            line=len(lines),
            remedy="add it, one a line; the model must have been trained with it",
        )
    return pieces


def _check_tokenizer_json(folder: Path, pieces: dict[str, int] | None) -> None:
    path, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    if not path.is_file():
        return
    stored = json.loads(path.read_text(encoding="utf-8"))
    vocab = stored["model"]["vocab"]
    if pieces is not None and vocab != pieces:
        piece = next(piece for piece in [*vocab, *pieces] if vocab.get(piece) != pieces.get(piece))
        raise InputError(
            f"piece {piece!r} has id {vocab.get(piece)} here and {pieces.get(piece)} in vocab.txt", file=path
        )
    if settings.is_file():
        _check_switches(path, stored.get("normalizer") or {}, json.loads(settings.read_text(encoding="utf-8")))


def _check_switches(path: Path, normalizer: dict[str, Any], settings: dict[str, Any]) -> None:
    for name, rust_name in _SWITCHES.items():
        if name in settings and rust_name in normalizer and settings[name] != normalizer[rust_name]:
            raise InputError(
                f"{rust_name} is {normalizer[rust_name]} here and {name} is {settings[name]} in tokenizer_config.json",
                file=path,
                remedy="use the tokenizer folder as it was trained; both files must say the same",
            )
