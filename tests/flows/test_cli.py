"""The command line: exit codes, messages without tracebacks."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
import urllib.request

import psutil
import pytest


def test_help_names_every_command(workplace):
    found = workplace.rungs("--help")
    assert found.returncode == 0
    for command in ("run", "list", "leaderboard", "ui", "doctor"):
        assert command in found.stdout


def test_list_shows_deployments_with_descriptions(workplace):
    found = workplace.rungs("list")
    assert found.returncode == 0
    assert found.stdout.startswith("small")
    assert "offline" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "quik"), "no deployment 'quik'"),
        (("run", "small", "--set", "pretraining.mlm_probabilty=0.2"), "did you mean 'mlm_probability'"),
        (("run", "small", "--set", "seeds=[0, 0]"), "seeds"),
        (("run", "small", "--set", "ner.finetuning.seed=3"), "rungs, seeds and language set it"),
        (("run", "small", "--set", "pretraining.hidden_size=33"), "hidden_size"),
        (("run", "small", "--set", "classification.dataset={source: files, train: nowhere.csv}"), "nowhere.csv"),
        (("run", "small", "--file", "nowhere.yaml"), "nowhere.yaml"),
        (("leaderboard",), "no finished ladder"),
        (("climb",), "invalid choice"),
    ],
)
def test_bad_input_ends_with_2_and_a_message_before_any_training(workplace, words, message):
    found = workplace.rungs(*words)
    assert found.returncode == 2, found.stdout + found.stderr
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    assert not list((workplace.home / "store" / "artifacts").glob("*/*"))


def test_doctor_reports_versions_and_finds_what_is_wrong(workplace):
    right = workplace.rungs("doctor")
    assert right.returncode == 0, right.stdout
    for word in ("Python 3.", "torch", "artifact store", "precision", "temporary server"):
        assert word in right.stdout
    (workplace.home / "mlflow.db").write_bytes(b"not a database" * 100)
    wrong = workplace.rungs("doctor")
    assert wrong.returncode == 1
    assert "BAD  tracking" in wrong.stdout
    assert "remedy" in wrong.stdout


def test_track_08_a_folder_as_tracking_store_is_refused_with_the_right_setting(workplace):
    environment = {**workplace.environment, "MLFLOW_TRACKING_URI": "file:./mlruns"}
    found = subprocess.run(
        workplace.command("run", "small"), cwd=workplace.folder, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "sqlite:///" in found.stderr


def test_leaderboard_of_a_chosen_run_and_as_table(climbed):
    board = climbed.leaderboard()
    again = climbed.rungs("leaderboard", board["run_id"][:8], "--json")
    assert json.loads(again.stdout) == board
    table = climbed.rungs("leaderboard")
    assert "bert_random" in table.stdout
    assert "95 % interval" in table.stdout


def test_ui_serves_on_loopback_only_and_stops(climbed):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(climbed.command("ui", "--port", str(port)), cwd=climbed.folder, env=climbed.environment)
    try:
        deadline = time.monotonic() + 120
        answer = None
        while answer is None and time.monotonic() < deadline:
            assert process.poll() is None
            with contextlib.suppress(OSError):
                answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status
            time.sleep(0.3)
        assert answer == 200
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        listening = [
            connection.laddr.ip
            for member in family
            for connection in member.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert set(listening) == {"127.0.0.1"}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
