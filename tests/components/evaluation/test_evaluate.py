from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from components import fonts
from components.artifacts import publish
from components.errors import ArtifactError, InputError
from components.evaluation import picture
from components.evaluation.classification import accuracy, label_counts, macro_f1
from components.evaluation.config import EvaluationConfig
from components.evaluation.stage import evaluate
from components.examples import Example, write_examples, write_labels, write_task
from components.formats import read_jsonl, write_jsonl
from components.predictions import Prediction, write_predictions

COSTS = {"train_seconds": 12.5, "num_parameters": 1000.0, "test_items_per_second": 321.0, "model_bytes": 4000.0}
CONFIG = EvaluationConfig(num_resamples=300)
# gold, predicted, leaked: 5 of 8 right; among the 6 never leaked 3 right.
ROWS = [
    ("好", "好", False), ("好", "好", False), ("好", "差", False), ("好", "好", True),
    ("差", "差", False), ("差", "好", False), ("差", "差", True), ("差", "好", False),
]  # fmt: skip


def make_inputs(
    root: Path, rows: list[tuple[str, str, bool]] = ROWS, costs: dict[str, float] = COSTS
) -> dict[str, Path]:
    dataset, scratch = root / "dataset", root / "scratch"
    dataset.mkdir()
    scratch.mkdir()
    write_task(dataset, "classification")
    write_examples(dataset, "test", [Example(f"t:{n}", "文", gold, leaked) for n, (gold, _, leaked) in enumerate(rows)])
    write_labels(dataset, {gold for gold, *_ in rows} | {predicted for _, predicted, _ in rows})
    found = [Prediction(f"t:{n}", predicted, {predicted: 1.0}) for n, (_, predicted, _) in enumerate(rows)]
    write_predictions(scratch / "predictions.jsonl", reversed(found))
    publish(scratch, root / "predictions", stage="finetune", key="0" * 64, metrics=costs, details={})
    return {"dataset": dataset, "predictions": root / "predictions"}


def run(inputs: dict[str, Path], out_dir: Path, config: EvaluationConfig = CONFIG) -> tuple[dict[str, float], dict]:
    out_dir.mkdir()
    metrics = evaluate(config, **inputs, out_dir=out_dir)
    return metrics, json.loads((out_dir / "scores.json").read_text(encoding="utf-8"))


def test_scores_by_hand(tmp_path: Path) -> None:
    metrics, scores = run(make_inputs(tmp_path), tmp_path / "out")
    assert metrics["accuracy"] == 5 / 8
    # 好: precision 3/5, recall 3/4, F1 2/3. 差: precision 2/3, recall 2/4, F1 4/7.
    assert metrics["macro_f1"] == pytest.approx((2 / 3 + 4 / 7) / 2)
    assert metrics["accuracy_clean"] == 3 / 6
    # Never leaked, 好: 2 right, 4 predicted, 3 gold, F1 4/7. 差: 1 right, 2 predicted, 3 gold, F1 2/5.
    assert metrics["macro_f1_clean"] == pytest.approx((4 / 7 + 2 / 5) / 2)
    assert metrics["num_test_items"] == 8
    assert metrics["num_clean_items"] == 6
    assert metrics["num_unseen_labels"] == 0
    assert {name: metrics[name] for name in COSTS} == COSTS
    assert scores["labels"] == ["好", "差"] == sorted(scores["labels"])
    everything = scores["views"]["all"]
    assert everything["confusion_matrix"] == [[3, 1], [2, 2]]
    good, bad = everything["per_class"]
    assert good == {"label": "好", "precision": 0.6, "recall": 0.75, "f1": pytest.approx(2 / 3), "support": 4}
    assert bad == {
        "label": "差",
        "precision": pytest.approx(2 / 3),
        "recall": 0.5,
        "f1": pytest.approx(4 / 7),
        "support": 4,
    }
    for name in ("accuracy", "macro_f1", "accuracy_clean", "macro_f1_clean"):
        assert metrics[f"{name}_low"] < metrics[name] < metrics[f"{name}_high"]
        assert 0 <= metrics[f"{name}_low"] <= metrics[f"{name}_high"] <= 1
    assert scores["seed"] == 0
    assert scores["num_resamples"] == 300


def test_files_are_the_same_bytes_twice_and_carry_no_cost(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    run(inputs, tmp_path / "one")
    run(inputs, tmp_path / "two")
    for name in ("scores.json", "confusion_matrix.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "seconds" not in (tmp_path / "one" / "scores.json").read_text(encoding="utf-8")
    assert (tmp_path / "one" / "confusion_matrix.png").read_bytes().startswith(b"\x89PNG")


def test_bootstrap_follows_its_seed(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    rows = [
        (str(g), str(g if generator.random() < 0.7 else 1 - g), False) for g in generator.integers(0, 2, 300).tolist()
    ]
    inputs = make_inputs(tmp_path, rows)
    first, _ = run(inputs, tmp_path / "one")
    other, _ = run(inputs, tmp_path / "two", EvaluationConfig(num_resamples=300, seed=1))
    assert first["accuracy"] == other["accuracy"]
    assert (first["macro_f1_low"], first["macro_f1_high"]) != (other["macro_f1_low"], other["macro_f1_high"])


@pytest.mark.parametrize("num_labels", [2, 3, 7])
def test_agrees_with_scikit_learn(num_labels: int) -> None:
    generator = np.random.default_rng(num_labels)
    names = [f"label{n}" for n in range(num_labels + 2)]
    for _ in range(20):
        size = int(generator.integers(1, 40))
        gold = [names[n] for n in generator.integers(0, num_labels, size)]
        predicted = [names[n] for n in generator.integers(0, num_labels + 1, size)]
        sums = label_counts(gold, predicted, names).sum(axis=0)
        assert float(accuracy(sums)) == pytest.approx(accuracy_score(gold, predicted))
        assert float(macro_f1(sums)) == pytest.approx(f1_score(gold, predicted, average="macro", zero_division=0))


def test_per_class_and_confusion_agree_with_scikit_learn(tmp_path: Path) -> None:
    generator = np.random.default_rng(9)
    names = ["体育", "娱乐", "财经"]
    rows = [(names[a], names[b], bool(c)) for a, b, c in generator.integers(0, [3, 3, 2], size=(200, 3)).tolist()]
    _, scores = run(make_inputs(tmp_path, rows), tmp_path / "out")
    for view, kept in (("all", rows), ("never_leaked", [row for row in rows if not row[2]])):
        gold, predicted = [row[0] for row in kept], [row[1] for row in kept]
        found = scores["views"][view]
        assert found["confusion_matrix"] == confusion_matrix(gold, predicted, labels=names).tolist()
        table = np.array([[one[k] for k in ("precision", "recall", "f1", "support")] for one in found["per_class"]])
        expected = precision_recall_fscore_support(gold, predicted, labels=names, zero_division=0)
        np.testing.assert_allclose(table.T, np.array(expected))


def test_ft_02_unseen_gold_label_counts_as_wrong(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    rows = [
        row | ({"label": "中"} if row["id"] == "t:0" else {}) for row in read_jsonl(inputs["dataset"] / "test.jsonl")
    ]
    write_jsonl(inputs["dataset"] / "test.jsonl", rows)
    metrics, scores = run(inputs, tmp_path / "out")
    assert metrics["accuracy"] == 4 / 8
    assert metrics["num_unseen_labels"] == 1
    assert scores["labels"] == ["好", "差", "中"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "1 of 8 test items have no prediction: 't:7'"),
        (lambda rows: [*rows, rows[0]], "id 't:7' repeats the one of line 1"),
        (lambda rows: [*rows, rows[0] | {"id": "t:99"}], "1 of 9 predictions belong to no test item: 't:99'"),
        (lambda rows: [rows[0] | {"label": "x"}, *rows[1:]], "predicted labels 'x' are not in labels.json"),
        (lambda rows: [rows[0] | {"label": 1}, *rows[1:]], r"predictions\.jsonl:1: a row needs the strings"),
    ],
)
def test_ft_10_predictions_must_match_the_items_one_to_one(tmp_path: Path, change, message: str) -> None:
    inputs = make_inputs(tmp_path)
    path = inputs["predictions"] / "predictions.jsonl"
    write_jsonl(path, change(list(read_jsonl(path))))
    with pytest.raises(InputError, match=message):
        run(inputs, tmp_path / "out")


def test_costs_must_be_in_the_manifest(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, costs={"train_seconds": 1.0})
    with pytest.raises(ArtifactError, match="the manifest has no num_parameters, test_items_per_second, model_bytes"):
        run(inputs, tmp_path / "out")
    (inputs["predictions"] / "manifest.json").unlink()
    with pytest.raises(ArtifactError, match="no readable manifest"):
        run(inputs, tmp_path / "again")


def test_view_without_items_has_no_scores(tmp_path: Path) -> None:
    metrics, scores = run(make_inputs(tmp_path, [("a", "a", True), ("b", "a", True)]), tmp_path / "out")
    assert metrics["num_clean_items"] == 0
    assert "accuracy_clean" not in metrics
    assert set(scores["views"]) == {"all"}


def test_labels_without_a_font_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = make_inputs(tmp_path)
    _, latin = run(make_inputs_in(tmp_path / "latin"), tmp_path / "named")
    assert latin["labels_in_picture"] == "names"
    only_latin = [file for file in fonts.font_files() if "DejaVuSans" in file][:1]
    monkeypatch.setattr(fonts, "font_files", lambda: only_latin)
    fonts._find_font.cache_clear()
    _, chinese = run(inputs, tmp_path / "numbered")
    assert chinese["labels_in_picture"] == "numbers"
    assert fonts.find_font(["yes", "no"]) is not None
    fonts._find_font.cache_clear()


def test_the_font_of_last_resort_does_not_count() -> None:
    """It has a glyph for every character, and each of them is a box."""
    assert any(entry.name.startswith("Last Resort") for entry in fonts.fontManager.ttflist)
    assert fonts.find_font(["\U0010fffd"]) is None


def make_inputs_in(root: Path) -> dict[str, Path]:
    root.mkdir()
    return make_inputs(root, [("yes", "yes", False), ("no", "yes", False)])


def test_many_and_long_labels_are_drawn(tmp_path: Path) -> None:
    labels = ["x" * 200, *(f"label {n}" for n in range(39))]
    picture.draw_confusion_matrix(np.eye(40, dtype=np.int64), labels, "title", tmp_path / "many.png")
    assert (tmp_path / "many.png").stat().st_size > 5000
