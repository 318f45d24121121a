"""What the audit sees of an example of any task: the text that may be copied, and the gold that may contradict."""

from __future__ import annotations

from collections.abc import Hashable

from components.datasets.rows import text_key
from components.examples import OUTSIDE, AnyExample, Example, Question, TaggedText

SEPARATOR = "\0"
"""Between the two texts of an example; no white space, so that a pair stays a pair when white space goes."""
SHOWN_CHARS = 80


def audit_text(example: AnyExample) -> str:
    """The text that makes two examples copies: of a pair both, of a question passage and question."""
    if isinstance(example, Question):
        return f"{example.text}{SEPARATOR}{example.question}"
    if isinstance(example, Example) and example.text_pair is not None:
        return f"{example.text}{SEPARATOR}{example.text_pair}"
    return example.text


def gold(example: AnyExample) -> Hashable:
    """What must be equal for two examples of one text not to contradict: label, tags, or the set of answers."""
    if isinstance(example, Question):
        return frozenset(text_key(answer.text) for answer in example.answers)
    return example.label if isinstance(example, Example) else example.tags


def shown_gold(example: AnyExample) -> str:
    """The gold in short, for the report."""
    if isinstance(example, Example):
        return example.label
    if isinstance(example, Question):
        return " | ".join(answer.text for answer in example.answers)[:SHOWN_CHARS]
    return " ".join(example.tags)[:SHOWN_CHARS]


def learned_names(example: AnyExample) -> set[str]:
    """The labels that an example teaches: its class, or its entity types; none for a question."""
    if isinstance(example, Example):
        return {example.label}
    if isinstance(example, TaggedText):
        return {tag.partition("-")[2] for tag in example.tags if tag != OUTSIDE}
    return set()
