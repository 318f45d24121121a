"""The comparison of all rungs on each task: predictions and costs in, a verdict out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from components.artifacts import Artifact
from components.evaluation.comparison_config import ComparisonConfig, Control, Entry
from components.examples import TaskName
from flows import stages
from flows.chains import Chain, Climbed, Ground
from flows.controls import chosen_controls
from flows.execution import side_by_side
from flows.plan import LadderSettings
from flows.tracking import Ladder


def compare_tasks(climbed: Mapping[Chain, Climbed], ground: Ground, execution: Ladder) -> dict[TaskName, Artifact]:
    """A verdict for every task, in the order of the ladder."""
    tasks = [task.name for task in ground.settings.tasks]
    found = side_by_side(execution, [partial(_compare, task, climbed, ground) for task in tasks])
    return dict(zip(tasks, found, strict=True))


def _compare(task: TaskName, climbed: Mapping[Chain, Climbed], ground: Ground, execution: Ladder) -> Artifact:
    ends = {chain: end for chain, end in climbed.items() if chain.task == task}
    entries = tuple(_entry(chain, end, ground.settings) for chain, end in ends.items())
    predictions = tuple(end.finetuned for end in ends.values())
    config, dataset = _config(ground.settings, entries), ground.datasets[task]
    return stages.compare(execution, config, tags={"task": task}, predictions=predictions, dataset=dataset)


def _entry(chain: Chain, end: Climbed, settings: LadderSettings) -> Entry:
    """Who made a set of predictions, and its cost as measured then, which stays the same when it is reused."""
    section = next(task.finetuning for task in settings.tasks if task.name == chain.task)
    metrics = end.finetuned.metrics
    return Entry(
        rung=chain.rung,
        seed=chain.seed,
        num_train_examples=chain.num_train_examples or section.num_train_examples,
        train_seconds=end.train_seconds,
        items_per_second=metrics["test_items_per_second"],
        num_parameters=round(metrics["num_parameters"]),
        model_bytes=round(metrics["model_bytes"]),
    )


def _config(settings: LadderSettings, entries: tuple[Entry, ...]) -> ComparisonConfig:
    pairs = chosen_controls(settings.comparison.controls, settings.rungs, settings.encoders)
    evaluation = settings.evaluation
    return ComparisonConfig(
        entries=entries,
        controls=tuple(Control(ingredient=pair.ingredient, without=pair.without, with_=pair.with_) for pair in pairs),
        num_resamples=evaluation.num_resamples,
        seed=evaluation.seed,
        language=evaluation.language,
        picture_language=settings.report.language,
        **settings.comparison.model_dump(exclude={"controls"}),
    )
