"""Logistic regression over fixed features: the head of the bag-of-words and word-vector rungs.

The features need no gradient, so that a convex solver replaces training steps: same data, same weights, no seed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from components.artifacts import MANIFEST
from components.errors import TrainingError
from components.examples import Example
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreTexts, WeightReport
from components.finetuning.tasks import Task

C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Inverse regularisation strengths that validation chooses from."""
MAX_ITERATIONS = 2000
ABSENT_LABEL_BIAS = -100.0
"""Logit of a label that no training example carries: never predicted, and still finite."""
MINIMUM_KNOWN = 0.5
"""Smallest share of training texts with a feature of the encoder; below it, they do not belong together."""

Features: TypeAlias = csr_matrix
LoadFeatures = Callable[[Path], tuple[Callable[[Sequence[str]], Any], int]]
"""Encoder folder to its transform, texts to [N, F], and its number of parameters."""


@dataclass(frozen=True)
class LinearFamily:
    """What differs between the linear families."""

    load: LoadFeatures
    tensors: tuple[str, ...]
    """Names under which the load report lists what was loaded."""
    standardize: bool
    """Scale every feature to mean 0 and deviation 1 on train; only for dense features, as it would fill sparse ones."""


@dataclass(frozen=True)
class LinearHead:
    """A linear layer over features."""

    weight: NDArray[np.float64]
    """Shape [num_labels, F]."""
    bias: NDArray[np.float64]
    """Shape [num_labels]."""

    def logits(self, features: Features) -> NDArray[np.float64]:
        """Shape [N, num_labels]; the sparse product works row by row, so that no row depends on another."""
        return np.asarray(features @ self.weight.T + self.bias, dtype=np.float64)


def fit_linear(family: LinearFamily, inputs: FittingInputs) -> Fitted:
    """Fit logistic regression on the labelled texts' features; C is given or chosen on validation.

    Args:
        family: Features to use.
        inputs: Encoder, data and settings.

    Raises:
        TrainingError: Most training texts have none of the encoder's features.
    """
    started = time.perf_counter()
    transform, num_encoder_parameters = family.load(inputs.encoder)
    train = _features(transform, inputs.data.train)
    num_unknown = _check_known(inputs, train)
    targets = inputs.task.encode(inputs.data.train, inputs.data.labels)
    shift, scale = _scaling(train) if family.standardize else (np.zeros(train.shape[1]), np.ones(train.shape[1]))
    validation = _features(transform, inputs.data.validation)
    best: tuple[float, float, LinearHead] | None = None
    for C in C_GRID if inputs.config.C is None else (inputs.config.C,):
        head = _fit_head(train, targets, len(inputs.data.labels), C, shift, scale)
        score = _validation_score(inputs, head, validation)
        if best is None or score > best[0]:
            best = (score, C, head)
    assert best is not None
    _, C, head = best
    seconds = time.perf_counter() - started
    shutil.copytree(inputs.encoder, inputs.model_dir, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
    save_file({"weight": head.weight, "bias": head.bias}, inputs.model_dir / HEAD)
    return Fitted(
        WeightReport(loaded=family.tensors),
        num_parameters=num_encoder_parameters + head.weight.size + head.bias.size,
        metrics={
            "train_seconds": seconds, "best_C": C, "num_unknown_texts": num_unknown,
            "num_truncated": 0.0, "num_truncated_train": 0.0,
        },
    )  # fmt: skip


def restore_linear(
    family: LinearFamily, model_dir: Path, facts: Mapping[str, Any], task: Task, batch_size: int
) -> ScoreTexts:
    """The scoring function of a saved linear model."""
    transform, _ = family.load(model_dir)
    tensors = load_file(model_dir / HEAD)
    head = LinearHead(tensors["weight"], tensors["bias"])
    return lambda texts: head.logits(csr_matrix(transform(texts), dtype=np.float64))


def _features(transform: Callable[[Sequence[str]], Any], examples: Sequence[Example]) -> Features:
    return csr_matrix(transform([example.text for example in examples]), dtype=np.float64)


def _check_known(inputs: FittingInputs, features: Features) -> int:
    known = int(np.count_nonzero(features.getnnz(axis=1)))
    total = int(features.shape[0])
    if known < MINIMUM_KNOWN * total:
        raise TrainingError(
            f"{inputs.encoder}: only {known} of {total} training texts hold a word this encoder knows. "
            "Remedy: use the segmenter and the language that the encoder was made with."
        )
    return total - known


def _scaling(features: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    dense = features.toarray()
    deviation = dense.std(axis=0)
    return dense.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _fit_head(
    features: Features,
    targets: NDArray[np.int64],
    num_labels: int,
    C: float,
    shift: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> LinearHead:
    """Fit on (features - shift) / scale, then fold the scaling into weight and bias."""
    unscaled = not shift.any() and (scale == 1).all()
    scaled = features if unscaled else (features.toarray() - shift) / scale
    fitted = LogisticRegression(C=C, max_iter=MAX_ITERATIONS, tol=1e-6).fit(scaled, targets)
    # With two classes scikit-learn keeps one row: the log-odds of the second class over the first.
    rows = np.vstack([np.zeros_like(fitted.coef_), fitted.coef_]) if len(fitted.classes_) == 2 else fitted.coef_
    intercepts = np.concatenate([[0.0], fitted.intercept_]) if len(fitted.classes_) == 2 else fitted.intercept_
    weight, bias = np.zeros((num_labels, features.shape[1])), np.full(num_labels, ABSENT_LABEL_BIAS)
    weight[fitted.classes_] = rows / scale
    bias[fitted.classes_] = intercepts - weight[fitted.classes_] @ shift
    return LinearHead(weight, bias)


def _validation_score(inputs: FittingInputs, head: LinearHead, features: Features) -> float:
    examples, labels = inputs.data.validation, inputs.data.labels
    predictions = inputs.task.decode([example.id for example in examples], head.logits(features), labels)
    return inputs.task.score(examples, predictions)[inputs.config.best_epoch_metric]
