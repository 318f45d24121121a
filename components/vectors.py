"""Word vectors on disk: the word2vec text format, written exactly and read with every row checked."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.errors import ArtifactError, InputError


def write_vectors(path: Path, words: list[str], vectors: NDArray[np.float32]) -> None:
    """Write the word2vec text format: a header ``count size``, then a word and its numbers a line.

    Numbers are written with nine significant digits, which restores a float32 exactly.

    Args:
        path: File to write.
        words: Distinct words without white space, N of them.
        vectors: Shape [N, vector_size], finite.

    Raises:
        ArtifactError: Shapes differ, a word holds white space or repeats, or a number is not finite.
    """
    if vectors.ndim != 2 or len(words) != len(vectors) or len(set(words)) != len(words):
        raise ArtifactError(f"{len(words)} words ({len(set(words))} distinct) for vectors of shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ArtifactError("word vectors hold a number that is not finite")
    if (bad := next((word for word in words if not word or word.split() != [word]), None)) is not None:
        raise ArtifactError(f"word {bad!r} is empty or holds white space, which the word2vec text format cannot store")
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{vectors.shape[0]} {vectors.shape[1]}\n")
        for word, vector in zip(words, vectors.tolist(), strict=True):
            stream.write(word + " " + " ".join(f"{number:.9g}" for number in vector) + "\n")


def read_vectors(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Read the word2vec text format.

    Returns:
        The N words and their vectors, shape [N, vector_size], float32.

    Raises:
        InputError: A wrong header, number of rows or columns, a repeated word or a non-finite number; with the line.
    """
    with path.open(encoding="utf-8", newline="\n") as stream:
        header = stream.readline().split()
        if len(header) != 2 or not all(part.isdigit() for part in header):
            raise InputError(f"header {' '.join(header)!r}, expected 'COUNT SIZE'", file=path, line=1)
        count, size = int(header[0]), int(header[1])
        words: dict[str, None] = {}
        blocks: list[NDArray[np.float32]] = []
        while lines := list(itertools.islice(stream, _VECTOR_BLOCK)):
            blocks.append(_parse_block(path, len(words) + 2, lines, size, words))
    if len(words) != count:
        raise InputError(f"header announces {count} words, the file holds {len(words)}", file=path, line=1)
    return list(words), np.concatenate(blocks) if blocks else np.zeros((0, size), dtype=np.float32)


_VECTOR_BLOCK = 1000


def _parse_block(
    path: Path, first_line: int, lines: list[str], size: int, words: dict[str, None]
) -> NDArray[np.float32]:
    """Vectors of some lines, shape [lines, size]; adds their words. Parsed in one call, which is many times faster."""
    parts = [line.rstrip("\n").rstrip(" ").partition(" ") for line in lines]
    for number, (word, _, numbers) in enumerate(parts, first_line):
        if numbers.count(" ") + 1 != size or word in words:
            _refuse_vector(path, number, word, numbers, size, words)
        words[word] = None
    try:
        flat = np.fromstring(" ".join(numbers for _, _, numbers in parts), dtype=np.float32, sep=" ")
    except ValueError:
        flat = np.zeros(0, dtype=np.float32)
    if flat.size != len(lines) * size or not np.isfinite(flat).all():
        for number, (word, _, numbers) in enumerate(parts, first_line):
            _refuse_vector(path, number, word, numbers, size, {})
    return flat.reshape(len(lines), size)


def _refuse_vector(path: Path, number: int, word: str, numbers: str, size: int, words: dict[str, None]) -> None:
    """Raise for whatever is wrong with one line; nothing when it is right."""
    values = numbers.split(" ") if numbers else []
    if len(values) != size:
        raise InputError(f"{len(values)} numbers after word {word!r}, header says {size}", file=path, line=number)
    if word in words:
        raise InputError(f"word {word!r} appears twice", file=path, line=number)
    try:
        finite = all(math.isfinite(float(value)) for value in values)
    except ValueError as error:
        raise InputError(f"word {word!r}: {error}", file=path, line=number) from error
    if not finite:
        raise InputError(f"word {word!r} has a number that is not finite", file=path, line=number)
