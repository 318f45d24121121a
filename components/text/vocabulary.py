"""A word vocabulary: ids in a fixed order, a written rule for unknown words, and a text file one can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from components.errors import InputError

PAD_ID = 0
UNK_ID = 1
PAD_TOKEN = "[PAD]"  # noqa: S105
UNK_TOKEN = "[UNK]"  # noqa: S105
VOCABULARY_FILE = "vocabulary.txt"


class Vocabulary:
    """Words and their ids; id 0 is padding, id 1 the unknown word.

    The rule for a word outside the vocabulary: if at least one of its characters is a word of the vocabulary, it
    becomes one id per character (unknown characters become UNK); otherwise it becomes a single UNK.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words: tuple[str, ...] = (PAD_TOKEN, UNK_TOKEN, *words)
        """All entries by id, the two special ones first."""
        self._ids = {word: index for index, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            repeated = next(word for index, word in enumerate(self.words) if self._ids[word] != index)
            raise InputError(f"word {repeated!r} appears twice in the vocabulary")
        if (bad := next((word for word in words if not word or word.split() != [word]), None)) is not None:
            raise InputError(f"word {bad!r} is empty or holds white space")

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """The most frequent words, ties in code-point order, so that the same counts give the same ids.

        Args:
            counts: Word to number of occurrences.
            min_count: Rarer words are left out.
            max_size: Most entries including the two special ones; None keeps all.
        """
        kept = sorted((word for word, count in counts.items() if count >= min_count), key=lambda w: (-counts[w], w))
        return cls(kept if max_size is None else kept[: max(0, max_size - 2)])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id_of(self, word: str) -> int:
        """The id of a word, ``UNK_ID`` when it is not in the vocabulary."""
        return self._ids.get(word, UNK_ID)

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of words, with unknown words spelled by the rule of the class."""
        ids: list[int] = []
        for word in words:
            index = self._ids.get(word)
            if index is None:
                ids.extend(self._spell(word))
            else:
                ids.append(index)
        return ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The entries of ids."""
        return [self.words[index] for index in ids]

    def oov_rate(self, words: Iterable[str]) -> float:
        """Share of words (tokens, not types) outside the vocabulary, in [0, 1]; 0 for no words at all."""
        total = unknown = 0
        for word in words:
            total += 1
            unknown += word not in self._ids
        return unknown / total if total else 0.0

    def save(self, folder: Path) -> None:
        """Write ``vocabulary.txt``: one entry a line, its line number minus one is its id."""
        (folder / VOCABULARY_FILE).write_text(
            "".join(f"{word}\n" for word in self.words), encoding="utf-8", newline="\n"
        )

    @classmethod
    def load(cls, folder: Path) -> Vocabulary:
        """Read ``vocabulary.txt``.

        Raises:
            InputError: The special entries are missing, a line is blank or an entry repeats; with file and line.
        """
        path = folder / VOCABULARY_FILE
        with path.open(encoding="utf-8", newline="\n") as stream:
            words = [line.removesuffix("\n") for line in stream]
        for number, expected in enumerate((PAD_TOKEN, UNK_TOKEN), 1):
            if words[number - 1 : number] != [expected]:
                raise InputError(f"expected {expected}", file=path, line=number, remedy="rebuild the artifact")
        seen: set[str] = set()
        for number, word in enumerate(words, 1):
            if word in seen or word.split() != [word]:
                raise InputError(f"entry {word!r} is blank or repeated", file=path, line=number)
            seen.add(word)
        return cls(words[2:])

    def _spell(self, word: str) -> list[int]:
        ids = [self._ids.get(character, UNK_ID) for character in word]
        return ids if any(index != UNK_ID for index in ids) else [UNK_ID]
