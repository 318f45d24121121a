from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.errors import ConfigError, InputError
from components.evaluation.aggregate import aggregate
from components.evaluation.comparison_config import ComparisonConfig, Control, Entry
from components.evaluation.comparison_stage import compare
from components.examples import Answer, Example, Question, write_examples, write_task
from components.formats import write_jsonl

Rungs = dict[str, list[np.ndarray]]
"""For each rung and seed, which items are right."""
SECONDS = {"tfidf": 5.0, "lstm": 60.0, "bert": 600.0}


def hits(accuracy: float, size: int, seed: int) -> np.ndarray:
    """A seed's right items; all but one in ten of its hits are those of any other seed."""
    shared, own = np.random.default_rng(99).random(size), np.random.default_rng(seed + 1).random(size)
    return np.where(own < 0.9, shared < accuracy, np.roll(own, 1) < accuracy)


def planted(size: int, num_seeds: int = 3, **accuracies: float) -> Rungs:
    return {
        rung: [hits(accuracy, size, 10 * number + seed) for seed in range(num_seeds)]
        for number, (rung, accuracy) in enumerate(accuracies.items())
    }


def entries_of(rungs: Rungs, **changes: Any) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            rung=rung, seed=seed, train_seconds=SECONDS[rung], items_per_second=1e4 / SECONDS[rung],
            num_parameters=1000, model_bytes=4000, **changes,
        )
        for rung, runs in rungs.items() for seed in range(len(runs))
    )  # fmt: skip


def write_inputs(root: Path, rungs: Rungs, leaked: int = 0) -> dict[str, Any]:
    """Items alternate between two labels; the last ``leaked`` ones are copies."""
    size = len(next(iter(rungs.values()))[0])
    items = [Example(f"t:{n}", f"text {n}", "pn"[n % 2], leaked=n >= size - leaked) for n in range(size)]
    dataset = root / "dataset"
    dataset.mkdir(parents=True)
    write_task(dataset, "classification")
    write_examples(dataset, "train", items[:20])
    write_examples(dataset, "test", items)
    paths = []
    for rung, runs in rungs.items():
        for seed, right in enumerate(runs):
            rows = (
                {"id": item.id, "label": item.label if hit else "np"[item.label == "n"]}
                for item, hit in zip(items, right, strict=True)
            )
            paths.append(root / f"{rung}-{seed}.jsonl")
            write_jsonl(paths[-1], rows)
    return {"predictions": tuple(paths), "dataset": dataset}


def run(root: Path, rungs: Rungs, leaked: int = 0, **settings: Any) -> dict[str, Any]:
    config = ComparisonConfig(entries=entries_of(rungs), **{"num_resamples": 300, **settings})
    (root / "out").mkdir(parents=True)
    metrics = compare(config, **write_inputs(root, rungs, leaked), out_dir=root / "out")
    assert np.isfinite(list(metrics.values())).all()

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads((root / "out" / "verdict.json").read_text(encoding="utf-8"), parse_constant=refuse)


def kinds(verdict: dict[str, Any]) -> list[str]:
    return [sentence["kind"] for sentence in verdict["sentences"]]


def sentence(verdict: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(found for found in verdict["sentences"] if found["kind"] == kind)


def test_clear_winner(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(800, tfidf=0.6, lstm=0.75, bert=0.9))
    assert (verdict["best"], verdict["cheapest_within_noise"]) == ("bert", "bert")
    assert kinds(verdict) == ["best_clear", "best_is_cheapest", "test_finds", "no_leaks"]
    best = sentence(verdict, "best_clear")
    rows = {row["rung"]: row for row in verdict["views"]["all"]["rungs"]}
    assert best["difference"] == pytest.approx(rows["bert"]["mean"] - rows["lstm"]["mean"])
    assert best["p_holm"] < 0.05
    assert rows["bert"]["sd"] == pytest.approx(np.std(list(rows["bert"]["scores"].values()), ddof=1))


def test_tie_names_the_cheapest_rung_and_its_largest_loss(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(2000, tfidf=0.8, bert=0.801))
    assert verdict["cheapest_within_noise"] == "tfidf"
    assert "all_tied" in kinds(verdict)
    if verdict["best"] != "tfidf":
        assert sentence(verdict, "cheaper_as_good")["loss_high"] <= verdict["margin"]


def test_cheapest_within_noise_is_not_the_cheapest_of_all(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(2000, tfidf=0.6, lstm=0.8, bert=0.805))
    assert (verdict["best"], verdict["cheapest_within_noise"]) == ("bert", "lstm")
    chosen = sentence(verdict, "cheaper_as_good")
    assert (chosen["train_seconds"], chosen["train_seconds_best"]) == (60, 600)
    assert "best_leads" in kinds(verdict)


def test_winner_on_copies_only(tmp_path: Path) -> None:
    rungs = planted(800, lstm=0.7, bert=0.7)
    for right in rungs["bert"]:
        right[400:] = True  # It has every copy by heart.
    verdict = run(tmp_path, rungs, leaked=400)
    found = sentence(verdict, "leak_only_winner")
    assert (found["rung"], found["num_leaked"], found["num_clean"]) == ("bert", 400, 400)
    assert found["difference"] > 0.1 > abs(found["clean_difference"])


def test_test_set_too_small(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(40, lstm=0.7, bert=0.8))
    assert "test_too_small" in kinds(verdict)
    assert verdict["cheapest_within_noise"] == "bert"
    assert sentence(verdict, "cheaper_unproven")["loss_high"] > verdict["margin"]


def test_more_items_do_not_help_where_seeds_differ(tmp_path: Path) -> None:
    rungs = {
        rung: [hits(accuracy, 3000, seed) for seed, accuracy in enumerate(accuracies)]
        for rung, accuracies in (("lstm", (0.60, 0.70, 0.80)), ("bert", (0.82, 0.64, 0.72)))
    }
    verdict = run(tmp_path, rungs)
    assert "seeds_too_few" in kinds(verdict)
    assert sentence(verdict, "seeds_too_few")["num_seeds"] == 3
    assert {"not_separable_seeds", "not_separable_no_difference"} & {*kinds(verdict)}


def test_a_question_left_open_makes_the_test_too_small(tmp_path: Path) -> None:
    few, many = (run(tmp_path / str(size), planted(size, lstm=0.75, bert=0.78)) for size in (150, 6000))
    assert {"all_tied", "test_too_small"} <= {*kinds(few)}
    assert {"best_clear", "test_finds"} <= {*kinds(many)}
    smallest = sentence(many, "test_finds")["minimum_detectable_difference"]
    assert smallest < sentence(few, "test_too_small")["minimum_detectable_difference"]


def test_a_coarse_test_that_left_no_question_open_was_fine_enough(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(150, lstm=0.6, bert=0.9))
    found = sentence(verdict, "test_finds")
    assert found["minimum_detectable_difference"] > found["margin"]
    assert "best_clear" in kinds(verdict)


def test_one_seed_is_tested_exactly_and_said(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(400, num_seeds=1, lstm=0.7, bert=0.9))
    assert "one_seed" in kinds(verdict)
    assert verdict["views"]["all"]["pairs"][0]["method"] == "mcnemar"
    assert verdict["views"]["all"]["rungs"][0]["sd"] is None


def test_one_rung(tmp_path: Path) -> None:
    verdict = run(tmp_path, planted(100, bert=0.9))
    assert kinds(verdict) == ["only_rung", "no_leaks"]
    assert verdict["views"]["all"]["minimum_detectable_difference"] is None


def test_control_says_what_an_ingredient_adds(tmp_path: Path) -> None:
    controls = (Control(ingredient="pretraining", without="lstm", with_="bert"),)
    verdict = run(tmp_path, planted(800, lstm=0.7, bert=0.9), controls=controls)
    row = verdict["controls"][0]
    assert (row["effect"], row["with"]) == ("adds", "bert")
    assert row["low"] < row["difference"] < row["high"]
    assert row["difference"] == pytest.approx(verdict["views"]["all"]["pairs"][0]["difference"])


@pytest.mark.parametrize("view", ["all", "never_leaked"])
def test_means_and_intervals_are_those_of_the_leaderboard(tmp_path: Path, view: str) -> None:
    rungs = planted(300, tfidf=0.6, lstm=0.7, bert=0.9)
    verdict = run(tmp_path, rungs, leaked=50, seed=7)
    for row in verdict["views"][view]["rungs"]:
        paths = [tmp_path / f"{row['rung']}-{seed}.jsonl" for seed in range(3)]
        found = aggregate(paths, tmp_path / "dataset", "accuracy", num_resamples=300, seed=7, view=view)
        assert (row["mean"], row["low"], row["high"]) == (found.mean, found.low, found.high)


def test_same_input_same_bytes(tmp_path: Path) -> None:
    rungs = planted(200, tfidf=0.6, bert=0.8)
    for name in ("one", "two"):
        run(tmp_path / name, rungs)
    for file in ("verdict.json", "verdict.png", "pairs.png", "costs.png"):
        assert (tmp_path / "one/out" / file).read_bytes() == (tmp_path / "two/out" / file).read_bytes()


def test_questions_on_one_passage_count_once(tmp_path: Path) -> None:
    items = [Question(f"q:{n}", f"passage {n // 4}", "?", (Answer("passage", 0),)) for n in range(80)]
    write_task(tmp_path, "question_answering")
    write_examples(tmp_path, "train", items[:4])
    write_examples(tmp_path, "test", items)
    paths = []
    for rung, share in (("lstm", 2), ("bert", 3)):
        rows = (
            {"id": item.id, "answer": "passage" if n % 4 < share else "", "start": 0, "end": 7}
            for n, item in enumerate(items)
        )
        paths.append(tmp_path / f"{rung}.jsonl")
        write_jsonl(paths[-1], rows)
    config = ComparisonConfig(
        entries=entries_of({"lstm": [np.ones(1)], "bert": [np.ones(1)]}), num_resamples=200, language="en"
    )
    (tmp_path / "out").mkdir()
    compare(config, predictions=tuple(paths), dataset=tmp_path, out_dir=tmp_path / "out")
    view = json.loads((tmp_path / "out/verdict.json").read_text())["views"]["all"]
    assert (view["num_items"], view["num_clusters"]) == (80, 20)
    assert view["pairs"][0]["difference"] == pytest.approx(0.25)
    assert view["pairs"][0]["method"] == "items"


def test_empty_primary_view_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="never_leaked"):
        run(tmp_path, planted(50, bert=0.8), leaked=50, primary_view="never_leaked")


def test_missing_prediction_is_named(tmp_path: Path) -> None:
    rungs = planted(50, bert=0.8)
    inputs = write_inputs(tmp_path, rungs)
    file = inputs["predictions"][1]
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="t:49"):
        compare(ComparisonConfig(entries=entries_of(rungs)), **inputs, out_dir=tmp_path)
    with pytest.raises(ConfigError, match="2 sets of predictions for 3 entries"):
        compare(
            ComparisonConfig(entries=entries_of(rungs)),
            predictions=inputs["predictions"][:2],
            dataset=inputs["dataset"],
            out_dir=tmp_path,
        )
