"""Word segmentation: the one segmenter that Word2Vec, RNN/LSTM, TF-IDF and whole-word masking share.

Chinese words come from jieba's dictionary and hidden Markov model in its Rust port rjieba (same words, about 19 times
the speed). English words come from a regular expression: runs of letters and digits with inner apostrophes, numbers
with their separators, every other character on its own. A user dictionary adds words to jieba's: one word a line,
optionally followed by its frequency and part of speech, as jieba's own user dictionaries.
"""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from pathlib import Path
from typing import Any, Literal

from components.contract import StageConfig
from components.errors import ArtifactError, InputError
from components.formats import read_json, write_json

SEGMENTER_VERSION = 1
"""Raised whenever the rules below give other words for the same text."""
SEGMENTER_FILE = "segmenter.json"
USER_DICTIONARY_FILE = "user_dictionary.txt"

_ENGLISH_WORD = re.compile(
    r"\d+(?:[.,:]\d+)+"
    r"|[\u3400-\u4dbf\u4e00-\u9fff]"
    r"|(?:(?![\u3400-\u4dbf\u4e00-\u9fff])[^\W_])[\u0300-\u036f]*"
    r"(?:(?![\u3400-\u4dbf\u4e00-\u9fff])[^\W_][\u0300-\u036f]*|['’](?=[^\W\d_]))*"
    r"|\S"
)


class SegmenterConfig(StageConfig):
    """How sentences become words."""

    language: Literal["zh", "en"] = "zh"
    """Chinese needs a segmenter; English words are separated by white space and punctuation."""
    segmenter: Literal["rjieba", "characters"] = "rjieba"
    """For Chinese: dictionary words, or every character a word. English always uses its regular expression."""
    hmm: bool = True
    """Find words that are not in the dictionary with jieba's hidden Markov model."""
    user_dictionary: str | None = None
    """File of additional words, one a line: word [frequency [part of speech]], UTF-8. Chinese with rjieba only."""

    def external_files(self) -> list[Path]:
        """The user dictionary, if any."""
        return [] if self.user_dictionary is None else [Path(self.user_dictionary)]


class Segmenter:
    """Splits text into words; holds the loaded dictionary."""

    def __init__(self, config: SegmenterConfig) -> None:
        """Load the dictionaries.

        Raises:
            InputError: The user dictionary does not exist, has a line that cannot be used, or does not apply.
        """
        self.config = config
        self._jieba = _load_jieba(config) if config.language == "zh" and config.segmenter == "rjieba" else None
        if config.user_dictionary is not None and self._jieba is None:
            raise InputError(
                f"user_dictionary does not apply to language {config.language} with segmenter {config.segmenter}",
                file=config.user_dictionary,
                remedy="set language zh and segmenter rjieba, or remove user_dictionary",
            )

    def segment(self, text: str) -> list[str]:
        """The words of a text, in order; together they hold every character that is not white space."""
        if self._jieba is not None:
            return [word for word in self._jieba.cut(text, self.config.hmm) if not word.isspace()]
        if self.config.language == "en":
            return _ENGLISH_WORD.findall(text)
        return [character for character in text if not character.isspace()]

    def save(self, folder: Path) -> None:
        """Write ``segmenter.json`` and a copy of the user dictionary, from which ``load_segmenter`` restores it."""
        config = self.config.model_dump(mode="json")
        if self.config.user_dictionary is not None:
            (folder / USER_DICTIONARY_FILE).write_bytes(Path(self.config.user_dictionary).read_bytes())
            config["user_dictionary"] = USER_DICTIONARY_FILE
        write_json(folder / SEGMENTER_FILE, {"version": SEGMENTER_VERSION, "rjieba": _version(), "config": config})


def load_segmenter(folder: Path) -> Segmenter:
    """Restore the segmenter that a stage saved.

    Raises:
        ArtifactError: No segmenter there, or one whose rules this code no longer has.
    """
    path = folder / SEGMENTER_FILE
    if not path.is_file():
        raise ArtifactError(f"{folder} holds no {SEGMENTER_FILE}")
    saved: dict[str, Any] = read_json(path)
    if saved["version"] != SEGMENTER_VERSION:
        raise ArtifactError(
            f"{path}: segmenter version {saved['version']}, this code has {SEGMENTER_VERSION}; run the stage again"
        )
    if saved["rjieba"] != _version():
        warnings.warn(
            f"{path}: made with rjieba {saved['rjieba']}, installed is {_version()}; words may differ", stacklevel=2
        )
    config = saved["config"]
    if config["user_dictionary"] is not None:
        config["user_dictionary"] = str(folder / config["user_dictionary"])
    return Segmenter(SegmenterConfig.model_validate(config))


def _version() -> str:
    return importlib.metadata.version("rjieba")


def _load_jieba(config: SegmenterConfig) -> Any:
    import rjieba

    # An instance of its own: words added to the module's shared one would leak into every other segmenter.
    jieba = rjieba.Jieba()
    if config.user_dictionary is not None:
        path = Path(config.user_dictionary)
        for number, (word, frequency, tag) in enumerate(_read_user_dictionary(path), 1):
            if not word:
                continue
            jieba.add_word(word, frequency, tag)
            if frequency is None and jieba.cut(word, config.hmm) != [word]:
                raise InputError(
                    f"word {word!r} cannot be one word: jieba cuts at characters other than Han, letters and digits",
                    file=path,
                    line=number,
                    remedy="remove the word or the characters in it",
                )
    return jieba


def _read_user_dictionary(path: Path) -> list[tuple[str, int | None, str | None]]:
    """Entries by line; an empty word for a blank line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"user dictionary cannot be read: {error}", file=path, remedy="give a UTF-8 file") from error
    entries: list[tuple[str, int | None, str | None]] = []
    for number, line in enumerate(lines, 1):
        word, *rest = line.split() or [""]
        frequency = int(rest.pop(0)) if rest and rest[0].isdecimal() else None
        if len(rest) > 1:
            raise InputError(f"{line!r} is not 'word [frequency [tag]]'", file=path, line=number)
        entries.append((word, frequency, rest[0] if rest else None))
    return entries
