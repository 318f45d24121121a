"""Learners of the order task, one a family: whole networks are trained, fixed vectors get a linear head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from components.encoders.recurrent import RecurrentEncoder
from components.probes.draws import generator_at
from components.training import StepLoss, TrainingSettings, train

_TEST_ROWS = 256


@dataclass(frozen=True)
class OrderTask:
    """Sentences in the encoder's own ids, and how long to train."""

    train_ids: list[list[int]]
    train_labels: list[int]
    test_ids: list[list[int]]
    num_train_steps: int
    batch_size: int
    learning_rate: float
    seed: int


class BertClassifier(nn.Module):
    """A BERT with a linear head on [CLS]."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, 2)

    def forward(self, input_ids_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Logits, shape [B, 2]."""
        mask_BL = (torch.arange(input_ids_BL.shape[1]) < lengths_B[:, None]).long()
        states = self.encoder(input_ids=input_ids_BL, attention_mask=mask_BL).last_hidden_state
        logits: Tensor = self.head(states[:, 0])
        return logits


class RecurrentClassifier(nn.Module):
    """A recurrent encoder with a linear head on the last states."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.output_size, 2)

    def forward(self, input_ids_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Logits, shape [B, 2]."""
        logits: Tensor = self.head(self.encoder(input_ids_BL, lengths_B).last_BH)
        return logits


def pad(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Rows padded on the right with 0, and their lengths."""
    lengths = [len(row) for row in rows]
    padded = [[*row, *[0] * (max(lengths) - len(row))] for row in rows]
    return torch.tensor(padded), torch.tensor(lengths)


def learn_order(model: nn.Module, task: OrderTask) -> NDArray[np.int64]:
    """Train the whole model on the order task; returns the predicted labels of the test sentences."""
    labels = torch.tensor(task.train_labels)

    def losses_at(step: int) -> Iterator[StepLoss]:
        generator = generator_at(task.seed, step)
        chosen = torch.randint(len(labels), (task.batch_size,), generator=generator)
        logits = model(*pad([task.train_ids[int(row)] for row in chosen]))
        yield StepLoss(nn.functional.cross_entropy(logits, labels[chosen]))

    settings = TrainingSettings(
        task.num_train_steps, task.learning_rate, task.seed, warmup_steps=task.num_train_steps // 10
    )
    train(model, losses_at, settings)
    model.eval()
    found = []
    with torch.inference_mode():
        for start in range(0, len(task.test_ids), _TEST_ROWS):
            found.append(model(*pad(task.test_ids[start : start + _TEST_ROWS])).argmax(-1))
    return np.asarray(torch.cat(found).numpy(), dtype=np.int64)


def fit_linear(train_features: Any, train_labels: Sequence[int], test_features: Any) -> NDArray[np.int64]:
    """Logistic regression on fixed vectors of whole sentences."""
    # Tiny rounding differences between the two sentences of a pair must not decide anything.
    fitted = LogisticRegression(max_iter=200).fit(train_features, train_labels)
    scores = np.round(fitted.decision_function(test_features), 4)
    return np.asarray(scores > 0, dtype=np.int64)
