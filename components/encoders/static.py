"""Word vectors: one fixed vector per word, whatever its context; a text is the mean of its words.

Legend of shape suffixes: N texts, V words, D vector_size.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from components.errors import ArtifactError
from components.formats import read_encoder_card, write_encoder_card
from components.text.segmentation import load_segmenter
from components.vectors import read_vectors, write_vectors

Units = Literal["words", "pieces"]
OovPolicy = Literal["characters", "skip"]

VECTORS = "vectors.txt"
SEGMENTER_FILES = ("segmenter.json", "user_dictionary.txt")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


@dataclass(frozen=True)
class WordVectors:
    """Vectors of V words and the rule that turns a text into words."""

    words: tuple[str, ...]
    vectors_VD: NDArray[np.float32]
    split: Callable[[str], list[str]]
    """Splits a text into the units the vectors were trained on."""
    units: Units = "words"
    oov_policy: OovPolicy = "characters"
    """An unknown word counts as its known characters, or not at all; it never raises, no vector is made up for it."""

    @property
    def vector_size(self) -> int:
        """Numbers per vector."""
        return int(self.vectors_VD.shape[1])

    @property
    def num_parameters(self) -> int:
        """Learned numbers."""
        return int(self.vectors_VD.size)

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of every word."""
        return {word: row for row, word in enumerate(self.words)}

    def rows(self, words: Iterable[str]) -> list[int]:
        """Rows of the known words in order; an unknown word is handled by ``oov_policy``."""
        index, found = self.index, []
        for word in words:
            if word in index:
                found.append(index[word])
            elif self.oov_policy == "characters":
                found.extend(index[character] for character in word if character in index)
        return found

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """Vector of one word, shape [D], after ``oov_policy``; None when nothing of the word is known."""
        rows = self.rows([word])
        return self.vectors_VD[rows].mean(axis=0) if rows else None

    def table(self, units: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of given units, shape [len(units), D]; zeros for a unit without a vector."""
        table_VD = np.zeros((len(units), self.vector_size), dtype=np.float32)
        for number, unit in enumerate(units):
            if unit in self.index:
                table_VD[number] = self.vectors_VD[self.index[unit]]
        return table_VD

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Mean vector of each text's words, shape [N, D]; zeros for a text without any known word."""
        pooled_ND = np.zeros((len(texts), self.vector_size), dtype=np.float32)
        for number, text in enumerate(texts):
            if rows := self.rows(self.split(text)):
                pooled_ND[number] = self.vectors_VD[rows].mean(axis=0)
        return pooled_ND


def save_word_vectors(
    folder: Path,
    words: list[str],
    vectors_VD: NDArray[np.float32],
    *,
    units: Units,
    oov_policy: OovPolicy,
    source: Path,
) -> None:
    """Write ``vectors.txt``, the card, and from ``source`` the files that say how text becomes words.

    Args:
        folder: Where to write.
        words: V distinct words without white space.
        vectors_VD: Shape [V, D], finite.
        units: What a word is.
        oov_policy: What an unknown word counts as.
        source: Segmented corpus (``segmenter.json``) for words, tokenizer folder for pieces.
    """
    write_vectors(folder / VECTORS, words, vectors_VD)
    for name in SEGMENTER_FILES if units == "words" else TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    write_encoder_card(
        folder, "word2vec", units=units, oov_policy=oov_policy, num_words=len(words), vector_size=vectors_VD.shape[1]
    )


def load_word_vectors(folder: Path) -> WordVectors:
    """Read what ``save_word_vectors`` wrote.

    Raises:
        ArtifactError: The folder holds another kind of encoder.
        InputError: ``vectors.txt`` is damaged; names the line.
    """
    card = read_encoder_card(folder)
    if card["family"] != "word2vec":
        raise ArtifactError(f"{folder} holds a {card['family']} encoder, not word2vec")
    words, vectors_VD = read_vectors(folder / VECTORS)
    split = piece_splitter(folder) if card["units"] == "pieces" else load_segmenter(folder).segment
    return WordVectors(tuple(words), vectors_VD, split, card["units"], card["oov_policy"])


def piece_splitter(tokenizer_dir: Path) -> Callable[[str], list[str]]:
    """Splits a text into the pieces of a WordPiece tokenizer, without special tokens.

    Raises:
        InputError: The folder holds no usable tokenizer.
    """
    # Imported here: transformers costs a second that vectors of words need not pay.
    from components.encoders.wordpiece import load_wordpiece

    tokenizer = load_wordpiece(tokenizer_dir)

    def split(text: str) -> list[str]:
        return list(tokenizer.tokenize(text))

    return split
