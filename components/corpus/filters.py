"""Why a document is dropped before duplicates are looked for."""

from __future__ import annotations

import re

from components.corpus.config import CorpusConfig
from components.text.characters import count_control

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]+")


def drop_reason(text: str, config: CorpusConfig) -> str | None:
    """The first reason to drop a document, or None to keep it.

    Args:
        text: The normalised document without white space.
        config: Limits.

    Returns:
        ``empty``, ``short`` (fewer than ``min_chars`` characters), ``damaged`` (too many control or private-use
        characters: binary data or a wrong encoding), ``language`` (too few letters in its script).
    """
    if not text:
        return "empty"
    if len(text) < config.min_chars:
        return "short"
    if count_control(text) > config.max_control_rate * len(text):
        return "damaged"
    if language_share(text, config.language) < config.min_language_share:
        return "language"
    return None


def language_share(text: str, language: str) -> float:
    """Share of letters in the script of the language, in [0, 1]; 0 for a text without letters."""
    script = _HAN if language == "zh" else _LATIN
    num_script = sum(map(len, script.findall(text)))
    num_letters = sum(map(str.isalpha, text))
    return num_script / num_letters if num_letters else 0.0
