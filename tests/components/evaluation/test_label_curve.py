from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.evaluation.comparison_config import ComparisonConfig, Entry
from components.evaluation.comparison_stage import compare
from components.evaluation.label_curve import Curve, find_crossing
from components.examples import Example, write_examples, write_task
from components.formats import write_jsonl

COUNTS, TRAIN = (100, 300, 1000), 1000


def curve(rung: str, means: list[float], spread: float = 0.0, counts: tuple[int, ...] = COUNTS) -> Curve:
    noise = spread * np.random.default_rng(len(rung)).standard_normal((len(means), 400))
    return Curve(rung, counts, np.array(means), np.array(means)[:, None] + noise, (3,) * len(means))


def crossing(later: list[float], early: list[float], spread: float = 0.0) -> dict[str, Any]:
    found = find_crossing(curve("bert", later, spread), curve("tfidf", early, spread), 0.05)
    assert found is not None
    return found


def test_crossing_is_interpolated_on_the_logarithm_by_hand() -> None:
    # Behind by .10 at 300, ahead by .05 at 1,000: two thirds of the way in logarithms.
    found = crossing([0.5, 0.6, 0.85], [0.6, 0.7, 0.8])
    assert found["kind"] == "crosses"
    assert found["num_labels"] == round(300 * (1000 / 300) ** (2 / 3)) == 669
    assert (found["low"], found["high"], found["low_is"], found["high_is"]) == (669, 669, "within", "within")
    assert (found["difference_at_first"], found["difference_at_last"]) == pytest.approx((-0.1, 0.05))


def test_last_change_to_ahead_counts() -> None:
    found = crossing([0.7, 0.6, 0.9], [0.6, 0.7, 0.8])
    assert found["num_labels"] == round(math.sqrt(300 * 1000))


def test_ahead_throughout_has_no_number() -> None:
    found = crossing([0.7, 0.8, 0.9], [0.6, 0.7, 0.8])
    assert (found["kind"], found["num_labels"], found["low"], found["low_is"]) == (
        "ahead_throughout",
        None,
        None,
        "below",
    )
    assert found["share_ahead_at_end"] == 1


@pytest.mark.parametrize("last", [0.7, 0.8])
def test_behind_or_level_at_the_end_is_not_within_data(last: float) -> None:
    found = crossing([0.7, 0.8, last], [0.6, 0.7, 0.8])
    assert (found["kind"], found["num_labels"], found["high_is"]) == ("not_within_data", None, "beyond")
    assert found["share_ahead_at_end"] == 0


def test_interval_widens_with_noise_and_says_where_it_leaves_the_data() -> None:
    later, early = [0.5, 0.69, 0.85], [0.6, 0.7, 0.8]
    calm, noisy = crossing(later, early, 0.005), crossing(later, early, 0.05)
    assert calm["low"] <= calm["num_labels"] <= calm["high"]
    assert calm["interval_within_data"]
    assert (noisy["high"], noisy["high_is"]) == (None, "beyond")
    assert not noisy["interval_within_data"]
    assert 0.5 < noisy["share_ahead_at_end"] < 1


def test_undefined_resamples_say_nothing() -> None:
    later, early = curve("bert", [0.5, 0.69, 0.85], 0.02), curve("tfidf", [0.6, 0.7, 0.8], 0.02)
    gaps = np.concatenate([later.drawn, np.full((3, 50), np.nan)], axis=1)
    padded = np.concatenate([early.drawn, np.zeros((3, 50))], axis=1)
    with_gaps = find_crossing(
        Curve("bert", COUNTS, later.means, gaps, (3,) * 3), Curve("tfidf", COUNTS, early.means, padded, (3,) * 3), 0.05
    )
    assert with_gaps == find_crossing(later, early, 0.05)


def test_only_shared_label_counts_are_looked_at() -> None:
    later = curve("bert", [0.5, 0.9], counts=(100, 1000))
    assert find_crossing(later, curve("tfidf", [0.6, 0.7], counts=(300, 1000)), 0.05) is None
    found = find_crossing(later, curve("tfidf", [0.6, 0.7, 0.8]), 0.05)
    assert found is not None
    assert found["num_labels"] == round(math.sqrt(100 * 1000))


def run(root: Path, accuracies: dict[str, dict[int | None, float]], size: int = 600) -> Path:
    """Two seeds of each rung at each label count, on nested hits: more labels never lose an item."""
    items = [Example(f"t:{n}", f"text {n}", "pn"[n % 2]) for n in range(size)]
    write_task(root, "classification")
    write_examples(root, "train", [Example(f"r:{n}", f"train {n}", "pn"[n % 2]) for n in range(TRAIN)])
    write_examples(root, "test", items)
    entries, paths = [], []
    for number, (rung, budgets) in enumerate(accuracies.items()):
        for budget, accuracy in budgets.items():
            for seed in range(2):
                right = np.random.default_rng(seed + 1).random(size) < accuracy
                rows = ({"id": item.id, "label": item.label if hit else "np"[item.label == "n"]} for item, hit in zip(items, right, strict=True))  # fmt: skip
                paths.append(root / f"{rung}-{budget}-{seed}.jsonl")
                write_jsonl(paths[-1], rows)
                entries.append(
                    Entry(
                        rung=rung,
                        seed=seed,
                        num_train_examples=budget,
                        train_seconds=10.0**number,
                        items_per_second=100,
                        num_parameters=10,
                        model_bytes=40,
                    )
                )
    out = root / "out"
    out.mkdir()
    config = ComparisonConfig(entries=tuple(entries), num_resamples=300)
    compare(config, predictions=tuple(paths), dataset=root, out_dir=out)
    return out


def test_curve_of_a_run_has_every_label_count_and_the_crossing(tmp_path: Path) -> None:
    out = run(tmp_path, {"tfidf": {100: 0.6, 300: 0.7, None: 0.75}, "bert": {100: 0.5, 300: 0.68, None: 0.9}})
    found = json.loads((out / "label_curve.json").read_text())
    assert [line["rung"] for line in found["curves"]] == ["tfidf", "bert"]
    for line in found["curves"]:
        assert [point["num_labels"] for point in line["points"]] == [100, 300, TRAIN]
        assert all(point["low"] < point["mean"] < point["high"] for point in line["points"])
    (pair,) = found["crossings"]
    assert (pair["rung"], pair["over"], pair["kind"]) == ("bert", "tfidf", "crosses")
    assert 300 < pair["num_labels"] < TRAIN
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["num_train_examples"] == TRAIN
    last = {line["rung"]: line["points"][-1]["mean"] for line in found["curves"]}
    assert last == pytest.approx({row["rung"]: row["mean"] for row in verdict["views"]["all"]["rungs"]})
    assert (out / "label_curve.png").stat().st_size > 5000


def test_label_counts_beyond_the_training_split_are_the_whole_split(tmp_path: Path) -> None:
    out = run(tmp_path, {"tfidf": {100: 0.6, 5000: 0.7}, "bert": {100: 0.5, None: 0.9}})
    found = json.loads((out / "label_curve.json").read_text())
    assert [[point["num_labels"] for point in line["points"]] for line in found["curves"]] == [[100, TRAIN]] * 2


def test_one_label_count_is_no_curve(tmp_path: Path) -> None:
    out = run(tmp_path, {"tfidf": {None: 0.6}, "bert": {None: 0.9}})
    assert not (out / "label_curve.json").exists()
