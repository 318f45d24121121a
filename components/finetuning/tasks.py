"""What differs between tasks, as a record of functions in one table.

Encoder families know nothing of labels and tasks know nothing of encoders: a family turns texts into vectors, a task
says what is predicted from them, which loss teaches it, and how outputs become predictions and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor, nn

from components.examples import Example
from components.predictions import Prediction

INITIALIZER_RANGE = 0.02
"""Standard deviation of a fresh head's weights, as in BERT (Devlin et al. 2019)."""


@dataclass(frozen=True)
class Task:
    """One supervised task."""

    encode: Callable[[Sequence[Example], Sequence[str]], NDArray[np.int64]]
    """Examples and label names to training targets."""
    make_head: Callable[[int, int, float], nn.Module]
    """Hidden size, number of labels and dropout to the head above the encoder."""
    loss: Callable[[Tensor, Tensor, float], Tensor]
    """Head outputs, targets and label smoothing to the mean loss of a batch."""
    decode: Callable[[Sequence[str], NDArray[np.float64], Sequence[str]], list[Prediction]]
    """Ids, head outputs and label names to predictions."""
    score: Callable[[Sequence[Example], Sequence[Prediction]], dict[str, float]]
    """Gold examples and their predictions, in the same order, to validation metrics."""


def encode_labels(examples: Sequence[Example], labels: Sequence[str]) -> NDArray[np.int64]:
    """Class index of each example, shape [N]."""
    index = {label: position for position, label in enumerate(labels)}
    return np.array([index[example.label] for example in examples], dtype=np.int64)


def make_label_head(hidden_size: int, num_labels: int, dropout: float) -> nn.Module:
    """Dropout and one linear layer over the text's vector (Devlin et al. 2019, section 4.1)."""
    linear = nn.Linear(hidden_size, num_labels)
    nn.init.normal_(linear.weight, std=INITIALIZER_RANGE)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(nn.Dropout(dropout), linear)


def label_loss(logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    """Mean cross-entropy in nats.

    Args:
        logits: Shape [B, num_labels], float.
        targets: Shape [B], int64 class indices.
        label_smoothing: Share of the target probability spread over all labels.
    """
    return nn.functional.cross_entropy(logits.float(), targets, label_smoothing=label_smoothing)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities over the last axis."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


def decode_labels(ids: Sequence[str], logits: NDArray[np.float64], labels: Sequence[str]) -> list[Prediction]:
    """The most probable label of each text, the first one on a tie, with all probabilities.

    Args:
        ids: N ids.
        logits: Shape [N, num_labels].
        labels: Names in the order of the columns.
    """
    return [
        Prediction(name, labels[int(np.argmax(row))], dict(zip(labels, row.tolist(), strict=True)))
        for name, row in zip(ids, softmax(logits), strict=True)
    ]


def score_labels(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Accuracy and macro-F1 (unweighted mean of F1 over the labels that occur in gold or predictions)."""
    gold = [example.label for example in examples]
    predicted = [prediction.label for prediction in predictions]
    return {
        "accuracy": float(accuracy_score(gold, predicted)),
        "macro_f1": float(f1_score(gold, predicted, average="macro", zero_division=0)),
    }


TASKS: dict[str, Task] = {
    "classification": Task(encode_labels, make_label_head, label_loss, decode_labels, score_labels),
}
