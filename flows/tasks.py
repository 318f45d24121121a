"""The tasks of a ladder: the section each has in ``pipelines.yaml``, and what it asks of stages and encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from components.contract import StageConfig
from components.datasets.config import DatasetConfig
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.qa_config import QuestionAnsweringDatasetConfig
from components.errors import ConfigError
from components.examples import TaskName
from components.finetuning.config import ClassificationConfig, FinetuningConfig, NerConfig, QuestionAnsweringConfig
from flows import stages
from flows.encoders import Reading, Units
from flows.rungs import Rung
from flows.settings import overridden, with_fields
from flows.tracking import Stage


class ClassificationSection(StageConfig):
    """Which class a text, or a pair of texts, belongs to."""

    dataset: DatasetConfig = DatasetConfig()
    """Labelled texts."""
    finetuning: ClassificationConfig = ClassificationConfig()
    """Task training, the same budget for every rung."""


class NerSection(StageConfig):
    """Which spans of a text name a person, a place, an organisation."""

    dataset: NerDatasetConfig = NerDatasetConfig()
    """Tagged texts."""
    finetuning: NerConfig = NerConfig()
    """Task training, the same budget for every rung."""


class QuestionAnsweringSection(StageConfig):
    """Which span of a passage answers a question."""

    dataset: QuestionAnsweringDatasetConfig = QuestionAnsweringDatasetConfig()
    """Questions with passages and answers."""
    finetuning: QuestionAnsweringConfig = QuestionAnsweringConfig()
    """Task training, the same budget for every rung."""


class Sections(TypedDict):
    """The section of every task."""

    classification: ClassificationSection
    ner: NerSection
    question_answering: QuestionAnsweringSection


@dataclass(frozen=True)
class TaskFlow:
    """What differs between tasks on the way through the stages."""

    prepare: Stage
    units: Units
    """Sentence tasks read words; token tasks read WordPiece tokens on every rung, so that spans can be compared."""
    rung_fields: tuple[str, ...]
    """Fields of a rung that override the task's fine-tuning section."""


TASK_FLOWS: dict[TaskName, TaskFlow] = {
    "classification": TaskFlow(stages.prepare_dataset, "words", ("pooling",)),
    "ner": TaskFlow(stages.prepare_ner, "pieces", ("crf",)),
    "question_answering": TaskFlow(stages.prepare_question_answering, "pieces", ()),
}


@dataclass(frozen=True)
class TaskRun:
    """One task as a ladder runs it."""

    name: TaskName
    dataset: StageConfig
    finetuning: FinetuningConfig

    @property
    def flow(self) -> TaskFlow:
        """What is particular to the task."""
        return TASK_FLOWS[self.name]

    @property
    def reading(self) -> Reading:
        """What the task asks of encoders."""
        return Reading(self.name, self.flow.units, self.finetuning.num_train_examples)

    def finetuning_for(self, rung: Rung, seed: int) -> FinetuningConfig:
        """The fine-tuning settings of one rung and seed.

        Raises:
            ConfigError: The section sets a field that rung or seed decides.
        """
        own = {name: getattr(rung, name) for name in self.flow.rung_fields}
        config = with_fields(self.finetuning, f"{self.name}.finetuning", seed=seed)
        return overridden(config, {name: value for name, value in own.items() if value is not None})


def chosen_tasks(names: list[TaskName], sections: Sections, language: str) -> list[TaskRun]:
    """The tasks of a ladder, in its order, their sections told the language.

    Raises:
        ConfigError: A task repeats, or a section that sets another language.
    """
    if len(set(names)) != len(names):
        raise ConfigError(f"tasks {names} repeat: name each once")
    runs = []
    for name in names:
        section: Any = sections[name]
        dataset, finetuning = section.dataset, section.finetuning
        if "language" in type(dataset).model_fields:
            dataset = with_fields(dataset, f"{name}.dataset", language=language)
        runs.append(TaskRun(name, dataset, _agreeing(finetuning, name, {"language": language, **_policy(dataset)})))
    return runs


def _policy(dataset: StageConfig) -> dict[str, Any]:
    """What the data set stage let pass must not stop fine-tuning."""
    return {"unseen_label": dataset.unseen_label} if hasattr(dataset, "unseen_label") else {}


def _agreeing(finetuning: FinetuningConfig, task: TaskName, values: dict[str, Any]) -> FinetuningConfig:
    decided = {name: value for name, value in values.items() if name in type(finetuning).model_fields}
    return with_fields(finetuning, f"{task}.finetuning", **decided)
