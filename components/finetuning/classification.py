"""Classification of a text or a pair of texts: examples, serving inputs, decoding and validation scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from components.errors import InputError
from components.examples import Example
from components.finetuning.config import ClassificationConfig
from components.finetuning.data import (
    TaskData,
    check_fields,
    read_budget,
    read_names,
    read_normalization,
    read_rows,
)
from components.finetuning.inputs import check_text, clean_text, fields_of
from components.predictions import Prediction
from components.text.normalization import NormalizationConfig, normalize


def read_classification(dataset: Path, config: ClassificationConfig) -> TaskData[Example]:
    """Draw the labelled budget from train and check it, and all of the other splits; texts come back normalised.

    Args:
        dataset: Dataset artifact.
        config: Settings.

    Raises:
        InputError: Naming file, line and value: a label outside ``labels.json`` or not a string, a repeated id, an
            empty split, fewer than two labels, pairs and single texts in one data set, or a budget that train cannot
            pay.
    """
    labels, normalization = read_names(dataset, 2), read_normalization(dataset)
    chosen = read_budget(dataset, partial(_parse, normalization, labels), config.num_train_examples, config.seed)
    if len({example.label for example in chosen}) < 2:
        raise InputError(
            f"all {len(chosen)} training examples carry the label {chosen[0].label!r}: nothing to tell apart",
            file=dataset / "train.jsonl",
            remedy="raise num_train_examples, change seed or add examples of another label",
        )
    parse = partial(_parse, normalization, labels if config.unseen_label == "stop" else None)
    validation, test = read_rows(dataset, "validation", parse), read_rows(dataset, "test", parse)
    pairs = _all_pairs(dataset, [*chosen, *validation, *test])
    num_unseen_labels = sum(example.label not in labels for example in [*validation, *test])
    return TaskData(labels, chosen, validation, test, normalization, {"pairs": pairs}, num_unseen_labels)


def _parse(
    normalization: NormalizationConfig, labels: Sequence[str] | None, path: Path, line: int, row: dict[str, Any]
) -> Example:
    check_fields(path, line, row, ("id", "text", "label"))
    pair = row.get("text_pair")
    if pair is not None:
        check_fields(path, line, row, ("text_pair",))
        pair = normalize(pair, normalization, file=path, line=line).text
    if labels is not None and row["label"] not in labels:
        shown = ", ".join(repr(name) for name in sorted(labels)[:20])
        raise InputError(
            f"label {row['label']!r} is not in labels.json: {shown}",
            file=path,
            line=line,
            remedy="correct the label, or set unseen_label: count_as_wrong if it is a validation or test label",
        )
    text = normalize(row["text"], normalization, file=path, line=line).text
    return Example(row["id"], text, row["label"], bool(row.get("leaked", False)), pair)


def _all_pairs(dataset: Path, examples: Sequence[Example]) -> bool:
    num_pairs = sum(example.text_pair is not None for example in examples)
    if num_pairs not in (0, len(examples)):
        first = next(example for example in examples if (example.text_pair is None) == (2 * num_pairs > len(examples)))
        raise InputError(
            f"{num_pairs} of {len(examples)} examples are pairs of texts; {first.id} differs from most",
            file=dataset,
            remedy="give every example a text_pair, or none",
        )
    return num_pairs > 0


def parse_text(position: int, value: Any, facts: Mapping[str, Any], normalization: NormalizationConfig) -> Example:
    """A serving input: a text, or ``{"text", "text_pair"}``; without a label.

    Raises:
        InputError: Naming the position.
    """
    if isinstance(value, Mapping):
        fields = fields_of(position, value, required=("text",), optional=("text_pair",))
        text, pair = fields["text"], fields.get("text_pair")
    else:
        text, pair = check_text(position, value), None
    if (pair is not None) != facts["pairs"]:
        wanted = 'a pair {"text", "text_pair"}' if facts["pairs"] else "one text"
        raise InputError(f"input {position} is not what this model was trained on: {wanted}")
    cleaned = clean_text(position, text, normalization)
    return Example(
        str(position), cleaned, "", text_pair=None if pair is None else clean_text(position, pair, normalization)
    )


def encode_labels(examples: Sequence[Example], labels: Sequence[str]) -> NDArray[np.int64]:
    """Class index of each example, shape [N]."""
    index = {label: position for position, label in enumerate(labels)}
    return np.array([index[example.label] for example in examples], dtype=np.int64)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities over the last axis."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


def decode_labels(
    examples: Sequence[Example], logits: NDArray[np.float64], facts: Mapping[str, Any]
) -> list[Prediction]:
    """The most probable label of each example, the first one on a tie, with all probabilities.

    Args:
        examples: N examples, of which only the ids are read.
        logits: Shape [N, num_labels].
        facts: ``labels`` in the order of the columns.
    """
    labels = facts["labels"]
    return [
        Prediction(example.id, labels[int(np.argmax(row))], dict(zip(labels, row.tolist(), strict=True)))
        for example, row in zip(examples, softmax(logits), strict=True)
    ]


def score_labels(
    examples: Sequence[Example], predictions: Sequence[Prediction], facts: Mapping[str, Any]
) -> dict[str, float]:
    """Accuracy and macro-F1 (unweighted mean of F1 over the labels that occur in gold or predictions)."""
    gold = [example.label for example in examples]
    predicted = [prediction.label for prediction in predictions]
    return {
        "accuracy": float(accuracy_score(gold, predicted)),
        "macro_f1": float(f1_score(gold, predicted, average="macro", zero_division=0)),
    }
