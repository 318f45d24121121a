"""The ladder's way through the stages: data, then every chain and probe side by side, then the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from components.artifacts import Artifact
from flows import stages
from flows.chains import Chain, Climbed, Ground, climb_chain, full_chains, label_chains, train_encoder
from flows.comparison import compare_tasks
from flows.execution import ladder_execution, side_by_side
from flows.leaderboard import RungResult
from flows.outcome import Outcome, publish_outcome
from flows.plan import LadderSettings
from flows.probing import Probing, planned_probes, run_probe
from flows.tasks import TaskRun
from flows.tracking import Ladder


def climb(settings: LadderSettings, parameters: dict[str, Any]) -> str:
    """Run every stage that the settings ask for; returns the id of the aggregate MLflow run.

    Args:
        settings: What to compare, already checked against the language.
        parameters: The flow's parameters as JSON values, for the record.

    Raises:
        ConfigError: See ``LadderSettings.check``.
    """
    settings.check()
    tags = {"language": settings.language, "tasks": ",".join(task.name for task in settings.tasks)}
    with ladder_execution(parameters, tags, len(full_chains(settings))) as (execution, run):
        prepared = side_by_side(execution, [partial(_prepare, task, settings) for task in settings.tasks])
        audited = tuple(dataset for _, dataset in prepared)
        corpus = stages.prepare_corpus(execution, settings.corpus, held_out=audited)
        names = [task.name for task in settings.tasks]
        ground = Ground(settings, dict(zip(names, audited, strict=True)), corpus)
        climbed, probed = _climb_and_probe(ground, execution)
        verdicts = compare_tasks(climbed, ground, execution)
        read = {name: found for name, (found, _) in zip(names, prepared, strict=True)}
        results = _by_rung(settings, climbed)
        outcome = Outcome(settings, read, ground.datasets, corpus, results, verdicts, probed)
        publish_outcome(run, execution.store, parameters, outcome)
    return run.run_id


def _prepare(task: TaskRun, settings: LadderSettings, execution: Ladder) -> tuple[Artifact, Artifact]:
    """A task's labelled data, as read and audited."""
    tagged = {"task": task.name}
    prepared = task.flow.prepare(execution, task.dataset, tags=tagged)
    return prepared, stages.audit_leaks(execution, settings.audit, tags=tagged, dataset=prepared)


def _climb_and_probe(
    ground: Ground, execution: Ladder
) -> tuple[dict[Chain, Climbed], dict[Probing, Artifact]]:  # fmt: skip
    """Everything that can run side by side, at once: the leaderboard's chains first, probes last."""
    settings = ground.settings
    chains = full_chains(settings) + label_chains(ground)
    probings = planned_probes(settings.probes, [rung.name for rung in settings.rungs])
    climbing: list[Callable[[Ladder], Climbed]] = [partial(climb_chain, chain, ground) for chain in chains]
    probing: list[Callable[[Ladder], Artifact]] = [partial(_probe, one, ground) for one in probings]
    found: list[Any] = side_by_side(execution, [*climbing, *probing])
    climbed = dict(zip(chains, found[: len(chains)], strict=True))
    return climbed, dict(zip(probings, found[len(chains) :], strict=True))


def _probe(probing: Probing, ground: Ground, execution: Ladder) -> Artifact:
    settings = ground.settings
    config = settings.probes.chosen(settings.language)[probing.probe]
    if probing.rung is None:
        return run_probe(probing, config, None, ground.corpus, execution)
    # Encoders differ between tasks at most in their units: the first task's speaks for the rung.
    encoder = train_encoder(Chain(settings.tasks[0].name, probing.rung, settings.seeds[0]), ground, execution)
    return run_probe(probing, config, encoder.artifact, ground.corpus, execution)


def _by_rung(settings: LadderSettings, climbed: Mapping[Chain, Climbed]) -> list[RungResult]:
    """The results in the order of the settings, whatever order they came in."""
    results = []
    for task in settings.tasks:
        for rung in settings.rungs:
            ends = [climbed[Chain(task.name, rung.name, seed)] for seed in settings.seeds]
            evaluated = tuple(end.evaluated for end in ends if end.evaluated is not None)
            results.append(RungResult(rung.name, task.name, tuple(end.finetuned for end in ends), evaluated))
    return results
