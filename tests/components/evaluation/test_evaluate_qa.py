from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from components.artifacts import publish
from components.errors import InputError
from components.evaluation.aggregate import aggregate
from components.evaluation.bootstrap import bootstrap, sum_clusters
from components.evaluation.classification import accuracy, label_counts
from components.evaluation.config import MAIN_METRIC, EvaluationConfig
from components.evaluation.question_answering import question_word
from components.evaluation.stage import evaluate
from components.examples import Answer, Question, write_examples, write_task
from components.formats import read_jsonl, write_jsonl
from components.predictions import AnswerPrediction, write_predictions

COSTS = {"train_seconds": 12.5, "num_parameters": 1000.0, "test_items_per_second": 321.0, "model_bytes": 4000.0}
CONFIG = EvaluationConfig(num_resamples=300)
ONE, TWO = "1990年王明在北京市上学。", "李雷是约翰·史密斯的朋友。"


def question(name: str, passage: str, text: str, *answers: str, leaked: bool = False) -> Question:
    found = [(answer, passage.find(answer)) for answer in answers]
    gold = tuple(Answer(answer, None if start < 0 else start) for answer, start in found)
    return Question(name, passage, text, gold, leaked)


TEST = [
    question("q:0", ONE, "王明在哪里上学?", "北京", "北京市上"),
    question("q:1", ONE, "王明何时上学?", "１９９０年"),
    question("q:2", ONE, "为什么?"),
    question("q:3", TWO, "李雷是谁的朋友?", "约翰·史密斯", leaked=True),
    question("q:4", TWO, "谁?", "李"),
    question("q:5", TWO, "他多少岁?"),
]
ANSWERS = ["北京市", "1990年", "", "史密斯", "朋", "李"]
F1 = [6 / 7, 1, 1, 6 / 8, 0, 0]  # q:0: 3 tokens against 北京市上, 3 shared; q:3: 3 of 5 characters, 3 shared


def predict(item: Question, answer: str) -> AnswerPrediction:
    start = item.text.index(answer) if answer else 0
    return AnswerPrediction(item.id, answer, start, start + len(answer), 0.0, ())


def write_inputs(root: Path, test: list[Question], answers: list[str]) -> dict[str, Path]:
    dataset, scratch = root / "dataset", root / "scratch"
    dataset.mkdir(parents=True)
    scratch.mkdir()
    write_task(dataset, "question_answering")
    write_examples(dataset, "test", test)
    found = [predict(item, answer) for item, answer in zip(test, answers, strict=True)]
    write_predictions(scratch / "predictions.jsonl", reversed(found))
    publish(scratch, root / "predictions", stage="finetune", key="0" * 64, metrics=COSTS, details={})
    return {"dataset": dataset, "predictions": root / "predictions"}


def run(inputs: dict[str, Path], out_dir: Path, config: EvaluationConfig = CONFIG) -> tuple[dict[str, float], dict]:
    out_dir.mkdir()
    metrics = evaluate(config, **inputs, out_dir=out_dir)
    return metrics, json.loads((out_dir / "scores.json").read_text(encoding="utf-8"))


def test_scores_by_hand(tmp_path: Path) -> None:
    metrics, scores = run(write_inputs(tmp_path, TEST, ANSWERS), tmp_path / "out")
    assert metrics["f1"] == pytest.approx(sum(F1) / 6)
    assert metrics["exact_match"] == pytest.approx(2 / 6)
    assert metrics["has_answer_f1"] == pytest.approx((F1[0] + F1[1] + F1[3] + F1[4]) / 4)
    assert metrics["has_answer_exact_match"] == pytest.approx(1 / 4)
    assert metrics["no_answer_accuracy"] == pytest.approx(1 / 2)
    assert metrics["f1_clean"] == pytest.approx((sum(F1) - F1[3]) / 5)
    counts = {name: value for name, value in metrics.items() if name.startswith("num_")}
    assert counts == {
        "num_parameters": 1000, "num_test_items": 6, "num_clean_items": 5, "num_gold_answers": 5,
        "num_gold_unplaced": 1, "num_unplaced_questions": 1, "num_unanswerable": 2, "num_predicted_no_answer": 1,
        "num_passages": 2,
    }  # fmt: skip
    assert {name: scores[name] for name in ("task", "language", "labels")} == {
        "task": "question_answering", "language": "zh", "labels": [],
    }  # fmt: skip
    assert scores["views"]["all"]["num_clusters"] == 2
    assert scores["views"]["all"]["metrics"]["f1"]["scoring"].startswith("CMRC 2018")
    for name in ("f1", "exact_match", "f1_clean"):
        assert 0 <= metrics[f"{name}_low"] <= metrics[name] <= metrics[f"{name}_high"] <= 1


def test_details_by_hand(tmp_path: Path) -> None:
    _, scores = run(write_inputs(tmp_path, TEST, ANSWERS), tmp_path / "out")
    view = scores["views"]["all"]
    assert view["kinds"] == {"exact": 2, "partial": 2, "wrong": 1, "missed": 0, "spurious": 1}
    lengths = {row["name"]: (row["num_questions"], row["f1"]) for row in view["by_answer_length"]}
    assert lengths == {
        "1": (1, 0), "2-3": (2, pytest.approx((F1[0] + F1[1]) / 2)), "4-7": (1, F1[3]), "no answer": (2, 0.5),
    }  # fmt: skip
    words = {row["name"]: row["num_questions"] for row in view["by_question_word"]}
    assert words == {"为什么": 1, "多少": 1, "何时": 1, "哪里": 1, "谁": 2}
    assert [row["id"] for row in view["worst"]] == ["q:4", "q:5", "q:3", "q:0"]
    assert view["worst"][0] == {"id": "q:4", "question": "谁?", "gold": ["李"], "predicted": "朋", "f1": 0}


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("哪一年成立？", "zh", "何时"), ("在哪个城市？", "zh", "哪"), ("有几个人？", "zh", "多少"), ("說明", "zh", "other"),
        ("Who won?", "en", "who"), ("In how many days?", "en", "how many"), ("Name it", "en", "other"),
    ],
)  # fmt: skip
def test_question_words(text: str, language: str, expected: str) -> None:
    assert question_word(text, language) == expected


def test_english_is_scored_by_squad(tmp_path: Path) -> None:
    item = question("q:0", "He saw the Denver Broncos win.", "Who won?", "the Denver Broncos")
    metrics, scores = run(
        write_inputs(tmp_path, [item], ["Denver"]), tmp_path / "out", EvaluationConfig(num_resamples=100, language="en")
    )
    assert metrics["f1"] == pytest.approx(2 / 3)
    assert scores["views"]["all"]["metrics"]["f1"]["scoring"].startswith("SQuAD")


def test_without_unanswerable_questions_there_is_no_split(tmp_path: Path) -> None:
    metrics, _ = run(write_inputs(tmp_path, TEST[:2], ANSWERS[:2]), tmp_path / "out")
    assert "f1" in metrics
    assert not [name for name in metrics if name.startswith(("has_answer", "no_answer"))]


def test_ft_12_gold_spans_score_100_exact_match(tmp_path: Path) -> None:
    spans = [next((one.text for one in item.answers if one.start is not None), "") for item in TEST]
    metrics, _ = run(write_inputs(tmp_path, TEST, spans), tmp_path / "out")
    assert metrics["exact_match"] == pytest.approx(5 / 6)  # All but the question whose answer has no place.
    assert metrics["num_unplaced_questions"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "1 of 6 test items have no prediction: 'q:5'"),
        (lambda rows: [*rows, rows[0]], r"predictions\.jsonl:7: id 'q:5' repeats the one of line 1"),
        (lambda rows: [*rows, rows[0] | {"id": "q:99"}], "1 of 7 predictions belong to no test item: 'q:99'"),
        (lambda rows: [rows[0] | {"start": 1}, *rows[1:]], "q:5: the answer is '李', but 1:1 of the passage is ''"),
        (lambda rows: [{"id": "q:5", "answer": "李"}, *rows[1:]], "a row needs the strings id and answer and the numb"),
    ],
)
def test_ft_10_predictions_must_fit_the_questions(tmp_path: Path, change, message: str) -> None:
    inputs = write_inputs(tmp_path, TEST, ANSWERS)
    path = inputs["predictions"] / "predictions.jsonl"
    write_jsonl(path, change(list(read_jsonl(path))))
    with pytest.raises(InputError, match=message):
        run(inputs, tmp_path / "out")


def test_ft_10_a_question_id_may_not_repeat(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [TEST[0], TEST[1]], ANSWERS[:2])
    rows = list(read_jsonl(inputs["dataset"] / "test.jsonl"))
    write_jsonl(inputs["dataset"] / "test.jsonl", [rows[0], rows[1] | {"id": "q:0"}])
    with pytest.raises(InputError, match=r"test\.jsonl:2: id 'q:0' repeats the one of line 1"):
        run(inputs, tmp_path / "out")


def test_gold_rows_must_be_questions(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, TEST, ANSWERS)
    write_jsonl(inputs["dataset"] / "test.jsonl", [{"id": "q:0", "text": "", "question": "", "answers": [{}]}])
    with pytest.raises(InputError, match=r"test\.jsonl:1: not an example of question_answering"):
        run(inputs, tmp_path / "out")


def test_clusters_are_summed_in_order() -> None:
    counts = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float64)
    assert sum_clusters(counts, ["b", "a", "b"]).tolist() == [[6, 8], [3, 4]]


def test_interval_of_clusters_covers_the_truth() -> None:
    """Five questions on each passage that stand and fall together: items alone give less than half the width."""
    generator = np.random.default_rng(3)
    covered, narrow, rounds = 0, 0, 300
    for _ in range(rounds):
        right = np.repeat(generator.random(100) < 0.6, 5)
        counts = label_counts(["a"] * 500, ["a" if ok else "b" for ok in right], ["a", "b"])
        settings = {"num_resamples": 300, "confidence_level": 0.95, "seed": int(generator.integers(2**31))}
        found = bootstrap(sum_clusters(counts, [str(n // 5) for n in range(500)]), accuracy, **settings)
        alone = bootstrap(counts, accuracy, **settings)
        covered += found.low <= 0.6 <= found.high
        narrow += alone.low <= 0.6 <= alone.high
    assert 0.92 <= covered / rounds <= 0.97
    assert narrow / rounds < 0.75


def test_aggregate_reads_the_task_of_the_data_set(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, TEST, ANSWERS)
    metrics, _ = run(inputs, tmp_path / "out")
    for metric in (MAIN_METRIC["question_answering"], "exact_match", "no_answer_accuracy"):
        found = aggregate([inputs["predictions"]], inputs["dataset"], metric, num_resamples=300, seed=0)
        assert found.mean == pytest.approx(metrics[metric])
        assert (found.low, found.high) == (metrics[f"{metric}_low"], metrics[f"{metric}_high"])
        assert found.num_items == 6
    some = write_inputs(tmp_path / "some", TEST[:2], ANSWERS[:2])
    with pytest.raises(InputError, match="nothing in the view 'all' of the test items has a no_answer_accuracy"):
        aggregate([some["predictions"]], some["dataset"], "no_answer_accuracy", num_resamples=100, seed=0)


def test_files_are_the_same_bytes_twice(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, TEST, ANSWERS)
    run(inputs, tmp_path / "one")
    run(inputs, tmp_path / "two")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["scores.json", "scores.png"]
    for name in ("scores.json", "scores.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_as_many_questions_as_cmrc_are_scored_quickly(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    characters = [chr(0x4E00 + n) for n in range(500)]
    items, answers = [], []
    for number in range(3219):
        if number % 4 == 0:
            passage = "".join(generator.choice(characters, 510))
        starts, sizes = generator.integers(0, 400, 4), generator.integers(1, 30, 4)
        cut = [passage[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        items.append(question(f"q:{number}", passage, "谁?", *cut[:3]))
        answers.append(cut[3])
    inputs = write_inputs(tmp_path, items, answers)
    started = time.process_time()
    run(inputs, tmp_path / "out", EvaluationConfig())
    assert time.process_time() - started < 6
