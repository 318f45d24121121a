"""The verdict's sentences in words: data says what is meant, a template per kind and language says it."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from components.errors import ArtifactError
from components.report import sentences_en, sentences_zh, words_en, words_zh
from components.report.content import Name, Piece, Pieces
from components.report.numbers import FORMATS, ReportLanguage, number
from components.report.sources import JsonFile

TEMPLATES: dict[ReportLanguage, Mapping[str, str]] = {"en": sentences_en.SENTENCES, "zh": sentences_zh.SENTENCES}
WORDS: dict[ReportLanguage, Mapping[str, str]] = {"en": words_en.WORDS, "zh": words_zh.WORDS}
Keys = tuple[str | int, ...]
Style = Literal["", "use_", "short_"]
"""A sentence in full, what to do as a headline, or in few words."""


def write_sentence(file: JsonFile, keys: Keys, language: ReportLanguage, style: Style = "") -> Pieces:
    """The sentence that stands as data at a place of a file.

    A template's fields are the sentence's, each with the way to show it: ``{mean:score}``, ``{rung:name}``,
    ``{view:word}`` (looked up in the words), or ``{low:part}``, which is the template ``low_<side>``.

    Args:
        file: A verdict or a label curve.
        keys: Keys and positions that lead to the sentence.
        language: Language to write.
        style: In full or shorter; what to do is told by the choice alone, and few words are the full sentence where
            that is short.

    Raises:
        ArtifactError: The kind has no template, or the data lacks what the template shows.
    """
    facts = file.at(*keys)
    kind = _variant(facts)
    # Kinds that are short anyway have one form.
    if style != "short_" or f"short_{kind}" in TEMPLATES[language]:
        kind = style + kind
    if kind not in TEMPLATES[language]:
        known = ", ".join(sorted(TEMPLATES[language]))
        raise ArtifactError(f"{file.place(*keys)} is of kind {kind!r}, the report has words ({language}) for {known}")
    return _fill(TEMPLATES[language][kind], file, keys, language)


def write_template(name: str, file: JsonFile, keys: Keys, language: ReportLanguage) -> Pieces:
    """A named template filled from any object of a file, such as a row of a table."""
    return _fill(TEMPLATES[language][name], file, keys, language)


def _variant(facts: Mapping[str, Any]) -> str:
    """The template's name: the kind, or a variant where a fact that the kind usually has is absent or turned."""
    kind = str(facts["kind"])
    if kind in ("test_too_small", "test_finds", "seeds_too_few"):
        return kind if facts["minimum_detectable_difference"] is not None else f"{kind}_none"
    if kind == "not_separable_items":
        return kind if facts["items_needed"] > facts["num_items"] else f"{kind}_enough"
    if kind == "views_agree":
        return kind if "rival" in facts else f"{kind}_alone"
    if kind == "cheaper_as_good":
        return kind if facts["loss_high"] > 0 else f"{kind}_no_loss"
    return kind


def _fill(template: str, file: JsonFile, keys: Keys, language: ReportLanguage) -> Pieces:
    pieces: list[Piece] = []
    for text, field, kind, _ in string.Formatter().parse(template):
        if text:
            pieces.append(text)
        if field is not None:
            pieces += _field(field, kind or "", file, keys, language)
    return tuple(pieces)


def _field(field: str, kind: str, file: JsonFile, keys: Keys, language: ReportLanguage) -> Sequence[Piece]:
    if kind in FORMATS:
        return [number(file, *keys, field, kind=kind, language=language)]
    if kind == "part":
        return _fill(TEMPLATES[language][f"{field}_{file.at(*keys, f'{field}_is')}"], file, keys, language)
    value = file.at(*keys, field)
    if kind == "name":
        return [Name(str(value))]
    if kind == "names":
        return list_names([str(name) for name in value], language)
    if kind == "word":
        return [WORDS[language].get(str(value), str(value))]
    raise ValueError(f"no way {kind!r} to show {field!r}; a template may use name, names, word, part, {[*FORMATS]}")


def list_names(names: Sequence[str], language: ReportLanguage) -> list[Piece]:
    """Names in a row, with the language's word before the last."""
    pieces: list[Piece] = []
    for position, name in enumerate(names):
        if position:
            last = position == len(names) - 1
            pieces.append(WORDS[language]["list_last" if last else "list_next"])
        pieces.append(Name(name))
    return pieces
