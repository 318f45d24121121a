"""Names in the People's Daily of January 1998: part-of-speech tags to persons, places and organisations.

The corpus (Yu et al. 2002) tags words: nr is a person's name or a part of one, ns a place, nt an organisation. Surname
and given name are words of their own, ``江/nr 泽民/nr``, and lists of names often lack a separator,
``江/nr 泽民/nr 李/nr 鹏/nr``. ``group_names`` is the rule that finds the persons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from components.datasets.tag_schemes import EntitySpan

NAME_TYPES = {"nr": "PER", "ns": "LOC", "nt": "ORG"}
COMPOUND_SURNAMES = frozenset(
    ("欧阳", "诸葛", "司马", "司徒", "令狐", "南宫", "上官", "皇甫", "夏侯", "慕容", "尉迟", "公孙", "长孙", "端木")
)
"""Surnames of two characters; the first six occur in the corpus."""
MAX_GIVEN_NAME_CHARS = 2
_WORD = re.compile(r"(\S+?)/([A-Za-z]+)(?:\][A-Za-z]+)?(?=\s|\Z)")
_COMPOUND_START = re.compile(r"(?:(?<=\s)|\A)\[(?=\S)")
_REMARK = re.compile(r"[（〈][^）〉]*[）〉]?")


def tagged_words(line: str) -> list[tuple[str, str]]:
    """The words of a ``word/tag`` line with their tags; brackets of compounds ``[a/n b/n]nt`` are left out."""
    return [(match[1], match[2]) for match in _WORD.finditer(_COMPOUND_START.sub("", line))]


def name_spans(words: Iterable[tuple[str, str]]) -> Iterator[EntitySpan]:
    """The names among tagged words, as spans of characters of the words joined.

    Adjacent places are names of their own, and so are organisations; adjacent nr words go through ``group_names``.
    """
    position = 0
    run: list[str] = []
    for word, tag in [*words, ("", "")]:
        if tag == "nr":
            run.append(word)
        else:
            if run:
                yield from _person_spans(run, position - sum(map(len, run)))
                run = []
            if tag in NAME_TYPES:
                yield EntitySpan(position, position + len(word), NAME_TYPES[tag])
        position += len(word)


def _person_spans(run: Sequence[str], start: int) -> Iterator[EntitySpan]:
    for size in group_names(run):
        end = start + sum(map(len, run[:size]))
        yield EntitySpan(start, end, "PER")
        start, run = end, run[size:]


def group_names(run: Sequence[str]) -> list[int]:
    """How many words each person of a run of adjacent nr words has.

    From left to right: a surname (one character, or one of ``COMPOUND_SURNAMES``) and the word after it are one person
    when that word has at most two characters, a bracketed remark such as 钟（昆音） aside; any other word is a person
    of its own: a surname at the end of the run, a foreign name, a given name without surname. A run of exactly two
    single characters and a word of two is one person with the surnames of both families, such as 陈 方 安生.

    Args:
        run: Words between words of other tags, in order.

    Returns:
        Sizes whose sum is the number of words.
    """
    if len(run) == 3 and [len(word) for word in run] == [1, 1, 2]:
        return [3]
    sizes: list[int] = []
    position = 0
    while position < len(run):
        full = is_surname(run[position]) and position + 1 < len(run) and _is_given_name(run[position + 1])
        sizes.append(2 if full else 1)
        position += sizes[-1]
    return sizes


def is_surname(word: str) -> bool:
    """Whether a word can be a surname that a given name follows."""
    return len(word) == 1 or word in COMPOUND_SURNAMES


def _is_given_name(word: str) -> bool:
    return len(_REMARK.sub("", word)) <= MAX_GIVEN_NAME_CHARS
