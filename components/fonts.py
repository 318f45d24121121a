"""The font that has the characters of a text: pictures must not show boxes where Chinese should stand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from matplotlib import rcParams
from matplotlib.font_manager import FontEntry, FontProperties, findfont, findSystemFonts, fontManager, get_font

_PLAIN_WEIGHTS = {"400", "normal", "regular", "book", "roman"}


def find_font(texts: Iterable[str]) -> FontProperties | None:
    """The default font if it has every character of the texts, else an installed one that does, else None."""
    return _find_font(frozenset(ord(character) for text in texts for character in text if character not in "\n\u200b"))


@lru_cache(maxsize=256)
def _find_font(characters: frozenset[int]) -> FontProperties | None:
    for file in font_files():
        try:
            if characters <= get_font(file).get_charmap().keys():
                return FontProperties(fname=file)
        except (OSError, RuntimeError):
            continue  # An unreadable font is another program's problem.
    return None


@lru_cache(maxsize=1)
def font_files() -> list[str]:
    """Files of all installed fonts, the default one first, then plain sans serif before the others."""
    # matplotlib's font of last resort maps every character, to a box.
    entries = sorted(fontManager.ttflist, key=_preference)
    known = [entry.fname for entry in entries if not entry.name.startswith(("Last Resort", "LastResort"))]
    # matplotlib keeps its list of fonts in a cache, which fonts installed since then are missing from.
    installed = sorted(
        set(findSystemFonts()) - set(known), key=lambda file: ("Sans" not in file, "Regular" not in file, file)
    )
    return [findfont(FontProperties(family=rcParams["font.family"])), *known, *installed]


def _preference(entry: FontEntry) -> tuple[bool, bool, bool, str, str]:
    plain = str(entry.weight) in _PLAIN_WEIGHTS
    return "Sans" not in entry.name, not plain, entry.style != "normal", entry.name, entry.fname
