"""Exact match and F1 of an answer, by the published definition of each language's benchmark.

English: SQuAD (Rajpurkar et al. 2016, section 6.1; 2018 for questions without an answer). An answer is lower-cased,
loses ASCII punctuation and the words a, an, the, and is split at white space; F1 compares bags of words.

Chinese: CMRC 2018 (Cui et al. 2019, section 4.1, and its evaluation script). An answer is lower-cased and segmented
"mixed": every Chinese character is a token, and so is every run of other characters, such as a number or a Latin word.
Punctuation is removed. F1 compares the longest *contiguous* run of tokens that both answers share: its share of the
prediction is the precision, its share of the gold answer the recall. Character-level, so that 北京市 for 北京 is 0.8,
where words between white space would give 0. This differs from the script in four ways:

* NFKC folding first, so that １９９０年 equals 1990年 and a half-width comma is a comma like a full-width one;
* punctuation is every Unicode punctuation mark and the script's own symbols, not only the marks that the script lists,
  but ``%‰#&@§`` and a full stop between digits stay, as 3.5 is not 35;
* the runs of other characters end at white space; the script gives them to NLTK's English tokenizer;
* exact match compares tokens, so that a space between Chinese characters is no error.

In both languages an answer that nothing would be left of, such as ``，`` or ``The``, keeps what it has, so that it
equals itself and not every other one; and no answer at all equals only no answer at all.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from components.scoring.entities import ratio
from components.text.sentences import Language

Tokens = tuple[str, ...]

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_MIXED = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_SCRIPT_SYMBOLS = "^`~+="
"""What the CMRC 2018 script removes although Unicode calls it a symbol."""
_MEANINGFUL = "%‰#&@§"
"""Punctuation to Unicode, part of the answer to a reader."""
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)")


def answer_scores(prediction: str, golds: Sequence[str], language: Language) -> tuple[bool, float]:
    """Exact match and F1 of a predicted answer, each the best over the gold answers.

    Args:
        prediction: The predicted answer; "" says that there is none.
        golds: Every accepted answer; none at all, or only "", when the question has no answer.
        language: Whose definition to use.

    Returns:
        Whether some gold answer is matched exactly, and the highest F1, in [0, 1].
    """
    predicted = answer_tokens(prediction, language)
    wanted = [answer_tokens(gold, language) for gold in golds] or [()]
    return predicted in wanted, max(_F1[language](predicted, gold) for gold in wanted)


def normalize_answer(text: str, language: Language) -> str:
    """The answer as it is compared: two answers match exactly when these are equal."""
    tokens = answer_tokens(text, language)
    if language == "en":
        return " ".join(tokens)
    # A space stands between two tokens only where they would read as one without it.
    pieces = list(tokens[:1])
    for before, token in pairwise(tokens):
        both_runs = not (_HAN_CHARACTER.match(before) or _HAN_CHARACTER.match(token))
        pieces.append(f" {token}" if both_runs else token)
    return "".join(pieces)


@lru_cache(maxsize=1 << 16)
def answer_tokens(text: str, language: Language) -> Tokens:
    """The tokens of an answer by its language's definition; none only for a blank text."""
    return _TOKENS[language](text)


def _english_tokens(text: str) -> Tokens:
    lowered = text.lower()
    without_punctuation = lowered.translate(_ASCII_PUNCTUATION)
    return tuple(_ARTICLE.sub(" ", without_punctuation).split() or lowered.split())


def _chinese_tokens(text: str) -> Tokens:
    folded = unicodedata.normalize("NFKC", text).lower()
    decimals = {match.start() for match in _DECIMAL_POINT.finditer(folded)}
    kept = "".join(
        character for position, character in enumerate(folded) if position in decimals or not _is_punctuation(character)
    )
    return tuple(_MIXED.findall(kept) or _MIXED.findall(folded))


@lru_cache(maxsize=1 << 14)
def _is_punctuation(character: str) -> bool:
    if character in _MEANINGFUL:
        return False
    return character in _SCRIPT_SYMBOLS or unicodedata.category(character).startswith("P")


def _bag_f1(predicted: Tokens, gold: Tokens) -> float:
    if predicted == gold:
        return 1.0
    num_shared = sum((Counter(predicted) & Counter(gold)).values())
    return ratio(2 * num_shared, len(predicted) + len(gold))


def _contiguous_f1(predicted: Tokens, gold: Tokens) -> float:
    if predicted == gold:
        return 1.0
    num_shared = SequenceMatcher(None, gold, predicted, autojunk=False).find_longest_match().size
    return ratio(2 * num_shared, len(predicted) + len(gold))


_TOKENS: dict[Language, Callable[[str], Tokens]] = {"en": _english_tokens, "zh": _chinese_tokens}
_F1: dict[Language, Callable[[Tokens, Tokens], float]] = {"en": _bag_f1, "zh": _contiguous_f1}
