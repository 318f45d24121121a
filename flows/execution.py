"""One execution of a flow: opens store and tracking, holds the aggregate MLflow run, and closes it whatever happens."""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import importlib.metadata
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from prefect.runtime import deployment, flow_run

import flows
from flows.environment import open_home
from flows.mlflow_runs import RunLog, close_abandoned_runs, open_tracking
from flows.progress import say
from flows.tracking import Ladder
from flows.views import install_views
from flows.workers import Workers

T = TypeVar("T")


@contextlib.contextmanager
def ladder_execution(
    parameters: dict[str, Any], tags: dict[str, str], num_chains: int
) -> Iterator[tuple[Ladder, RunLog]]:
    """Open an execution; its aggregate run ends FINISHED, FAILED or KILLED with the block.

    Args:
        parameters: The flow's parameters as JSON values, kept as an artifact of the aggregate run.
        tags: Tags for the aggregate run and for every stage run made by this execution.
        num_chains: Sequences of stages that can run side by side.
    """
    home = open_home()
    client = open_tracking(home)
    install_views(client)
    for run_id in close_abandoned_runs(client):
        say("changed", f"MLflow run {run_id}", "its process is gone; closed as KILLED")
    for path in home.store.remove_stale_scratch():
        say("changed", path.name, "left by a process that is gone; removed")
    name = f"{deployment_name() or 'ladder'} {datetime.datetime.now():%Y-%m-%d %H:%M:%S}"
    run = RunLog(client, "ladders", name, {**tags, **_prefect_tags()})
    client.set_tag(run.run_id, "ladder", run.run_id[:8])
    _log_provenance(run, parameters)
    workers = Workers(home.root / "workers.log", num_chains)
    status = "FAILED"
    try:
        every = {**tags, "ladder": run.run_id[:8], **_prefect_tags()}
        yield Ladder(home.store, client, run.run_id, workers, every), run
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        workers.close()
        run.close(status)


def side_by_side(ladder: Ladder, chains: Sequence[Callable[[Ladder], T]]) -> list[T]:
    """Run sequences of stages at once, as far as there are cores for them.

    Args:
        ladder: The execution; each chain gets it with a priority, the first chain the first one.
        chains: What to run. Each mostly waits: for a core, or for a stage that another chain needs too.

    Returns:
        The results in order.

    Raises:
        BaseException: The error of the chain that failed first; all others are stopped, their checkpoints stay.
    """
    with ThreadPoolExecutor(len(chains)) as pool:
        try:
            # Prefect knows the flow run that a task belongs to by the context.
            futures = [
                pool.submit(contextvars.copy_context().run, chain, replace(ladder, priority=number))
                for number, chain in enumerate(chains)
            ]
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future in ended:
                    future.result()
        except BaseException:
            ladder.workers.stop()
            raise
    return [future.result() for future in futures]


def _prefect_tags() -> dict[str, str]:
    """Links back to Prefect: the flow run's id, and its page where the API has a dashboard."""
    tags = {"prefect_flow_run_id": str(flow_run.id or ""), "prefect_flow_run": str(flow_run.ui_url or "")}
    return {name: value for name, value in {**tags, "prefect_deployment": str(deployment.name or "")}.items() if value}


def deployment_name() -> str | None:
    """The deployment that this flow run belongs to, or was started like by ``rungs run``."""
    return deployment.name or flow_run.name or None


def _log_provenance(run: RunLog, parameters: dict[str, Any]) -> None:
    run.client.log_dict(run.run_id, parameters, "parameters.json")
    run.client.log_dict(run.run_id, environment_facts(), "environment.json")
    file = Path(flows.__file__).parents[1] / "pipelines.yaml"
    if file.is_file():
        run.client.log_artifact(run.run_id, str(file))


def environment_facts() -> dict[str, Any]:
    """Code version, package versions and machine, for the record of a run."""
    packages = {item.name: item.version for item in importlib.metadata.distributions() if item.name}
    machine = {"python": platform.python_version(), "system": platform.platform(), "processor": platform.processor()}
    return {"code_version": code_version(), "machine": machine, "packages": dict(sorted(packages.items()))}


def code_version() -> str:
    """Commit of the checkout, with ``+changes`` when files differ from it; the package version outside a checkout."""
    git, root = shutil.which("git"), Path(flows.__file__).parents[1]
    if git is None or not (root / ".git").exists():
        return importlib.metadata.version("rungs")

    def ask(*words: str) -> str:
        answer = subprocess.run([git, "-C", str(root), *words], capture_output=True, text=True, check=False)
        return answer.stdout.strip()

    return ask("rev-parse", "--short=12", "HEAD") + ("+changes" if ask("status", "--porcelain") else "")
