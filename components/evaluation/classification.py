"""Scoring of labels: accuracy and macro F1, from one-hot counts per item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float32]


def label_counts(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> Counts:
    """For each item one-hot rows of its gold label, its predicted label, and the label if both agree.

    Returns:
        Shape [N, 3 · C] for C labels: gold, predicted and true-positive counts per label.
    """
    rows, gold_index, predicted_index = _indices(gold, predicted, labels)
    num_labels = len(labels)
    counts = np.zeros((len(rows), 3 * num_labels), dtype=np.float32)
    counts[rows, gold_index] = 1
    counts[rows, num_labels + predicted_index] = 1
    agree = gold_index == predicted_index
    counts[rows[agree], 2 * num_labels + gold_index[agree]] = 1
    return counts


def accuracy(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Share of items whose label is right."""
    gold, _, true_positives = _split(sums)
    return np.asarray(true_positives.sum(axis=-1) / gold.sum(axis=-1), dtype=np.float64)


def macro_f1(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Unweighted mean of F1 over the labels that occur in gold or predictions (scikit-learn's definition).

    This is the mean of per-label F1, not F1 of mean precision and mean recall, which can differ widely
    (Opitz & Burst 2019).

    Args:
        sums: Shape [..., 3 · C]: gold, predicted and true-positive counts per label.

    Returns:
        Shape [...]; 0 where no label occurs.
    """
    gold, predicted, true_positives = _split(sums)
    total = gold + predicted
    present = total > 0
    f1 = np.divide(2 * true_positives, total, out=np.zeros(total.shape), where=present)
    return np.asarray(f1.sum(axis=-1) / np.maximum(present.sum(axis=-1), 1), dtype=np.float64)


def describe_labels(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Precision, recall, F1 and support per label, and the confusion matrix (rows gold, columns predicted)."""
    _, gold_index, predicted_index = _indices(gold, predicted, labels)
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(matrix, (gold_index, predicted_index), 1)
    support, chosen, right = matrix.sum(axis=1), matrix.sum(axis=0), matrix.diagonal()
    per_class = [
        {
            "label": label,
            "precision": _ratio(right[index], chosen[index]),
            "recall": _ratio(right[index], support[index]),
            "f1": _ratio(2 * right[index], chosen[index] + support[index]),
            "support": int(support[index]),
        }
        for index, label in enumerate(labels)
    ]
    return {"per_class": per_class, "confusion_matrix": matrix.tolist()}


def _indices(
    gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    index = {label: position for position, label in enumerate(labels)}
    return (
        np.arange(len(gold)),
        np.array([index[label] for label in gold], dtype=np.intp),
        np.array([index[label] for label in predicted], dtype=np.intp),
    )


def _split(sums: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    gold, predicted, true_positives = np.split(np.asarray(sums, dtype=np.float64), 3, axis=-1)
    return gold, predicted, true_positives


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else 0.0
