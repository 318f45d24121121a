"""The label-efficiency curve: the same rungs once more, with fewer labels."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.artifacts import Artifact
from components.contract import StageConfig, Strings
from components.errors import ConfigError
from components.examples import TaskName
from flows.progress import say
from flows.tasks import TaskRun

Count = Annotated[int, Field(ge=2)]


class LabelCurveSection(StageConfig):
    """How many labels the rungs are fine-tuned with besides the number of each task's own section."""

    num_train_examples: Annotated[tuple[Count | None, ...], Field(strict=False, min_length=1)]
    """Numbers of labels; of one seed each subset holds the smaller ones. Empty (null) means as many as the task's own
    section gives, where every curve ends."""
    rungs: Strings | None = None
    """Names of the rungs that get a curve; empty means all."""
    tasks: Annotated[tuple[TaskName, ...], Field(strict=False)] | None = None
    """Tasks that get a curve; empty means all."""

    def check(self, rungs: list[str], tasks: list[TaskName]) -> None:
        """Refuse names that are not in the ladder, and repeated numbers.

        Raises:
            ConfigError: With the name and what would fit.
        """
        counts = self.num_train_examples
        if len(set(counts)) != len(counts):
            raise ConfigError(f"label_curve.num_train_examples {list(counts)} repeat: give each number once")
        for field, known in (("rungs", rungs), ("tasks", tasks)):
            if unknown := sorted(set(getattr(self, field) or ()) - set(known)):
                raise ConfigError(f"label_curve.{field} names {unknown}, which this ladder has not; it has {known}")

    def includes(self, task: TaskName, rung: str) -> bool:
        """Whether a rung gets a curve on a task."""
        return (self.tasks is None or task in self.tasks) and (self.rungs is None or rung in self.rungs)


def extra_counts(section: LabelCurveSection | None, task: TaskRun, dataset: Artifact) -> list[int]:
    """The numbers of labels below the task's own, smallest first; larger ones are named and left out.

    Args:
        section: What was asked for.
        task: The task and its own number of labels.
        dataset: Its audited examples.
    """
    if section is None or (section.tasks is not None and task.name not in section.tasks):
        return []
    given = _count_train(dataset)
    full = min(task.finetuning.num_train_examples or given, given)
    asked = [count for count in section.num_train_examples if count is not None]
    if beyond := sorted(count for count in asked if count >= full):
        names = ", ".join(f"{count:,}" for count in beyond)
        say("changed", f"Label curve · {task.name}", f"{names} labels: the curve ends at the task's own {full:,}")
    return sorted(count for count in asked if count < full)


def _count_train(dataset: Artifact) -> int:
    with (dataset.path / "train.jsonl").open("rb") as stream:
        return sum(1 for _ in stream)
