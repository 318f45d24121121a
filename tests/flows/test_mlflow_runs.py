"""MLflow runs: nothing cut, nothing non-finite, nobody left running, names right under concurrency."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from components.artifacts import Artifact
from components.errors import ConfigError, TrainingError
from flows.environment import Home, open_home
from flows.mlflow_runs import EXPERIMENTS, RunLog, close_abandoned_runs, open_tracking
from flows.views import VIEWS_FILE, encode_view, install_views


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    root = tmp_path_factory.mktemp("home")
    return Home(root, f"sqlite:///{root / 'mlflow.db'}")


@pytest.fixture(scope="module")
def client(home):
    return open_tracking(home)


def test_experiments_exist_once_each(client):
    names = [experiment.name for experiment in client.search_experiments()]
    assert sorted(name for name in names if name != "Default") == sorted(EXPERIMENTS)


def test_metrics_are_buffered_and_complete_at_close(client):
    run = RunLog(client, "data", "curve", {})
    for step in range(1200):
        run.metrics({"loss": step / 2}, step=step)
    run.close()
    history = client.get_metric_history(run.run_id, "loss")
    assert [point.step for point in history] == list(range(1200))
    assert client.get_run(run.run_id).info.status == "FINISHED"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_is_refused_with_its_name_and_step(client, value):
    run = RunLog(client, "data", "broken", {})
    with pytest.raises(TrainingError, match=r"metric loss is .* at step 7"):
        run.metrics({"loss": value}, step=7)
    run.close("FAILED")


def test_track_01_a_long_parameter_becomes_an_artifact_and_a_hash(client):
    run = RunLog(client, "data", "long", {})
    labels = [f"类别{number}" for number in range(1000)]
    run.params({"labels": labels, "seed": 3})
    run.close()
    params = client.get_run(run.run_id).data.params
    assert params["seed"] == "3"
    assert params["labels"].startswith("sha256:")
    assert [item.path for item in client.list_artifacts(run.run_id, "params")] == ["params/labels.json"]


def test_inputs_are_found_by_name_and_digest(client):
    run = RunLog(client, "data", "inputs", {})
    run.inputs({"corpus": [Artifact(Path("x"), "prepare_corpus", "k", "d" * 64)]})
    run.close()
    (entry,) = client.get_run(run.run_id).inputs.dataset_inputs
    assert (entry.dataset.name, entry.dataset.digest) == ("prepare_corpus", "d" * 32)


def test_runs_that_record_the_same_new_data_at_once_all_keep_it(client):
    """Two runs may both find a data set unknown, and only one can insert it."""

    def one(digit: str, start: Barrier) -> str:
        run = RunLog(client, "data", "input", {})
        start.wait()
        run.inputs({"corpus": [Artifact(Path("x"), "prepare_corpus", "k", digit * 64)]})
        return run.run_id

    for digit in "01234":
        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(one, [digit] * 8, [Barrier(8)] * 8))
        for run_id in runs:
            assert len(client.get_run(run_id).inputs.dataset_inputs) == 1


def test_track_03_threads_write_only_into_their_own_runs(client):
    def one(number: int) -> str:
        run = RunLog(client, "data", f"thread {number}", {})
        for step in range(100):
            run.metrics({"value": float(number)}, step=step)
        run.close()
        return run.run_id

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(one, range(4)))
    for number, run_id in enumerate(runs):
        assert {point.value for point in client.get_metric_history(run_id, "value")} == {float(number)}


def test_orch_01_runs_of_a_process_that_is_gone_are_closed_and_others_kept(client):
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    dead = RunLog(client, "data", "dead", {"rungs.pid": str(gone.pid)})
    alive = RunLog(client, "data", "alive", {})
    assert dead.run_id in close_abandoned_runs(client)
    assert client.get_run(dead.run_id).info.status == "KILLED"
    assert client.get_run(alive.run_id).info.status == "RUNNING"
    alive.close()


def test_track_07_a_deleted_experiment_is_restored(home, client):
    experiment = client.get_experiment_by_name("word2vec")
    client.delete_experiment(experiment.experiment_id)
    open_tracking(home)
    assert client.get_experiment(experiment.experiment_id).lifecycle_stage == "active"


def _open_in_process(root: str) -> int:
    home = Home(Path(root), f"sqlite:///{root}/mlflow.db")
    client = open_tracking(home)
    run = RunLog(client, "data", "racing", {})
    run.metrics({"value": 1.0})
    run.close()
    return 0


def test_track_05_four_processes_on_a_missing_database(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_open_in_process, [str(tmp_path)] * 4) == [0] * 4
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        assert database.execute("select count(*) from runs where status = 'FINISHED'").fetchone()[0] == 4
        assert database.execute("select count(*) from metrics").fetchone()[0] == 4


def test_views_are_created_once_and_name_metrics_we_log(client):
    import json

    install_views(client)
    install_views(client)
    for view in json.loads(VIEWS_FILE.read_text(encoding="utf-8")):
        tags = client.get_experiment_by_name(view["experiment"]).tags
        assert tags[f"mlflow.sharedViewState.{view['key']}"] == encode_view(view)


def test_a_folder_as_tracking_uri_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNGS_HOME", str(tmp_path))
    for value in ("file:./mlruns", "./mlruns"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", value)
        with pytest.raises(ConfigError, match="sqlite:///"):
            open_home()
