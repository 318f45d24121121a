"""Logistic regression over fixed features: the classifier of the bag-of-words and word-vector rungs.

The features need no gradient, so that a convex solver replaces training steps: same data, same weights, no seed. A pair
of texts with features a and b is [a; b; |a - b|; a * b]: each side, where they differ and what they share (Mou et al.
2016, section 3.2; Conneau et al. 2017, section 3.1).
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from components.artifacts import MANIFEST
from components.errors import TrainingError
from components.examples import Example
from components.finetuning.classification import encode_labels
from components.finetuning.fitting import HEAD, Fitted, FittingInputs, ScoreInputs, WeightReport
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
    train = pair_features(transform, inputs.data.train)
    num_unknown = _check_known(inputs, train)
    targets = encode_labels(inputs.data.train, inputs.data.labels)
    shift, scale = _scaling(train) if family.standardize else (np.zeros(train.shape[1]), np.ones(train.shape[1]))
    validation = pair_features(transform, inputs.data.validation)
    best: tuple[float, float, LinearHead] | None = None
    for C in C_GRID if inputs.config.C is None else (inputs.config.C,):
        head = _fit_head(train, targets, len(inputs.data.labels), C, shift, scale)
        score = validation_score(inputs, head.logits(validation))
        if best is None or score > best[0]:
            best = (score, C, head)
    assert best is not None
    _, C, head = best
    seconds = time.perf_counter() - started
    copy_encoder(inputs)
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
) -> ScoreInputs:
    """The scoring function of a saved linear model."""
    transform, _ = family.load(model_dir)
    tensors = load_file(model_dir / HEAD)
    head = LinearHead(tensors["weight"], tensors["bias"])
    return lambda examples: head.logits(pair_features(transform, examples))


def copy_encoder(inputs: FittingInputs) -> None:
    """Copy the encoder's files into the model folder, whose task adds its own."""
    shutil.copytree(inputs.encoder, inputs.model_dir, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))


def validation_score(inputs: FittingInputs, outputs: Any) -> float:
    """The score that decides between models, from the outputs of all validation examples in order."""
    blocks = (outputs[start : start + inputs.task.block_size] for start in itertools.count(0, inputs.task.block_size))
    return inputs.validate(lambda examples: next(blocks))[inputs.config.best_epoch_metric]


def pair_features(transform: Callable[[Sequence[str]], Any], examples: Sequence[Example]) -> Features:
    """Features of N texts, shape [N, F], or of N pairs of texts, shape [N, 4F].

    Args:
        transform: N texts to their features, shape [N, F], sparse or dense.
        examples: All single texts or all pairs.
    """
    first = csr_matrix(transform([example.text for example in examples]), dtype=np.float64)
    seconds = [example.text_pair for example in examples if example.text_pair is not None]
    if not seconds:
        return first
    second = csr_matrix(transform(seconds), dtype=np.float64)
    return csr_matrix(hstack([first, second, abs(first - second), first.multiply(second)], format="csr"))


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
    head = head_of(LogisticRegression(C=C, max_iter=MAX_ITERATIONS, tol=1e-6).fit(scaled, targets), num_labels)
    weight = head.weight / scale
    return LinearHead(weight, head.bias - weight @ shift)


def head_of(fitted: LogisticRegression, num_labels: int) -> LinearHead:
    """The weights of a fitted model as one row a label, labels absent from training included."""
    # With two classes scikit-learn keeps one row: the log-odds of the second class over the first.
    two = len(fitted.classes_) == 2
    rows = np.vstack([np.zeros_like(fitted.coef_), fitted.coef_]) if two else fitted.coef_
    intercepts = np.concatenate([[0.0], fitted.intercept_]) if two else fitted.intercept_
    weight, bias = np.zeros((num_labels, rows.shape[1])), np.full(num_labels, ABSENT_LABEL_BIAS)
    weight[fitted.classes_] = rows
    bias[fitted.classes_] = intercepts
    return LinearHead(weight, bias)
