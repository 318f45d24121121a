"""Characters that are no text: what a decoder or a binary file leaves behind."""

from __future__ import annotations

import unicodedata


def is_control(character: str) -> bool:
    """Whether BERT's clean-up drops ``character``: U+FFFD and category C, except tab and line ends."""
    return character == "\ufffd" or (unicodedata.category(character).startswith("C") and character not in "\t\n\r")


def count_control(text: str) -> int:
    """How many control, format, private-use and unassigned characters, and U+FFFD, ``text`` holds."""
    # Nearly all text is printable, and asking that is a hundred times faster than asking for categories.
    if text.isprintable() and "\ufffd" not in text:
        return 0
    return sum(map(is_control, text))
