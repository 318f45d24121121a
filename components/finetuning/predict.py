"""From a model folder and inputs to predictions: the one way to predict, in training, in serving and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.errors import ArtifactError
from components.finetuning.data import blocks, read_normalization
from components.finetuning.families import FAMILIES
from components.finetuning.fitting import ScoreInputs
from components.finetuning.tasks import TASKS, Facts, Task
from components.formats import read_json
from components.predictions import AnyPrediction
from components.text.normalization import NormalizationConfig

TASK_FILE = "task.json"
PREDICTION_BATCH_SIZE = 32


@dataclass(frozen=True)
class TaskPredictor:
    """A loaded model folder."""

    task: Task
    facts: Facts
    """What ``task.json`` says."""
    normalization: NormalizationConfig
    score_inputs: ScoreInputs

    @property
    def labels(self) -> list[str]:
        """Names of the model's outputs: classes, IOB2 tags, or nothing for question answering."""
        return list(self.facts["labels"])

    def stream(self, inputs: Iterable[Any]) -> Iterator[AnyPrediction]:
        """Predictions in the order of the inputs, their ids the positions ``0``, ``1``, …; bounded memory.

        Raises:
            InputError: An input is not what the task reads; names its position.
        """
        return self.stream_examples(
            self.task.parse_input(position, value, self.facts, self.normalization)
            for position, value in enumerate(inputs)
        )

    def stream_examples(self, examples: Iterable[Any]) -> Iterator[AnyPrediction]:
        """Predictions of the task's examples, with their ids; gold is not looked at."""
        for block in blocks(examples, self.task.block_size):
            yield from self.task.decode(block, self.score_inputs(block), self.facts)


def load_predictor(model_dir: Path, batch_size: int = PREDICTION_BATCH_SIZE) -> TaskPredictor:
    """Load a model folder once, to predict many times.

    Args:
        model_dir: The ``model`` folder of a fine-tuning artifact.
        batch_size: Rows per forward pass; the neural families only.

    Raises:
        ArtifactError: The folder holds no fine-tuned model.
    """
    path = model_dir / TASK_FILE
    if not path.is_file():
        raise ArtifactError(f"{model_dir} holds no {TASK_FILE}: not a fine-tuned model")
    facts = read_json(path)
    task = TASKS[facts["task"]]
    learner = FAMILIES[facts["family"]].learners[task.name]
    score_inputs = learner.restore(model_dir, facts, task, batch_size)
    return TaskPredictor(task, facts, read_normalization(model_dir), score_inputs)


def predict(model_dir: Path, inputs: Sequence[Any], batch_size: int = PREDICTION_BATCH_SIZE) -> list[AnyPrediction]:
    """Predict with the model in a folder; raw texts go through the recipe of the training texts.

    The same inputs with the same batch size give the same bits in any process with the same number of threads. Order
    does not matter within a block of the task. Other inputs beside one can change the last digits of its float32
    scores.

    Args:
        model_dir: The ``model`` folder of a fine-tuning artifact.
        inputs: Classification: texts, or ``{"text", "text_pair"}`` when trained on pairs. NER: texts, or
            ``{"text", "tokens"}``. Question answering: ``{"question", "text"}``; ``context`` is another name of
            ``text``.
        batch_size: Rows per forward pass.

    Returns:
        One prediction an input, in order; ids are the positions as strings. Offsets count code points of the input.

    Raises:
        ArtifactError: The folder holds no fine-tuned model.
        InputError: An input is not what the task reads; names its position.
    """
    return list(load_predictor(model_dir, batch_size).stream(inputs))
