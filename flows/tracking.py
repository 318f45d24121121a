"""``tracked``: turns a component's stage function into a cached, MLflow-logged Prefect task.

In this order: check the input names, compute the key, return the stored artifact on a hit (Prefect shows *Cached*, and
the MLflow run that made it joins the current ladder's comparison), else run in a scratch folder inside an MLflow run,
then verify and publish by one rename. A stage that fails leaves nothing in the store and its run ends FAILED.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from components.artifacts import MANIFEST, Artifact, Store, publish
from components.contract import Metrics, StageConfig
from components.errors import ArtifactError, ConfigError
from flows import fingerprint
from flows.mlflow_runs import RunLog, rounded
from flows.progress import StageProgress, say
from flows.slots import SharedResults, Urgency
from flows.workers import Workers

if TYPE_CHECKING:
    from mlflow import MlflowClient

Inputs = Mapping[str, tuple[Artifact, ...]]


@dataclass(frozen=True)
class Ladder:
    """One execution of a flow: where its stages store and track, and what they have in common."""

    store: Store
    client: MlflowClient
    run_id: str
    """The aggregate MLflow run that stands for this execution."""
    workers: Workers
    tags: dict[str, str] = field(default_factory=dict)
    results: SharedResults = field(default_factory=SharedResults)
    priority: int = 0
    """Of stages that wait for a core the one with the smallest number comes first."""


def _never(config: Any) -> bool:
    return False


@dataclass(frozen=True)
class Stage:
    """A tracked stage: which function computes it, what people call it, where MLflow shows it."""

    module: str
    function: str
    title: str
    experiment: str
    log_model: Callable[[RunLog, Path], None] | None = None
    all_cores: Callable[[Any], bool] = _never
    """Whether a configuration means long training, worth every core; other stages run side by side instead."""
    several: frozenset[str] = frozenset()
    """Arguments that take any number of artifacts; the same name may take one in another stage."""

    def __call__(
        self,
        ladder: Ladder,
        config: StageConfig,
        *,
        tags: Mapping[str, str] | None = None,
        **inputs: Artifact | tuple[Artifact, ...] | None,
    ) -> Artifact:
        """Run or reuse this stage.

        Args:
            ladder: The execution it belongs to.
            config: The stage's configuration.
            tags: What tells this run from its siblings, such as rung, task and seed.
            inputs: Artifacts by the stage function's argument names; None for an optional one not given.

        Returns:
            The published artifact, made now or before.
        """
        given = {name: value if isinstance(value, tuple) else (value,) for name, value in inputs.items() if value}
        _check_inputs(self, given)
        identity = fingerprint.identity_of(self.function, self.module, config, given)
        call = StageCall(self, ladder, config, dict(tags or {}), given, identity, fingerprint.key_of(identity))
        return ladder.results.get(call.key, ladder.priority, call.in_turn)


@dataclass(frozen=True)
class StageCall:
    """One stage with everything it is called with, and the key that follows from it."""

    stage: Stage
    ladder: Ladder
    config: StageConfig
    tags: dict[str, str]
    inputs: Inputs
    identity: fingerprint.Identity
    key: str

    def in_turn(self, urgency: Urgency) -> Artifact:
        """Wait for a core, then run as a Prefect task."""
        stage, ladder = self.stage, self.ladder
        with ladder.workers.slot(urgency, all_cores=self.all_cores):
            # Prefect walks through every argument of a task, which here is the whole execution so far: it gets none.
            as_task = task(name=stage.title, task_run_name=self.label, cache_policy=NO_CACHE, persist_result=False)
            artifact: Artifact = as_task(self.run)(return_state=True).result()
        return artifact

    @property
    def all_cores(self) -> bool:
        """Whether it runs alone, with every core."""
        return self.stage.all_cores(self.config)

    @property
    def num_threads(self) -> int:
        """Threads that torch may use."""
        return self.ladder.workers.num_threads(all_cores=self.all_cores)

    def run(self) -> Any:
        """Reuse or compute, under the lock that equal calls share."""
        return _run_stage(self)

    @property
    def label(self) -> str:
        """What people see on the terminal and in Prefect: the title and what tells it from its siblings."""
        return " · ".join([self.stage.title, *self._distinctions])

    @property
    def run_name(self) -> str:
        """The name in MLflow, whose table is narrow and whose experiment already says which stage it is."""
        return " · ".join(self._distinctions) or self.stage.title

    @property
    def _distinctions(self) -> list[str]:
        return [_SHOWN.get(name, "{}").format(value) for name, value in self.tags.items()]


_SHOWN = {"seed": "seed {}", "labels": "{} labels"}


def _run_stage(call: StageCall) -> Any:
    store = call.ladder.store
    # Two flows that need the same result wait for each other here; the second one then finds it.
    with store.lock(f"{call.stage.function}-{call.key[:32]}"):
        found = _find(call)
        if found is not None:
            _join_ladder(call.ladder, found, "reused")
            say("reused", call.label, f"made in {found.details['seconds']:.1f} s")
            return Completed(name="Cached", data=found)
        for line in _reasons(call)[:6]:
            say("changed", call.label, line)
        return _compute(call)


def _check_inputs(stage: Stage, inputs: Inputs) -> None:
    accepted = fingerprint.stage_inputs(stage.module, stage.function)
    own = {"out_dir", "log_metrics", "checkpoint_dir"}
    unknown = sorted(set(inputs) - (set(accepted) - own))
    missing = sorted(name for name, required in accepted.items() if required and name not in own | set(inputs))
    if unknown or missing:
        raise ConfigError(
            f"{stage.function} takes no input {unknown} and needs {missing}; it accepts {sorted(set(accepted) - own)}"
        )


def _find(call: StageCall) -> Artifact | None:
    store, function = call.ladder.store, call.stage.function
    try:
        return store.find(function, call.key)
    except ArtifactError as error:
        kept = store.set_aside(function, call.key)
        say("changed", call.label, f"stored result is damaged ({error}); kept in {kept}, made again")
        return None


def _reasons(call: StageCall) -> list[str]:
    folder = call.ladder.store.root / "artifacts" / call.stage.function
    manifests = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob(f"*/{MANIFEST}")]
    same = [manifest for manifest in manifests if manifest.get("tags") == call.tags]
    return fingerprint.why_not_reused(same, call.identity)


def _join_ladder(ladder: Ladder, artifact: Artifact, how: str) -> None:
    """Tag the producing run with this ladder, so that a filter on the ladder finds reused stages too."""
    from mlflow.exceptions import MlflowException

    try:
        ladder.client.set_tag(artifact.details["run_id"], f"ladder.{ladder.run_id[:8]}", how)
    except MlflowException as error:
        say(
            "changed",
            artifact.stage,
            f"its MLflow run is not in this tracking store ({error.error_code}); result reused",
        )


def _compute(call: StageCall) -> Artifact:
    stage, ladder = call.stage, call.ladder
    tags = {**ladder.tags, **call.tags, "stage": stage.function, "key": call.key[:32]}
    run = RunLog(ladder.client, stage.experiment, call.run_name, tags)
    status = "FAILED"
    try:
        run.client.set_tag(run.run_id, f"ladder.{ladder.run_id[:8]}", "made")
        # The compare page plots parameters, not tags; a stage's own seed is another one than its rung's.
        as_params = {{"seed": "rung_seed"}.get(name, name): value for name, value in call.tags.items()}
        run.params({**flat_params(call.identity["config"]), **as_params, "num_threads": call.num_threads})
        run.inputs(call.inputs)
        artifact = _make(call, run)
        run.client.set_tag(run.run_id, "artifact_path", str(artifact.path))
        run.client.set_tag(run.run_id, "artifact_digest", artifact.digest[:32])
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        run.close(status)
        if status != "FINISHED":
            say("failed", call.label, f"MLflow run {run.run_id}")
    ladder.store.drop_checkpoints(stage.function, call.key)
    say("ran", call.label, f"{artifact.details['seconds']:.1f} s")
    return artifact


def _make(call: StageCall, run: RunLog) -> Artifact:
    stage, store = call.stage, call.ladder.store
    with store.scratch(stage.function) as scratch, StageProgress(call.label) as progress:
        out_dir = scratch / "out"
        out_dir.mkdir()
        started = time.perf_counter()
        metrics = _call_function(call, out_dir, run, progress)
        seconds = time.perf_counter() - started
        run.metrics({name: rounded(value) for name, value in {**metrics, "stage_seconds": seconds}.items()})
        run.files(out_dir)
        if stage.log_model is not None:
            stage.log_model(run, out_dir)
        measured = {"seconds": seconds, "num_threads": call.num_threads}
        details = {"identity": call.identity, "tags": call.tags, **measured, "run_id": run.run_id}
        final = store.artifact_path(stage.function, call.key)
        return publish(out_dir, final, stage=stage.function, key=call.key, metrics=metrics, details=details)


def _call_function(call: StageCall, out_dir: Path, run: RunLog, progress: StageProgress) -> Metrics:
    stage = call.stage
    paths: dict[str, Path | tuple[Path, ...]] = {
        name: tuple(artifact.path for artifact in artifacts) if name in stage.several else artifacts[0].path
        for name, artifacts in call.inputs.items()
    }
    if "checkpoint_dir" in fingerprint.stage_inputs(stage.module, stage.function):
        checkpoints = call.ladder.store.checkpoint_dir(stage.function, call.key)
        checkpoints.mkdir(parents=True, exist_ok=True)
        paths["checkpoint_dir"] = checkpoints

    def log_metrics(metrics: Mapping[str, float], *, step: int | None = None) -> None:
        progress.update(metrics)
        run.metrics({name: value for name, value in metrics.items() if name != "progress"}, step=step)

    paths["out_dir"] = out_dir
    return call.ladder.workers.run(stage.module, stage.function, call.config, paths, call.num_threads, log_metrics)


def flat_params(config: Any, prefix: str = "") -> dict[str, Any]:
    """A configuration as MLflow parameters: nested fields joined by dots."""
    if not isinstance(config, dict):
        return {prefix: config}
    return {
        name: leaf
        for key, value in config.items()
        for name, leaf in flat_params(value, f"{prefix}.{key}" if prefix else key).items()
    }
