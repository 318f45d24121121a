"""Texts as WordPiece tokens with their places in the original text: what NER and question answering read on every rung.

The encoder was trained on normalised text, gold spans lie in the original one. So a text is normalised here, cut into
pieces, and the pieces' offsets are led back. All offsets are code points.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import BertTokenizerFast

from components.encoders.static import TOKENIZER_FILES
from components.encoders.wordpiece import load_wordpiece
from components.text.normalization import NormalizationConfig, Normalized, normalize

LABEL_PIECE = 0
"""Which of a word's pieces carries its label, in training and in prediction: the first (Devlin et al. 2019, section
5.3)."""
_BATCH = 512
_MAX_KNOWN_WORDS = 1 << 16


@dataclass(frozen=True)
class Pieces:
    """A text as pieces, special tokens left out."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    """Start and end of each piece in the original text; never empty, never decreasing."""


@dataclass(frozen=True)
class TokenPieces:
    """A text given as words, as pieces."""

    ids: list[int]
    first: list[int | None]
    """For each word the position of the piece that carries its label; None for a word without pieces, such as a
    zero-width space."""


class PieceEncoder:
    """A tokenizer behind a normalisation recipe."""

    def __init__(self, tokenizer: BertTokenizerFast, normalization: NormalizationConfig) -> None:
        self.tokenizer = tokenizer
        self.normalization = normalization
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> Pieces:
        """Pieces of one text."""
        return self.encode_texts([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[Pieces]:
        """Pieces of each text, through the tokenizer in batches."""
        encoded: list[Pieces] = []
        for start in range(0, len(texts), _BATCH):
            cleaned = [normalize(text, self.normalization) for text in texts[start : start + _BATCH]]
            rows = self._tokenize([item.text for item in cleaned], return_offsets_mapping=True)
            encoded.extend(
                Pieces(ids, _original_offsets(item, offsets))
                for item, ids, offsets in zip(cleaned, rows["input_ids"], rows["offset_mapping"], strict=True)
            )
        return encoded

    def encode_tokens(self, words: Sequence[str]) -> TokenPieces:
        """Pieces of a text whose words are given; a word's pieces depend on nothing but the word."""
        self._learn(words)
        return self._join(words)

    def _join(self, words: Sequence[str]) -> TokenPieces:
        ids: list[int] = []
        first: list[int | None] = []
        for word in words:
            pieces = self._words[word]
            first.append(len(ids) + LABEL_PIECE if pieces else None)
            ids.extend(pieces)
        return TokenPieces(ids, first)

    def encode_token_lists(self, texts: Sequence[Sequence[str]]) -> list[TokenPieces]:
        """Pieces of each text given as words."""
        self._learn(word for words in texts for word in words)
        return [self._join(words) for words in texts]

    def _learn(self, words: Iterable[str]) -> None:
        """Cut the words not met before into pieces, all in one call of the tokenizer."""
        needed = set(words)
        new = sorted(needed - self._words.keys())
        if not new:
            return
        if len(self._words) + len(new) > _MAX_KNOWN_WORDS:
            self._words = {}
            new = sorted(needed)
        rows = self._tokenize([normalize(word, self.normalization).text for word in new])
        self._words.update(zip(new, map(tuple, rows["input_ids"]), strict=True))

    def _tokenize(self, texts: list[str], **options: Any) -> Any:
        return self.tokenizer(
            texts, add_special_tokens=False, split_special_tokens=True, return_attention_mask=False,
            return_token_type_ids=False, verbose=False, **options,
        )  # fmt: skip


def _original_offsets(cleaned: Normalized, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    if not cleaned.edits:
        return [(start, max(end, start + 1)) for start, end in offsets]
    return [cleaned.original_span(start, max(end, start + 1)) for start, end in offsets]


def load_pieces(folder: Path | str, normalization: NormalizationConfig) -> PieceEncoder:
    """The tokenizer of a folder, or of the hub, behind a recipe.

    Raises:
        InputError: The folder holds no usable tokenizer.
    """
    return PieceEncoder(load_wordpiece(folder), normalization)


class PieceSplitter:
    """A tokenizer in the place of a word segmenter, for encoders that read pieces instead of words."""

    def __init__(self, folder: Path) -> None:
        """Load the tokenizer of a folder.

        Raises:
            InputError: The folder holds no usable tokenizer.
        """
        self._folder = folder
        self.tokenizer = load_wordpiece(folder)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Every piece, special ones included, by the tokenizer's id."""
        return tuple(self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer)))))

    def segment(self, text: str) -> list[str]:
        """The pieces of a text that is normalised already, without special tokens."""
        return list(self.tokenizer.tokenize(text))

    def encoder(self, normalization: NormalizationConfig) -> PieceEncoder:
        """The tokenizer behind a recipe."""
        return PieceEncoder(self.tokenizer, normalization)

    def save(self, folder: Path) -> None:
        """Copy the tokenizer's files."""
        for name in TOKENIZER_FILES:
            if (self._folder / name).is_file() and self._folder != folder:
                shutil.copyfile(self._folder / name, folder / name)
