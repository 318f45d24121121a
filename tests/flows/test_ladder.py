"""The whole ladder in fresh processes: results, reuse, kills, concurrency."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import psutil
import pytest

from components.artifacts import Store, open_artifact

RUNGS = (
    "one_hot",
    "tfidf",
    "word2vec_cbow",
    "word2vec_skipgram",
    "rnn",
    "lstm",
    "lstm_word2vec",
    "bert_random",
    "bert",
)
PROBES = ("similarity", "senses", "word_order", "cloze", "look")
TASKS = ("classification", "ner", "question_answering")
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(900)]


def artifacts(place, stage: str) -> list:
    return [open_artifact(path) for path in sorted((place.home / "store" / "artifacts" / stage).iterdir())]


def of_task(found: list, task: str) -> list:
    """Artifacts of a task, without the additional points of the label curve."""
    tagged = [(artifact, artifact.details["tags"]) for artifact in found]
    return [artifact for artifact, tags in tagged if tags["task"] == task and "labels" not in tags]


def test_leaderboard_lists_every_rung_with_score_interval_and_cost(climbed):
    board = climbed.leaderboard()
    metrics = {"classification": "accuracy", "ner": "entity_f1", "question_answering": "f1"}
    assert [(row["task"], row["rung"]) for row in board["rows"]] == [(task, rung) for task in metrics for rung in RUNGS]
    for row in board["rows"]:
        assert row["metric"] == metrics[row["task"]]
        assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1
        # A tagger trained on so little may find nothing at all, which no resample changes.
        assert row["low"] < row["high"] or row["mean"] == 0.0
        assert row["num_seeds"] == 1
        assert row["train_seconds"] > 0
        assert row["num_parameters"] > 0
        assert row["items_per_second"] > 0
    assert set(board) == {"run_id", "rows"}


def test_scores_in_mlflow_are_those_of_the_predictions(climbed):
    code = """
import json, mlflow, sys
client = mlflow.MlflowClient("sqlite:///" + sys.argv[1])
experiment = client.get_experiment_by_name("evaluation")
runs = client.search_runs([experiment.experiment_id], "attributes.status = 'FINISHED'")
runs = [run for run in runs if run.data.tags["task"] == "classification"]
print(json.dumps({run.data.tags["rung"]: run.data.metrics["accuracy"] for run in runs}))
"""
    logged = json.loads(climbed.python(code, str(climbed.home / "mlflow.db")).splitlines()[-1])
    gold = {}
    (audited,) = of_task(artifacts(climbed, "audit_leaks"), "classification")
    for line in (audited.path / "test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        gold[row["id"]] = row["label"]
    assert len(gold) == 40
    scores = []
    for artifact in of_task(artifacts(climbed, "finetune"), "classification"):
        lines = (artifact.path / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        assert {row["id"] for row in rows} == set(gold)
        scores.append(sum(row["label"] == gold[row["id"]] for row in rows) / len(rows))
    assert sorted(logged) == sorted(RUNGS)
    assert sorted(logged.values()) == pytest.approx(sorted(scores))


def test_the_verdict_agrees_with_leaderboard_and_mlflow(climbed):
    board = climbed.leaderboard()
    folder = climbed.home / "mlartifacts" / "ladders" / board["run_id"] / "artifacts"
    verdicts = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["tasks"]
    assert list(verdicts) == list(TASKS)
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        query = "select key, value from latest_metrics where run_uuid = ?"
        logged = dict(database.execute(query, (board["run_id"],)).fetchall())
        chosen = dict(
            database.execute("select key, value from params where run_uuid = ?", (board["run_id"],)).fetchall()
        )
    for task, verdict in verdicts.items():
        rows = {row["rung"]: row for row in verdict["views"]["all"]["rungs"]}
        assert verdict["views"]["all"]["best"] == chosen[f"best_{task}"]
        assert verdict["cheapest_within_noise"] == chosen[f"cheapest_{task}"]
        for row in board["rows"]:
            if row["task"] == task:
                assert {name: rows[row["rung"]][name] for name in ("mean", "low", "high")}.items() <= row.items()
                assert logged[f"{row['metric']}_{row['rung']}"] == pytest.approx(row["mean"], rel=1e-3, abs=1e-9)
    printed = climbed.rungs("leaderboard").stdout
    assert "rungs on all test items" in printed or "clear winner" in printed


def test_fewer_labels_make_a_curve_and_no_row_of_the_leaderboard(climbed):
    (compared,) = of_task(artifacts(climbed, "compare"), "classification")
    curve = json.loads((compared.path / "label_curve.json").read_text(encoding="utf-8"))
    points = {one["rung"]: [point["num_labels"] for point in one["points"]] for one in curve["curves"]}
    assert {rung for rung, counts in points.items() if counts == [20, 40]} == {"tfidf", "lstm"}
    assert {rung for rung, counts in points.items() if counts == [40]} == set(RUNGS) - {"tfidf", "lstm"}


def test_every_probe_of_a_chosen_rung_is_a_tracked_run(climbed):
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        query = (
            "select p.value, r.value from tags p join tags s on p.run_uuid = s.run_uuid and s.key = 'stage' "
            "left join tags r on p.run_uuid = r.run_uuid and r.key = 'rung' where p.key = 'probe'"
        )
        found = database.execute(query).fetchall()
        metrics = {name for (name,) in database.execute("select distinct key from latest_metrics").fetchall()}
    probed = [(probe, rung) for probe in PROBES for rung in ("tfidf", "word2vec_skipgram", "lstm", "bert")]
    assert sorted(found, key=str) == sorted([*probed, ("recall", None)], key=str)
    assert {"sense_accuracy_bert", "order_accuracy_lstm", "cloze_accuracy_bert", "recall_lstm_memory"} <= metrics


def test_the_report_is_logged_and_written_again_from_what_is_stored(climbed):
    run_id = climbed.leaderboard()["run_id"]
    logged = climbed.home / "mlartifacts" / "ladders" / run_id / "artifacts"
    found = climbed.rungs("report", run_id[:8], "--output", "again")
    assert found.returncode == 0, found.stderr
    for name in ("report.html", "report.md", "verdict.json"):
        assert (climbed.folder / "again" / name).read_bytes() == (logged / name).read_bytes()
    chinese = climbed.rungs("report", "--output", "chinese", "--language", "zh")
    assert chinese.returncode == 0, chinese.stderr
    page = (climbed.folder / "chinese" / "report.html").read_text(encoding="utf-8")
    assert '<html lang="zh' in page
    assert all(rung in page for rung in RUNGS)
    assert climbed.rungs("report", "nosuchrun").returncode == 2


def test_a_distinct_setting_arrives_in_mlflow_manifest_and_behaviour(climbed):
    pretrained = [
        item for item in artifacts(climbed, "pretrain_bert") if item.details["identity"]["config"]["num_train_steps"]
    ]
    assert [item.details["identity"]["config"]["mlm_probability"] for item in pretrained] == [0.37]
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        rows = database.execute("select distinct value from params where key = 'mlm_probability'").fetchall()
    assert rows == [("0.37",)]


def test_flat_runs_by_stage_all_finished_and_tied_to_the_ladder(climbed):
    board = climbed.leaderboard()
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        status = dict(database.execute("select status, count(*) from runs group by status").fetchall())
        tags = dict(database.execute("select key, count(*) from tags group by key").fetchall())
        inputs = database.execute("select count(distinct digest) from datasets").fetchone()[0]
    assert set(status) == {"FINISHED"}
    assert "mlflow.parentRunId" not in tags
    stage_runs = sum(status.values()) - tags["ladder"] + tags[f"ladder.{board['run_id'][:8]}"]
    assert tags[f"ladder.{board['run_id'][:8]}"] >= 9 * 2
    assert stage_runs >= tags[f"ladder.{board['run_id'][:8]}"]
    assert inputs >= 5


def test_aggregate_run_carries_leaderboard_audit_and_provenance(climbed):
    folder = climbed.home / "mlartifacts" / "ladders" / climbed.leaderboard()["run_id"] / "artifacts"
    names = {path.name for path in folder.iterdir()}
    assert {
        "leaderboard.json", "leaderboard.html", "leaderboard.png", "audit.json", "pipelines.yaml", "environment.json",
        "parameters.json", "runs.json", "leaderboard_never_leaked.json",
    } <= names  # fmt: skip
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert environment["packages"]["torch"].startswith("2.")
    page = (folder / "leaderboard.html").read_text(encoding="utf-8")
    assert all(f"<td>{rung}</td>" in page for rung in RUNGS)
    assert "http" not in page.replace("http-equiv", "")


LOAD_MODELS = """
import glob, json, os, sys
os.environ["MLFLOW_ALLOW_PICKLE_DESERIALIZATION"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
import mlflow
passage = "１９９８年１月，江泽民在北京会见了来自上海的代表。代表们参观了人民大会堂。"
inputs = {
    "classification": ["房间很干净，服务也好。", "质量太差"],
    "ner": [passage, "无人。"],
    "question_answering": [{"question": "谁会见了代表？", "text": passage}],
}
counts = {}
for folder in sorted(glob.glob(sys.argv[1] + "/finetuning/models/*/artifacts")):
    (facts,) = glob.glob(folder + "/artifacts/model/task.json")
    task = json.load(open(facts))["task"]
    table = mlflow.pyfunc.load_model(folder).predict(inputs[task])
    assert len(table) == len(inputs[task])
    counts[task] = counts.get(task, 0) + 1
    for _, row in table.iterrows():
        if task == "classification":
            probabilities = json.loads(row["probabilities"])
            assert abs(sum(probabilities.values()) - 1) < 1e-5
            assert max(probabilities, key=probabilities.get) == row["label"]
        elif task == "ner":
            assert len(json.loads(row["tags"])) in (len(passage), 3)
            assert all(passage[e["start"] : e["end"]] == e["text"] for e in json.loads(row["entities"]))
        else:
            assert passage[row["start"] : row["end"]] == row["answer"] != ""
print(json.dumps(counts))
"""


def test_logged_models_of_every_task_and_family_load_offline_without_pickle(climbed):
    place = climbed.folder / "elsewhere"
    place.mkdir(exist_ok=True)
    # Neither the checkout nor the working folder may be needed: the model carries its code.
    environment = {**climbed.environment, "PYTHONPATH": ""}
    command = [climbed.command()[0], "-c", LOAD_MODELS, str(climbed.home / "mlartifacts")]
    found = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    counts = json.loads(found.stdout.splitlines()[-1])
    # Two rungs have a point on the label curve, too.
    assert counts == {"classification": len(RUNGS) + 2, "ner": len(RUNGS), "question_answering": len(RUNGS)}
    assert not list((climbed.home / "mlartifacts").rglob("*.pkl"))


def test_nothing_in_the_store_is_pickled_or_half_written(climbed):
    store = climbed.home / "store"
    assert not [path for path in store.rglob("*") if path.suffix in {".pkl", ".pickle", ".joblib", ".pt", ".bin"}]
    assert not list((store / "scratch").iterdir())
    for folder in (store / "artifacts").glob("*/*"):
        open_artifact(folder)


def test_second_run_reuses_every_stage_and_is_in_its_own_comparison(climbed):
    before = climbed.leaderboard()
    found = climbed.climb()
    assert found.returncode == 0, found.stderr
    lines = [line.split()[0] for line in found.stdout.splitlines() if line.startswith(" ")]
    assert lines.count("reused") >= 9 * 2 + 4
    assert lines.count("ran") == 0
    after = climbed.leaderboard()
    assert after["run_id"] != before["run_id"]
    assert after["rows"] == before["rows"]
    with sqlite3.connect(climbed.home / "mlflow.db") as database:
        how = database.execute(
            "select distinct value from tags where key = ?", (f"ladder.{after['run_id'][:8]}",)
        ).fetchall()
    assert how == [("reused",)]


def test_a_changed_setting_says_what_changed_and_runs_only_what_depends_on_it(climbed):
    found = climbed.climb("pretraining.mlm_probability=0.2")
    assert found.returncode == 0, found.stderr
    assert "config.mlm_probability 0.37 → 0.2" in found.stdout
    ran = {line.strip().split("  ")[1] for line in found.stdout.splitlines() if line.strip().startswith("ran")}
    assert any("Pretrain BERT" in line for line in ran)
    # The verdicts depend on it, too.
    assert {line for line in ran if "bert" not in line} == {f"Compare rungs · {task}" for task in TASKS}


def test_a_damaged_artifact_is_set_aside_and_made_again(climbed):
    (target,) = artifacts(climbed, "segment_corpus")
    shard = next(target.path.glob("train-*.jsonl"))
    shard.write_bytes(shard.read_bytes()[:-10])
    found = climbed.climb()
    assert found.returncode == 0, found.stderr
    assert "is damaged" in found.stdout
    (again,) = artifacts(climbed, "segment_corpus")
    assert again.digest == target.digest


def processes_of(place) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["environ", "cmdline"]):
        if (process.info["environ"] or {}).get("RUNGS_HOME") == str(place.home):
            found.append(process)
    return found


def start(place, *settings: str) -> subprocess.Popen:
    words = [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(
        place.command("run", "small", *words), cwd=place.folder, env=place.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


NOTHING_ELSE = ("label_curve=null", "probes={}")
BERT_ONLY = ("rungs=[{name: bert, encoder: bert}]", *NOTHING_ELSE)
CLASSIFICATION = "tasks=[classification]"


def weights(place) -> str:
    trained = [a for a in artifacts(place, "pretrain_bert") if a.details["identity"]["config"]["num_train_steps"]]
    assert len(trained) == 1
    return trained[0].details["files"]["model.safetensors"]["sha256"]


def test_kill_9_in_pretraining_then_the_same_command_gives_the_same_weights(workplace, tmp_path_factory):
    settings = (*BERT_ONLY, CLASSIFICATION, "pretraining.num_train_steps=600")
    process = start(workplace, *settings)
    checkpoints = workplace.home / "store" / "checkpoints" / "pretrain_bert"
    deadline = time.monotonic() + 300
    while not list(checkpoints.glob("*/step-*/manifest.json")):
        assert time.monotonic() < deadline, "no checkpoint appeared"
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(3)
    assert not processes_of(workplace), "the temporary server outlived a kill -9"
    assert not list((workplace.home / "store" / "artifacts").glob("pretrain_bert/*"))
    resumed = workplace.climb(*settings)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "closed as KILLED" in resumed.stdout

    other = type(workplace)(tmp_path_factory.mktemp("uninterrupted"), workplace.prefect_home)
    for name in ("corpus.txt", "reviews.csv"):
        shutil.copy(workplace.folder / name, other.folder / name)
    text = (workplace.folder / "pipelines.yaml").read_text(encoding="utf-8")
    (other.folder / "pipelines.yaml").write_text(
        text.replace(str(workplace.folder), str(other.folder)), encoding="utf-8"
    )
    whole = other.climb(*settings)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert weights(workplace) == weights(other)
    with sqlite3.connect(workplace.home / "mlflow.db") as database:
        running = database.execute("select count(*) from runs where status = 'RUNNING'").fetchone()[0]
    assert running == 0
    assert not list((workplace.home / "store" / "scratch").iterdir())


def test_two_ladders_at_once_on_one_store_both_finish_and_agree(workplace):
    settings = (
        "rungs=[{name: tfidf, encoder: tfidf}, {name: word2vec_cbow, encoder: word2vec, sg: 0}]",
        CLASSIFICATION,
        *NOTHING_ELSE,
    )
    both = [start(workplace, *settings) for _ in range(2)]
    outputs = [process.communicate(timeout=400)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    made = "".join(outputs)
    assert len(re.findall(r"ran  Train Word2Vec", made)) == 1
    assert len(re.findall(r"reused  Train Word2Vec", made)) == 1
    with sqlite3.connect(workplace.home / "mlflow.db") as database:
        status = dict(database.execute("select status, count(*) from runs group by status").fetchall())
        ladders = database.execute(
            "select count(*) from tags where key = 'ladder' and run_uuid like value || '%'"
        ).fetchone()[0]
    assert set(status) == {"FINISHED"}
    assert ladders == 2


def test_a_failing_stage_leaves_nothing_and_ends_failed(workplace):
    (workplace.folder / "corpus.txt").write_text("一句话。\n", encoding="utf-8")
    found = workplace.climb(*BERT_ONLY)
    assert found.returncode == 2, found.stdout + found.stderr
    assert "Traceback" not in found.stdout + found.stderr
    store = Store(workplace.home / "store")
    assert not list((store.root / "artifacts").glob("pretrain_bert/*"))
    with sqlite3.connect(workplace.home / "mlflow.db") as database:
        status = dict(database.execute("select status, count(*) from runs group by status").fetchall())
    assert status.get("FAILED", 0) == 2  # the stage's run and the ladder's
