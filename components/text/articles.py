"""Articles of the People's Daily corpus of January 1998: its ``word/tag`` lines, and which of them open an article.

The corpus is the one annotated at Peking University (Yu et al. 2002, Journal of Chinese Information Processing 16(5)).
Its plain copies hold no article marks, so that an article is found by its headline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from components.text.sentences import has_sentence_end

_TAG = re.compile(r"/[A-Za-z]+(?:\][A-Za-z]+)?(?:\s+|\Z)")
_COMPOUND_START = re.compile(r"(?:(?<=\s)|\A)\[(?=\S)")
_CONTINUING = ("：", "；", "，", "、", "”", "』")


def untag(line: str) -> str:
    """The plain text of a line of ``word/tag`` tokens, with compound brackets ``[a/n b/n]nt`` removed."""
    if "]" in line:
        line = _COMPOUND_START.sub("", line)
    return "".join(_TAG.sub("", line).split())


def is_heading(text: str) -> bool:
    """Whether a line of the People's Daily corpus is a headline.

    A headline has no sentence-final punctuation at all, does not end as running text does before it goes on, and is
    not one bracketed remark such as the name of a photographer.
    """
    bracketed = text.startswith("（") and text.endswith("）")
    return not (has_sentence_end(text) or text.endswith(_CONTINUING) or bracketed)


def article_openings(texts: Iterable[str]) -> Iterator[bool]:
    """For each plain line whether an article opens at it.

    It does at a headline that follows anything but a headline; further headlines are its subtitles.
    """
    after_heading = False
    for text in texts:
        heading = is_heading(text)
        yield heading and not after_heading
        after_heading = heading
