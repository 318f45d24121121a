from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from components.errors import ConfigError, InputError
from components.evaluation import bootstrap as module
from components.evaluation.aggregate import aggregate, seed_weights
from components.evaluation.bootstrap import bootstrap, draw_weights, percentile_interval, resampled_metrics
from components.evaluation.classification import accuracy, label_counts, macro_f1
from components.examples import Example, write_examples, write_task
from components.predictions import Prediction, write_predictions


def counts_of(right: Sequence[bool]) -> np.ndarray:
    return label_counts(["a"] * len(right), ["a" if ok else "b" for ok in right], ["a", "b"])


def write_seeds(root: Path, right: np.ndarray, leaked: Sequence[bool] | None = None) -> tuple[list[Path], Path]:
    """Files of S seeds on N items with two balanced labels; right has shape [S, N]."""
    num_items = right.shape[1]
    gold = ["ab"[n % 2] for n in range(num_items)]
    flags = leaked or [False] * num_items
    write_task(root, "classification")
    write_examples(root, "test", [Example(f"t:{n}", "x", gold[n], flags[n]) for n in range(num_items)])
    paths = []
    for seed, row in enumerate(right):
        folder = root / str(seed)
        folder.mkdir()
        labels = [g if ok else "ba"["ab".index(g)] for g, ok in zip(gold, row, strict=True)]
        write_predictions(
            folder / "predictions.jsonl", [Prediction(f"t:{n}", x, {x: 1.0}) for n, x in enumerate(labels)]
        )
        paths.append(folder / "predictions.jsonl")
    return paths, root / "test.jsonl"


def test_weights_are_draws_with_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 70)
    blocks = list(draw_weights(10, 1000, seed=4))
    assert {len(block) for block in blocks[:-1]} == {7}
    weights = np.concatenate(blocks)
    assert weights.shape == (1000, 10)
    assert (weights.sum(axis=1) == 10).all()
    # Multinomial(10, 1/10): each count has mean 1 and variance 0.9.
    assert weights.mean(axis=0) == pytest.approx(1, abs=0.1)
    assert weights.var() == pytest.approx(0.9, abs=0.05)


def test_resampled_metrics_equal_a_loop_over_items() -> None:
    gold, predicted = list("aabbcabcca"), list("abbbcaacbc")
    counts = label_counts(gold, predicted, ["a", "b", "c"])
    values = resampled_metrics([counts], [accuracy, macro_f1], 20, seed=1)[:, 0]
    generator = np.random.default_rng(1)
    from sklearn.metrics import accuracy_score, f1_score

    for resample, drawn in enumerate(generator.integers(0, 10, size=(20, 10))):
        chosen_gold, chosen = [gold[i] for i in drawn], [predicted[i] for i in drawn]
        assert values[0, resample] == pytest.approx(accuracy_score(chosen_gold, chosen))
        assert values[1, resample] == pytest.approx(f1_score(chosen_gold, chosen, average="macro", zero_division=0))


def test_percentile_interval_by_hand() -> None:
    assert percentile_interval(np.arange(101.0), 0.9) == (pytest.approx(5.0), pytest.approx(95.0))


def test_interval_of_certainty_is_a_point() -> None:
    found = bootstrap(counts_of([True] * 50), accuracy, num_resamples=100, confidence_level=0.95, seed=0)
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_interval_has_the_normal_width_on_many_items() -> None:
    right = [n % 5 != 0 for n in range(4000)]
    found = bootstrap(counts_of(right), accuracy, num_resamples=2000, confidence_level=0.95, seed=0)
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 4000), rel=0.08)


@pytest.mark.parametrize("share", [0.7, 0.85])
def test_interval_covers_the_truth_in_93_to_97_percent(share: float) -> None:
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(600):
        found = bootstrap(
            counts_of(generator.random(300) < share), accuracy,
            num_resamples=400, confidence_level=0.95, seed=int(generator.integers(2**31)),
        )  # fmt: skip
        covered += found.low <= share <= found.high
    assert 0.93 <= covered / 600 <= 0.97


def test_aggregate_by_hand(tmp_path: Path) -> None:
    right = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=bool)
    paths, gold = write_seeds(tmp_path, right, [False, False, False, True])
    found = aggregate(paths, gold, "accuracy", num_resamples=500, seed=0)
    assert found.mean == pytest.approx((3 / 4 + 2 / 4 + 1 / 4) / 3)
    assert (found.num_seeds, found.num_items) == (3, 4)
    assert 0 <= found.low < found.mean < found.high <= 1
    clean = aggregate(paths, gold, "accuracy", num_resamples=500, seed=0, view="never_leaked")
    assert clean.mean == pytest.approx((3 / 3 + 2 / 3 + 1 / 3) / 3)
    assert clean.num_items == 3
    folders = [path.parent for path in paths]
    assert aggregate(folders, tmp_path, "accuracy", num_resamples=500, seed=0) == found


def test_one_seed_has_the_interval_of_its_items(tmp_path: Path) -> None:
    right = np.random.default_rng(0).random((1, 200)) < 0.8
    paths, gold = write_seeds(tmp_path, right)
    found = aggregate(paths, gold, "accuracy", num_resamples=500, seed=7)
    alone = bootstrap(counts_of(right[0].tolist()), accuracy, num_resamples=500, confidence_level=0.95, seed=7)
    assert (found.mean, found.low, found.high) == (alone.value, alone.low, alone.high)


def test_equal_seeds_add_nothing_and_differing_seeds_widen(tmp_path: Path) -> None:
    one = np.random.default_rng(0).random(400) < 0.8
    same, differing = tmp_path / "same", tmp_path / "differing"
    same.mkdir()
    differing.mkdir()
    paths, gold = write_seeds(same, np.stack([one] * 3))
    narrow = aggregate(paths, gold, "accuracy", num_resamples=1000, seed=0)
    alone = aggregate(paths[:1], gold, "accuracy", num_resamples=1000, seed=0)
    assert (narrow.low, narrow.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    worse = one & (np.arange(400) % 4 > 0)
    wide = aggregate(*write_seeds(differing, np.stack([one, one, worse])), "accuracy", num_resamples=1000, seed=0)
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.parametrize("num_seeds", [2, 3, 10])
def test_seed_weights_give_the_unbiased_variance_of_a_mean(num_seeds: int) -> None:
    """Rao & Wu 1988: S - 1 draws make the variance of the resampled mean s^2 / S."""
    weights = seed_weights(num_seeds, 40_000, seed=1)
    assert weights.sum(axis=0) == pytest.approx(1)
    scores = np.random.default_rng(2).normal(size=num_seeds)
    assert (scores @ weights).var() == pytest.approx(scores.var(ddof=1) / num_seeds, rel=0.05)


def test_aggregate_covers_seeds_and_items(tmp_path: Path) -> None:
    """Crossed chance as in practice: items of unequal difficulty, seeds of unequal skill; errs on the wide side."""
    generator = np.random.default_rng(5)
    covered, rounds, num_items = 0, 300, 300
    for _ in range(rounds):
        skill = 0.8 + generator.normal(0, 0.01, size=(3, 1))
        # Half of the items are decided by their difficulty alone, the others by a coin per seed.
        hard = generator.random(num_items) < 0.5
        shared, own = generator.random(num_items), generator.random((3, num_items))
        right = np.where(hard, shared < skill, own < skill)
        values = resampled_metrics([counts_of(row.tolist()) for row in right], [accuracy], 300, 0)[0]
        averaged = (values * seed_weights(3, 300, int(generator.integers(2**31)))).sum(axis=0)
        low, high = percentile_interval(averaged, 0.95)
        covered += low <= 0.8 <= high
    assert 0.93 <= covered / rounds <= 0.995


def test_aggregate_is_fast_enough_for_a_leaderboard(tmp_path: Path) -> None:
    paths, gold = write_seeds(tmp_path, np.random.default_rng(0).random((3, 2000)) < 0.8)
    started = time.process_time()
    aggregate(paths, gold, "macro_f1", num_resamples=2000, seed=0)
    assert time.process_time() - started < 3


def test_aggregate_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    paths, gold = write_seeds(tmp_path, np.ones((2, 4), dtype=bool), [True] * 4)
    with pytest.raises(ConfigError, match="metric 'f1' is not one of accuracy, macro_f1"):
        aggregate(paths, gold, "f1", num_resamples=100, seed=0)
    with pytest.raises(ConfigError, match="no predictions"):
        aggregate([], gold, "accuracy", num_resamples=100, seed=0)
    with pytest.raises(InputError, match="none of the 4 test items is in the view 'never_leaked'"):
        aggregate(paths, gold, "accuracy", num_resamples=100, seed=0, view="never_leaked")
