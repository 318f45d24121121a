"""From a model folder and texts to predictions: the one way to predict, in training, in serving and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.errors import ArtifactError, InputError
from components.finetuning.data import windows
from components.finetuning.families import FAMILIES
from components.finetuning.fitting import ScoreTexts
from components.finetuning.tasks import TASKS, Task
from components.formats import read_json
from components.predictions import Prediction

TASK_FILE = "task.json"
PREDICTION_BATCH_SIZE = 32
WINDOW = 2048
"""Texts held and sorted by length at a time: memory does not grow with the number of texts."""


@dataclass(frozen=True)
class TaskPredictor:
    """A loaded model folder."""

    task: Task
    labels: list[str]
    score_texts: ScoreTexts

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """Predictions in the order of the texts, their ids the positions ``0``, ``1``, …; bounded memory.

        Raises:
            InputError: A text is not a string or cannot be written as UTF-8.
        """
        start = 0
        for window in windows(texts, WINDOW):
            for position, text in enumerate(window, start):
                _check_text(position, text)
            ids = [str(position) for position in range(start, start + len(window))]
            yield from self.task.decode(ids, self.score_texts(window), self.labels)
            start += len(window)


def load_predictor(model_dir: Path, batch_size: int = PREDICTION_BATCH_SIZE) -> TaskPredictor:
    """Load a model folder once, to predict many times.

    Args:
        model_dir: The ``model`` folder of a fine-tuning artifact.
        batch_size: Texts per forward pass; the neural families only.

    Raises:
        ArtifactError: The folder holds no fine-tuned model.
    """
    path = model_dir / TASK_FILE
    if not path.is_file():
        raise ArtifactError(f"{model_dir} holds no {TASK_FILE}: not a fine-tuned model")
    facts = read_json(path)
    task = TASKS[facts["task"]]
    score_texts = FAMILIES[facts["family"]].restore(model_dir, facts, task, batch_size)
    return TaskPredictor(task, list(facts["labels"]), score_texts)


def predict(model_dir: Path, inputs: Sequence[str], batch_size: int = PREDICTION_BATCH_SIZE) -> list[Prediction]:
    """Predict texts with the model in a folder.

    The same texts with the same batch size give the same bits in any process with the same number of threads. Order
    does not matter within ``WINDOW`` texts. Other texts beside one can change the last digits of its float32 scores.

    Args:
        model_dir: The ``model`` folder of a fine-tuning artifact.
        inputs: Texts.
        batch_size: Texts per forward pass.

    Returns:
        One prediction a text, in order; ids are the positions as strings.

    Raises:
        ArtifactError: The folder holds no fine-tuned model.
        InputError: A text is not a string or cannot be written as UTF-8.
    """
    return list(load_predictor(model_dir, batch_size).stream(inputs))


def _check_text(position: int, text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"text {position} is a {type(text).__name__}, not a string", remedy="give strings")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"text {position} holds a lone surrogate at character {error.start}", remedy="repair the text's encoding"
        ) from error
