"""The MLflow UI in a real browser: the views show the comparison, the compare page lines the rungs up."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = Path(__file__).resolve().parents[2] / "test-artifacts"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def address(climbed):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(climbed.command("ui", "--port", str(port)), cwd=climbed.folder, env=climbed.environment)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200:
                break
        time.sleep(0.3)
    yield f"http://127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)


@pytest.fixture(scope="module")
def page():
    if CHROMIUM is None:
        if os.environ.get("RUNGS_TEST_REQUIRE_SERVICES"):
            pytest.fail("Chromium is not installed, but this run requires it")
        pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    SCREENSHOTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page(viewport={"width": 1900, "height": 1000})
        browser.close()


def experiment_id(climbed, name: str) -> str:
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        return str(database.execute("select experiment_id from experiments where name = ?", (name,)).fetchone()[0])


@pytest.mark.parametrize(
    ("task", "metric"), [("classification", "accuracy"), ("ner", "entity_f1"), ("question_answering", "f1")]
)
def test_evaluation_view_answers_which_rung_is_best_on_a_task(climbed, address, page, task, metric):
    key = f"rungs-evaluation-{task}"
    page.goto(f"{address}/#/experiments/{experiment_id(climbed, 'evaluation')}/runs?viewStateShareKey={key}")
    page.get_by_text(f"{task} · bert_random · seed 0").first.wait_for(timeout=180_000)
    page.get_by_text(metric, exact=True).first.wait_for(timeout=180_000)
    page.screenshot(path=SCREENSHOTS / f"evaluation-{task}.png")
    assert page.get_by_text("Error loading shared view").count() == 0
    assert page.get_by_text(f"{task} · tfidf · seed 0").count() >= 1
    others = {"classification", "ner", "question_answering"} - {task}
    assert not any(page.get_by_text(f"{other} · tfidf · seed 0").count() for other in others)


def test_ladders_view_has_a_column_per_rung(climbed, address, page):
    page.goto(f"{address}/#/experiments/{experiment_id(climbed, 'ladders')}/runs?viewStateShareKey=rungs-ladders")
    page.get_by_text("accuracy_bert", exact=True).first.wait_for(timeout=180_000)
    page.screenshot(path=SCREENSHOTS / "ladders.png")


def test_compare_page_lines_up_the_rungs(climbed, address, page):
    evaluation = experiment_id(climbed, "evaluation")
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        query = """select r.run_uuid from runs r join tags t on t.run_uuid = r.run_uuid and t.key = 'task'
                   where t.value = 'ner' and r.experiment_id = ? and r.status = 'FINISHED' limit 9"""
        runs = [row[0] for row in database.execute(query, (evaluation,))]
    quoted = [urllib.parse.quote(json.dumps(value)) for value in (runs, [evaluation])]
    page.goto(f"{address}/#/compare-runs?runs={quoted[0]}&experiments={quoted[1]}")
    page.get_by_text("Comparing 9 Runs").first.wait_for(timeout=180_000)
    page.get_by_text("bert_random").first.wait_for(timeout=180_000)
    page.screenshot(path=SCREENSHOTS / "compare.png")
