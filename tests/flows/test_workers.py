"""Stages in processes of their own: who waits for whom, what comes back, and what a death looks like."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from components.contract import StageConfig
from components.errors import ConfigError, InputError, RungsError, TrainingError
from flows.slots import SharedResults, Slots, Stopped, Urgency, num_workers
from flows.workers import StageCrash, Workers

STAGES = """
import os, sys, time
import torch
from components.contract import StageConfig
from components.errors import InputError, TrainingError

class Config(StageConfig):
    number: float = 0.1

def echo(config, *, several=(), out_dir, log_metrics):
    print("a library that prints")
    log_metrics({"loss": 0.5}, step=3)
    (out_dir / "names.txt").write_text(" ".join(path.name for path in several))
    return {"number": config.number, "pid": os.getpid(), "threads": torch.get_num_threads()}

def refuse(config, *, out_dir, log_metrics):
    raise InputError("bad cell", file="rows.csv", line=7, remedy="mend it")

def diverge(config, *, out_dir, log_metrics):
    raise TrainingError("loss nan")

def crash(config, *, out_dir, log_metrics):
    return {"x": {}["missing"]}

def vanish(config, *, out_dir, log_metrics):
    os.kill(os.getpid(), 9)

def endless(config, *, out_dir, log_metrics):
    while True:
        log_metrics({"loss": 1.0}, step=0)
        time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A module of stages that the worker processes can import, and this one too."""
    folder = tmp_path_factory.mktemp("stages")
    (folder / "planted_stages.py").write_text(STAGES, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder), prepend=":")
        import planted_stages

        yield planted_stages


@pytest.fixture
def workers(module, tmp_path):
    found = Workers(tmp_path / "workers.log", num_chains=2)
    yield found
    found.close()
    assert not [child for child in psutil.Process().children() if "flows.worker" in child.cmdline()]


def run(workers: Workers, module, function: str, out_dir, config: StageConfig | None = None, seen=None, **paths):
    log = [] if seen is None else seen

    def log_metrics(metrics, *, step=None):
        log.append((dict(metrics), step))

    given = {"out_dir": out_dir, **paths}
    return workers.run("planted_stages", function, config or module.Config(), given, 1, log_metrics)


def test_config_paths_metrics_and_result_survive_the_way_to_the_process_and_back(workers, module, tmp_path):
    seen = []
    several = (tmp_path / "b", tmp_path / "a")
    found = run(workers, module, "echo", tmp_path, module.Config(number=0.1 + 0.2), seen, several=several)
    assert found["number"] == 0.1 + 0.2
    assert found["threads"] == 1
    assert seen == [({"loss": 0.5}, 3)]
    assert (tmp_path / "names.txt").read_text() == "b a"
    assert "a library that prints" in (tmp_path / "workers.log").read_text()


def test_a_process_serves_several_stages_and_two_run_in_two(workers, module, tmp_path):
    first, second = (run(workers, module, "echo", tmp_path)["pid"] for _ in range(2))
    assert first == second
    with ThreadPoolExecutor(2) as pool:
        waiting = threading.Event()

        def slow(metrics, *, step=None):
            waiting.wait(10)

        config, paths = module.Config(), {"out_dir": tmp_path}
        held = pool.submit(workers.run, "planted_stages", "echo", config, paths, 1, slow)
        other = pool.submit(run, workers, module, "echo", tmp_path).result()["pid"]
        waiting.set()
        assert held.result()["pid"] != other


def test_an_input_error_keeps_class_place_and_remedy(workers, module, tmp_path):
    with pytest.raises(InputError, match=r"^rows\.csv:7: bad cell Remedy: mend it$") as caught:
        run(workers, module, "refuse", tmp_path)
    assert (caught.value.file, caught.value.line, caught.value.remedy) == ("rows.csv", 7, "mend it")
    with pytest.raises(TrainingError, match="loss nan"):
        run(workers, module, "diverge", tmp_path)


def test_a_crash_shows_the_traceback_of_its_process_which_goes_on(workers, module, tmp_path):
    with pytest.raises(StageCrash, match="KeyError: 'missing'"):
        run(workers, module, "crash", tmp_path)
    assert run(workers, module, "echo", tmp_path)["number"] == 0.1


def test_a_killed_process_is_an_error_that_says_so_and_the_next_stage_gets_another(workers, module, tmp_path):
    with pytest.raises(RungsError, match=r"vanish ended with signal 9; .*memory.*workers.log"):
        run(workers, module, "vanish", tmp_path)
    assert run(workers, module, "echo", tmp_path)["number"] == 0.1


def test_a_value_the_run_refuses_ends_the_stage(workers, module, tmp_path):
    def refuse(metrics, *, step=None):
        raise TrainingError("metric loss is nan")

    with pytest.raises(TrainingError, match="metric loss is nan"):
        workers.run("planted_stages", "endless", module.Config(), {"out_dir": tmp_path}, 1, refuse)
    assert run(workers, module, "echo", tmp_path)["number"] == 0.1


def test_stopping_ends_running_and_waiting_stages_at_once(workers, module, tmp_path):
    running = threading.Event()

    def log_metrics(metrics, *, step=None):
        running.set()

    def hold_and_run():
        with workers.slots.hold(workers.slots.total, Urgency(0)):
            workers.run("planted_stages", "endless", module.Config(), {"out_dir": tmp_path}, 1, log_metrics)

    def wait_in_line():
        running.wait(60)
        with workers.slots.hold(1, Urgency(1)):
            pass

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(hold_and_run), pool.submit(wait_in_line)]
        assert running.wait(60)
        started = time.monotonic()
        workers.stop()
        for future in futures:
            with pytest.raises(Stopped):
                future.result(timeout=10)
        assert time.monotonic() - started < 10
    with pytest.raises(Stopped):
        run(workers, module, "echo", tmp_path)


def test_slots_serve_the_smallest_priority_and_never_more_than_there_are():
    slots, order, most, lock = Slots(2), [], [0, 0], threading.Lock()

    def stage(wanted, priority):
        with slots.hold(wanted, Urgency(priority)):
            with lock:
                order.append(priority)
                most[0] += wanted
                most[1] = max(most)
            time.sleep(0.02)
            with lock:
                most[0] -= wanted

    with ThreadPoolExecutor(8) as pool:
        with slots.hold(2, Urgency(0)):
            futures = []
            for priority in (5, 3, 1, 4, 2):
                futures.append(pool.submit(stage, 2 if priority == 3 else 1, priority))
                time.sleep(0.02)
        for future in futures:
            future.result()
    assert sorted(order[:2]) == [1, 2]
    assert order[2] == 3
    assert most == [0, 2]


def test_a_stage_may_want_more_cores_than_there_are():
    with Slots(1).hold(4, Urgency(0)):
        pass


def test_a_shared_result_is_made_once_and_its_error_reaches_all_who_wait():
    shared, calls = SharedResults(), []

    def make(value):
        calls.append(value)
        time.sleep(0.05)
        if value == "bad":
            raise TrainingError("loss nan")
        return value

    with ThreadPoolExecutor(6) as pool:
        good = [pool.submit(shared.get, "k", 0, lambda urgency: make("good")) for _ in range(3)]
        bad = [pool.submit(shared.get, "l", 0, lambda urgency: make("bad")) for _ in range(3)]
        assert [future.result() for future in good] == ["good"] * 3
        for future in bad:
            with pytest.raises(TrainingError, match="loss nan"):
                future.result()
    assert sorted(calls) == ["bad", "good"]


def test_a_stage_that_an_important_chain_needs_too_comes_before_less_important_ones():
    slots, shared, order = Slots(1), SharedResults(), []

    def make(name):
        def in_turn(urgency):
            with slots.hold(1, urgency):
                order.append(name)
                return name

        return in_turn

    with ThreadPoolExecutor(4) as pool:
        with slots.hold(1, Urgency(0)):
            asked = [("shared", 9), ("other", 5), ("shared", 1)]
            futures = []
            for name, priority in asked:
                futures.append(pool.submit(shared.get, name, priority, make(name)))
                time.sleep(0.05)
        assert [future.result() for future in futures] == ["shared", "other", "shared"]
    assert order == ["shared", "other"]


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_number_of_workers_that_makes_no_sense_is_refused(monkeypatch, value):
    monkeypatch.setenv("RUNGS_WORKERS", value)
    with pytest.raises(ConfigError, match=f"RUNGS_WORKERS='{value}'.*Remedy"):
        num_workers()


def test_few_chains_get_more_threads_each(monkeypatch, tmp_path):
    monkeypatch.setattr("flows.workers.num_cores", lambda: 8)
    monkeypatch.setenv("RUNGS_WORKERS", "8")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    planned = [Workers(tmp_path / "log", chains) for chains in (1, 3, 8, 80)]
    assert [(one.slots.total, one.num_threads(all_cores=False)) for one in planned] == [(1, 8), (3, 2), (8, 1), (8, 1)]
    assert {one.num_threads(all_cores=True) for one in planned} == {8}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert Workers(tmp_path / "log", 1).num_threads(all_cores=True) == 1
