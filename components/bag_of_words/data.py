"""The labelled texts that a vocabulary may be learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from components.errors import InputError
from components.examples import Example, read_examples, select_examples


def read_training_examples(dataset: Path, num_train_examples: int | None, seed: int) -> list[Example]:
    """The labelled budget of this run, drawn from the training split only: no feature comes from unseen texts.

    Raises:
        InputError: The training split is missing or empty.
    """
    path = dataset / "train.jsonl"
    examples = read_examples(dataset, "train") if path.is_file() else []
    if not examples:
        raise InputError(
            "no labelled training text", file=path, remedy="prepare a dataset whose training split has examples"
        )
    return select_examples(examples, num_train_examples, seed)


def count_documents(texts: Iterable[str], analyze: Callable[[str], list[str]]) -> Counter[str]:
    """For every feature, the number of texts it occurs in."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(analyze(text)))
    return counts
