from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score
from seqeval.scheme import IOB2

from components.artifacts import publish
from components.errors import InputError
from components.evaluation.aggregate import aggregate
from components.evaluation.config import MAIN_METRIC, EvaluationConfig
from components.evaluation.entity_errors import KINDS, pair_entities
from components.evaluation.stage import evaluate
from components.examples import TaggedText, write_examples, write_labels, write_task
from components.formats import read_jsonl, write_jsonl
from components.predictions import TagPrediction, write_predictions

COSTS = {"train_seconds": 12.5, "num_parameters": 1000.0, "test_items_per_second": 321.0, "model_bytes": 4000.0}
CONFIG = EvaluationConfig(num_resamples=300)


def tagged(name: str, text: str, tags: str, leaked: bool = False) -> TaggedText:
    return TaggedText(name, text, tuple((n, n + 1) for n in range(len(text))), tuple(tags.split()), leaked)


TRAIN = [tagged("a:1", "王明在北京", "B-PER I-PER O B-LOC I-LOC")]
TEST = [
    tagged("t:0", "王明到上海了", "B-PER I-PER O B-LOC I-LOC O"),
    tagged("t:1", "北京人李雷", "B-LOC I-LOC O B-PER I-PER", leaked=True),
    tagged("t:2", "在联合国里", "O B-ORG I-ORG I-ORG O"),
    tagged("t:3", "没有名字", "O O O O"),
]
PREDICTED = [
    "B-PER I-PER O B-LOC O O",  # 王明 right (seen), 上 for 上海: boundary
    "B-PER I-PER O I-PER I-PER",  # 北京 as a person; 李雷 right in conll mode only
    "O O B-LOC I-LOC O",  # 合国 as a place
    "B-PER O O O",  # 没 spurious
]


def write_inputs(root: Path, test: list[TaggedText], predicted: list[str], train: list[TaggedText]) -> dict[str, Path]:
    dataset, scratch = root / "dataset", root / "scratch"
    dataset.mkdir(parents=True)
    scratch.mkdir()
    write_task(dataset, "ner")
    write_examples(dataset, "train", train)
    write_examples(dataset, "test", test)
    write_labels(dataset, {tag[2:] for item in [*train, *test] for tag in item.tags if tag != "O"})
    found = [TagPrediction(item.id, tuple(tags.split()), ()) for item, tags in zip(test, predicted, strict=True)]
    write_predictions(scratch / "predictions.jsonl", reversed(found))
    publish(scratch, root / "predictions", stage="finetune", key="0" * 64, metrics=COSTS, details={})
    return {"dataset": dataset, "predictions": root / "predictions"}


def make_inputs(root: Path) -> dict[str, Path]:
    return write_inputs(root, TEST, PREDICTED, TRAIN)


def run(inputs: dict[str, Path], out_dir: Path, config: EvaluationConfig = CONFIG) -> tuple[dict[str, float], dict]:
    out_dir.mkdir()
    metrics = evaluate(config, **inputs, out_dir=out_dir)
    return metrics, json.loads((out_dir / "scores.json").read_text(encoding="utf-8"))


def test_scores_by_hand(tmp_path: Path) -> None:
    metrics, scores = run(make_inputs(tmp_path), tmp_path / "out")
    # Gold 5: 王明 上海 北京 李雷 联合国. Strict predictions 5: 王明 上 北京/PER 合国/LOC 没. Right 1.
    assert metrics["entity_f1"] == pytest.approx(2 * 1 / (5 + 5))
    assert metrics["entity_precision"] == pytest.approx(1 / 5)
    assert metrics["entity_recall"] == pytest.approx(1 / 5)
    # PER: gold 2, predicted 3, right 1. LOC: gold 2, predicted 2. ORG: gold 1.
    assert metrics["macro_entity_f1"] == pytest.approx((2 / 5 + 0 + 0) / 3)
    # The conll reading adds 李雷.
    assert metrics["entity_f1_conll"] == pytest.approx(2 * 2 / (5 + 6))
    # In train: 王明/PER, 北京/LOC. Gold has both; of the predictions 王明/PER is seen, 北京/PER is not.
    assert metrics["entity_f1_seen"] == pytest.approx(2 * 1 / (2 + 1))
    assert metrics["entity_f1_unseen"] == 0
    assert metrics["token_accuracy"] == pytest.approx((5 + 2 + 2 + 3) / 20)
    # Never leaked: gold 王明 上海 联合国, predicted 王明 上 合国 没.
    assert metrics["entity_f1_clean"] == pytest.approx(2 * 1 / (3 + 4))
    counts = {name: value for name, value in metrics.items() if name.startswith("num_")}
    assert counts == {
        "num_parameters": 1000, "num_unseen_labels": 0, "num_test_items": 4, "num_clean_items": 3,
        "num_gold_tokens": 20, "num_scored_tokens": 20, "num_gold_entities": 5, "num_predicted_entities": 5,
    }  # fmt: skip
    assert scores["task"] == "ner"
    for name in ("entity_f1", "entity_recall", "entity_f1_clean"):
        assert 0 <= metrics[f"{name}_low"] <= metrics[name] <= metrics[f"{name}_high"] <= 1


def test_ft_14_scheme_and_mode_stand_beside_each_score(tmp_path: Path) -> None:
    metrics, scores = run(make_inputs(tmp_path), tmp_path / "out")
    stated = {name: entry["scoring"] for name, entry in scores["views"]["all"]["metrics"].items()}
    assert set(stated) == {name for name in metrics if f"{name}_low" in metrics and not name.endswith("_clean")}
    assert stated["entity_f1"].startswith("IOB2, strict")
    assert stated["entity_f1_conll"].startswith("IOB2, conll")


def test_details_by_hand(tmp_path: Path) -> None:
    _, scores = run(make_inputs(tmp_path), tmp_path / "out")
    view = scores["views"]["all"]
    table = {row["type"]: (row["support"], row["num_predicted"], row["f1"]) for row in view["per_type"]}
    assert table == {"LOC": (2, 2, 0), "ORG": (1, 0, 0), "PER": (2, 3, pytest.approx(0.4))}
    assert (view["seen"]["support"], view["seen"]["recall"]) == (2, 0.5)
    assert (view["unseen"]["support"], view["unseen"]["num_predicted"]) == (3, 4)
    assert {kind: entry["count"] for kind, entry in view["errors"].items()} == {
        "correct": 1, "wrong_type": 1, "wrong_boundary": 1, "wrong_both": 1, "missed": 1, "spurious": 1,
    }  # fmt: skip
    assert view["errors"]["correct"]["examples"] == []
    assert view["errors"]["wrong_boundary"]["examples"] == [
        {
            "id": "t:0",
            "gold": {"type": "LOC", "text": "上海", "start": 3, "end": 5},
            "predicted": {"type": "LOC", "text": "上", "start": 3, "end": 4},
            "text": "王明到上海了",
        }
    ]
    assert view["errors"]["missed"]["examples"][0]["predicted"] is None


def test_gold_tags_score_everything(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, TEST, [" ".join(item.tags) for item in TEST], TRAIN)
    metrics, scores = run(inputs, tmp_path / "out")
    names = ("entity_f1", "macro_entity_f1", "entity_f1_conll", "entity_f1_seen", "entity_f1_unseen", "token_accuracy")
    assert {metrics[name] for name in names} == {1.0}
    assert {metrics[f"{name}_low"] for name in names} == {1.0}
    assert scores["views"]["all"]["errors"]["correct"]["count"] == 5


def test_metric_of_nothing_is_left_out(tmp_path: Path) -> None:
    """Every entity of this test set is in train: there is no F1 of unseen ones."""
    inputs = write_inputs(tmp_path, TEST[:1], ["B-PER I-PER O O O O"], [TEST[0]])
    metrics, _ = run(inputs, tmp_path / "out")
    assert metrics["entity_f1_seen"] == pytest.approx(2 / 3)
    assert "entity_f1_unseen" not in metrics
    assert all(np.isfinite(value) for value in metrics.values())


def test_ft_02_type_that_train_lacks_is_counted(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    write_labels(inputs["dataset"], ["LOC", "PER"])
    metrics, scores = run(inputs, tmp_path / "out")
    assert metrics["num_unseen_labels"] == 1
    assert scores["labels"] == ["LOC", "PER", "ORG"]


def test_ft_13_peer_bug_2_every_gold_token_is_scored(tmp_path: Path) -> None:
    """A sentence of 600 tokens with an entity at 590: cut predictions are refused, and the entity is in the score."""
    long = tagged("t:9", "文" * 600, " ".join(["O"] * 590 + ["B-PER"] + ["O"] * 9))
    inputs = write_inputs(tmp_path / "cut", [long], [" ".join(["O"] * 512)], TRAIN)
    with pytest.raises(InputError, match=r"predictions\.jsonl:1: t:9: 512 tags predicted for 600 tokens"):
        run(inputs, tmp_path / "out")
    metrics, _ = run(write_inputs(tmp_path / "whole", [long], [" ".join(["O"] * 600)], TRAIN), tmp_path / "whole_out")
    assert metrics["num_gold_tokens"] == metrics["num_scored_tokens"] == 600
    assert (metrics["num_gold_entities"], metrics["entity_recall"]) == (1, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "1 of 4 test items have no prediction: 't:3'"),
        (lambda rows: [*rows, rows[0]], r"predictions\.jsonl:5: id 't:3' repeats the one of line 1"),
        (lambda rows: [*rows, rows[0] | {"id": "t:99"}], "1 of 5 predictions belong to no test item: 't:99'"),
        (lambda rows: [rows[0] | {"tags": ["O"] * 5}, *rows[1:]], "t:3: 5 tags predicted for 4 tokens"),
        (lambda rows: [rows[0] | {"tags": ["O", "PER", "O", "O"]}, *rows[1:]], "t:3: tags 'PER' are not IOB2"),
        (lambda rows: [rows[0] | {"tags": ["B-X"] * 4}, *rows[1:]], "predicted labels 'X' are not in labels.json"),
        (lambda rows: [rows[0] | {"tags": "OOOO"}, *rows[1:]], "a row needs the strings id and the lists tags"),
    ],
)
def test_ft_10_predictions_must_fit_the_items(tmp_path: Path, change, message: str) -> None:
    inputs = make_inputs(tmp_path)
    path = inputs["predictions"] / "predictions.jsonl"
    write_jsonl(path, change(list(read_jsonl(path))))
    with pytest.raises(InputError, match=message):
        run(inputs, tmp_path / "out")


def test_gold_must_be_tagged(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    rows = list(read_jsonl(inputs["dataset"] / "test.jsonl"))
    write_jsonl(inputs["dataset"] / "test.jsonl", [rows[0], rows[1] | {"tags": ["O"]}])
    with pytest.raises(InputError, match=r"test\.jsonl:2: t:1: 1 tags for 5 tokens"):
        run(inputs, tmp_path / "out")


@pytest.mark.parametrize(
    ("gold", "predicted", "kinds"),
    [
        ([("P", 0, 2)], [("P", 0, 2)], ["correct"]),
        ([("P", 0, 2)], [("L", 0, 2)], ["wrong_type"]),
        ([("P", 0, 2)], [("P", 1, 3)], ["wrong_boundary"]),
        ([("P", 0, 2)], [("L", 1, 3)], ["wrong_both"]),
        ([("P", 0, 2)], [("P", 2, 3)], ["missed", "spurious"]),
        # One gold entity split in two: the longer part is its boundary error, the other is spurious.
        ([("P", 0, 5)], [("P", 0, 2), ("P", 2, 5)], ["wrong_boundary", "spurious"]),
        # Two gold entities in one prediction: the first of equal overlap is paired.
        ([("P", 0, 2), ("P", 2, 4)], [("P", 0, 4)], ["wrong_boundary", "missed"]),
        # An exact match goes before any overlap, and a right type before a larger overlap.
        ([("P", 0, 4), ("L", 4, 6)], [("L", 0, 3), ("P", 3, 4)], ["wrong_boundary", "missed", "spurious"]),
    ],
)
def test_error_kinds_by_hand(gold: list, predicted: list, kinds: list[str]) -> None:
    assert [kind for kind, _, _ in pair_entities(gold, predicted)] == kinds


def spans(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    edges = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    return [(draw(st.sampled_from("PL")), a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]


@settings(max_examples=200, deadline=None)
@given(st.composite(spans)(), st.composite(spans)())
def test_each_entity_falls_into_exactly_one_kind(gold: list, predicted: list) -> None:
    pairs = pair_entities(gold, predicted)
    assert sorted(wanted for _, wanted, _ in pairs if wanted) == sorted(gold)
    assert sorted(found for _, _, found in pairs if found) == sorted(predicted)
    assert {kind for kind, _, _ in pairs} <= {*KINDS}
    assert sum(kind == "correct" for kind, _, _ in pairs) == len({*gold} & {*predicted})


def random_set(num_items: int, seed: int, mean_tokens: int = 37) -> tuple[list[TaggedText], list[str]]:
    generator = np.random.default_rng(seed)
    items, predicted = [], []
    for number in range(num_items):
        size = int(generator.integers(1, 2 * mean_tokens))
        sides = []
        for _ in range(2):
            tags = ["O"] * size
            for start in range(0, size - 3, 6):
                if generator.random() < 0.5:
                    name = ["PER", "LOC", "ORG"][int(generator.integers(3))]
                    tags[start : start + 3] = [f"B-{name}", f"I-{name}", f"I-{name}"]
            sides.append(tags)
        mixed = sides[0] if generator.random() < 0.8 else sides[1]
        items.append(tagged(f"t:{number}", "人" * size, " ".join(sides[0])))
        predicted.append(" ".join(mixed))
    return items, predicted


def test_agrees_with_seqeval(tmp_path: Path) -> None:
    items, predicted = random_set(200, seed=1)
    metrics, _ = run(write_inputs(tmp_path, items, predicted, items[:20]), tmp_path / "out")
    gold, found = [list(item.tags) for item in items], [tags.split() for tags in predicted]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert metrics["entity_f1"] == pytest.approx(f1_score(gold, found, mode="strict", scheme=IOB2))
        macro = f1_score(gold, found, mode="strict", scheme=IOB2, average="macro")
        assert metrics["macro_entity_f1"] == pytest.approx(macro)
        assert metrics["entity_f1_conll"] == pytest.approx(f1_score(gold, found))
    assert metrics["token_accuracy"] == pytest.approx(accuracy_score(gold, found))


def test_files_are_the_same_bytes_twice(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    run(inputs, tmp_path / "one")
    run(inputs, tmp_path / "two")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["scores.json", "scores.png"]
    for name in ("scores.json", "scores.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_aggregate_reads_the_task_of_the_data_set(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    paths = [inputs["predictions"]] * 2
    metrics, _ = run(inputs, tmp_path / "out")
    for metric in (MAIN_METRIC["ner"], "entity_f1_seen", "macro_entity_f1"):
        found = aggregate(paths, inputs["dataset"], metric, num_resamples=300, seed=0)
        assert (found.mean, found.num_seeds, found.num_items) == (pytest.approx(metrics[metric]), 2, 4)
        assert found.low <= found.mean <= found.high
    clean = aggregate(paths, inputs["dataset"], "entity_f1", num_resamples=300, seed=0, view="never_leaked")
    assert clean.mean == pytest.approx(metrics["entity_f1_clean"])


def test_a_test_set_as_large_as_msra_is_scored_quickly(tmp_path: Path) -> None:
    items, predicted = random_set(4631, seed=2)
    inputs = write_inputs(tmp_path, items, predicted, items[:1000])
    started = time.process_time()
    metrics, _ = run(inputs, tmp_path / "out", EvaluationConfig())
    assert time.process_time() - started < 6  # 1.4 to 2.2 s on an idle core
    assert metrics["num_scored_tokens"] > 150_000
