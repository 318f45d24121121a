from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.artifacts import hash_folder
from components.encoders.static import save_word_vectors
from components.errors import ConfigError
from components.probes import senses_stage
from components.probes.meaning_config import SenseProbeConfig
from components.probes.senses import Credits, chance_level, sense_credits, summarize, two_dimensions
from components.probes.senses_stage import probe_senses
from components.text.segmentation import Segmenter, SegmenterConfig

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SIX = ("a",) * 6 + ("b",) * 6


def random_vectors(seed, count=12, size=200):
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)


def test_equal_vectors_are_exactly_chance():
    vectors = np.tile(random_vectors(0, 1), (13, 1))
    assert sense_credits(vectors[:12], SIX).tolist() == [0.5] * 12
    three = ("a",) * 6 + ("b",) * 3 + ("c",) * 4
    np.testing.assert_array_equal(sense_credits(vectors, three), 1 / 3)


def test_separated_senses_are_found():
    vectors = np.zeros((12, 5), dtype=np.float32)
    vectors[:6, 0] = vectors[6:, 1] = 1
    vectors += 0.05 * random_vectors(1, size=5)
    assert sense_credits(vectors, SIX).tolist() == [1] * 12


def test_by_hand_one_context_lies_with_the_other_sense():
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0]], dtype=np.float32)
    senses = ("x", "x", "x", "y", "y", "y", "y")
    # The last y is an x by its vector. For each x: 1 - 1/2 against 1/4 - (3 pairs of equal y)/12, so x. For each other
    # y, with x at 0 - 1/2, y is at 2/3 - (1/3)/2.
    assert sense_credits(vectors, senses).tolist() == [1, 1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize("counts", [(6, 6), (4, 9)])
def test_noise_in_many_dimensions_scores_chance(shift, counts):
    """Plain leave-one-out centroids would be near 0 here: a mean of five lies farther away than a mean of six."""
    senses = ("a",) * counts[0] + ("b",) * counts[1]
    values, plain = [], []
    for seed in range(200):
        vectors = random_vectors(seed, len(senses)) + np.float32(shift)
        credits = sense_credits(vectors, senses)
        values.append(np.mean([credits[[s == name for s in senses]].mean() for name in "ab"]))
        plain.append(_plain_accuracy(vectors, senses))
    assert abs(np.mean(values) - 0.5) < 0.03
    if counts == (6, 6):
        assert np.mean(plain) < 0.35


def _plain_accuracy(vectors, senses):
    right = []
    for left_out, sense in enumerate(senses):
        distance = {}
        for name in set(senses):
            rows = [row for row, other in enumerate(senses) if other == name and row != left_out]
            distance[name] = np.linalg.norm(vectors[left_out] - vectors[rows].mean(axis=0))
        right.append(min(distance, key=distance.get) == sense)
    return np.mean(right)


def test_accuracy_is_a_mean_over_senses_and_words():
    credits = {
        "w": Credits(("a", "a", "a", "a", "b"), np.array([1.0, 1, 1, 1, 0])),
        "v": Credits(("a", "b"), np.array([1.0, 1])),
    }
    share = summarize(credits, num_resamples=500, seed=0)
    assert share.value == 0.75
    assert share.low <= 0.75 <= share.high
    assert share.num_items == 7
    assert chance_level([("a", "b"), ("a", "b", "c", "a")]) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_the_interval_covers_what_it_says():
    """Words whose accuracies differ: of 200 samples of 24 words, about 95 % of the intervals hold the true mean."""
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        credits = {}
        for word in range(24):
            chance = generator.beta(4, 2)
            credits[str(word)] = Credits(SIX, (generator.random(12) < chance).astype(np.float64))
        share = summarize(credits, num_resamples=400, seed=0)
        covered += share.low <= 4 / 6 <= share.high
    assert 0.89 <= covered / 200 <= 0.99


def test_all_right_has_no_interval_of_width_zero():
    share = summarize({"w": Credits(SIX, np.ones(12))}, num_resamples=200, seed=0)
    assert (share.value, share.high) == (1, 1)
    assert 0.7 < share.low < 0.8


def test_two_dimensions():
    points = two_dimensions(np.array([[2, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]], dtype=np.float32))
    np.testing.assert_allclose(points, [[2, 0], [-2, 0], [0, 1], [0, -1]], atol=1e-6)
    assert two_dimensions(np.ones((3, 4), dtype=np.float32)).tolist() == [[0, 0]] * 3


class FakeEncoder:
    """Layer 1 separates the senses as far as ``signal`` says; it knows nothing of ``unknown``."""

    family = "bert"
    layers = ("embeddings", "layer_1")
    table = None

    def __init__(self, signal, unknown=()):
        self.signal, self.unknown = signal, unknown

    def word_vectors(self, words, *, batch_size=64):
        rows = [np.full(50, np.nan) if word in self.unknown else np.ones(50) for word in words]
        return (np.array(rows, dtype=np.float32),) * 2

    def span_vectors(self, texts, spans, *, batch_size=64):
        noise = random_vectors(3, len(texts), 50)
        for row, (text, (start, end)) in enumerate(zip(texts, spans, strict=True)):
            noise[row, 0] += self.signal * (len(text) % 2)
            if text[start:end] in self.unknown:
                noise[row] = np.nan
        return noise, noise


def contexts_file(tmp_path, num_words=2, name="own.tsv"):
    rows = [
        f"w{word}\t{'even' if extra % 2 else 'odd'}\tw{word} {'x' * (extra + 40)}\n"
        for word in range(num_words)
        for extra in range(12)
    ]
    path = tmp_path / name
    path.write_text("word\tsense\ttext\n" + "".join(rows), encoding="utf-8")
    return path


def probe(tmp_path, monkeypatch, encoder, **settings):
    monkeypatch.setattr(senses_stage, "load_contextual", lambda folder: encoder)
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    metrics = probe_senses(SenseProbeConfig(num_resamples=200, **settings), encoder=tmp_path, out_dir=out)
    return metrics, json.loads((out / "probe.json").read_text(encoding="utf-8")), out


def own(tmp_path, **more):
    return {"language": "en", "shipped_lists": False, "contexts": (str(contexts_file(tmp_path)),), **more}


@pytest.mark.parametrize(("signal", "said"), [(30.0, "better than guessing"), (0.0, "not separable from guessing")])
def test_the_sentence_follows_the_numbers(tmp_path, monkeypatch, signal, said):
    metrics, report, out = probe(tmp_path, monkeypatch, FakeEncoder(signal), **own(tmp_path))
    assert said in report["sentences"][0]["en"]
    assert f"{100 * metrics['sense_accuracy']:.1f} %" in report["sentences"][0]["en"]
    assert f"{100 * metrics['sense_accuracy']:.1f} %" in report["sentences"][0]["zh"]
    assert metrics["sense_chance"] == 0.5
    assert (metrics["sense_accuracy"] == 1) == (signal > 0)
    assert report["tables"][0]["rows"][0][1] == "50.0 %"
    assert all((out / name).is_file() for name in report["pictures"])
    assert report["pictures"] == ["senses.png", "contexts.png"]


def test_everything_left_out_is_counted(tmp_path, monkeypatch):
    path = contexts_file(tmp_path, 3)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "w9\tonly\tw9 x\n" * 4 + "w0\trare\tw0 x\n" * 2, encoding="utf-8")
    settings = {"language": "en", "shipped_lists": False, "contexts": (str(path),), "max_contexts": 5}
    metrics, _, _ = probe(tmp_path, monkeypatch, FakeEncoder(9.0, unknown=("w1",)), **settings)
    dropped = {name: value for name, value in metrics.items() if "dropped" in name}
    assert dropped == {
        "sense_num_dropped_limit": 6, "sense_num_dropped_rare_sense": 2, "sense_num_dropped_one_sense": 4
    }  # fmt: skip
    assert (metrics["sense_num_contexts"], metrics["sense_num_unknown_contexts"]) == (20, 10)
    assert metrics["sense_num_words"] == 2
    assert sum(dropped.values()) + 20 + 10 == 36 + 4 + 2


def test_an_encoder_that_knows_no_word_gets_no_number(tmp_path, monkeypatch):
    metrics, report, _ = probe(tmp_path, monkeypatch, FakeEncoder(9.0, unknown=("w0", "w1")), **own(tmp_path))
    assert "sense_accuracy" not in metrics
    assert (report["meaningful"], report["pictures"]) == (False, [])
    assert "no vector for any of the words" in report["reason"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 2}, r"layer 2: this encoder has the 2 layers"),
        ({"shipped_lists": False}, "no contexts"),
        ({"picture_words": ("不存在",)}, "picture_words 不存在"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path, monkeypatch, settings, message):
    with pytest.raises(ConfigError, match=message):
        probe(tmp_path, monkeypatch, FakeEncoder(1.0), **settings)


def test_word2vec_is_at_chance_by_construction_on_the_shipped_list(tmp_path):
    source, folder, outs = tmp_path / "source", tmp_path / "vectors", [tmp_path / "one", tmp_path / "two"]
    for path in (source, folder, *outs):
        path.mkdir()
    Segmenter(SegmenterConfig()).save(source)
    words = list("苹果小米杜鹃黄牛包袱病毒窗口菜单")
    vectors = random_vectors(0, len(words), 8)
    save_word_vectors(folder, words, vectors, units="words", oov_policy="characters", source=source)
    config = SenseProbeConfig(num_resamples=200)
    metrics = [probe_senses(config, encoder=folder, out_dir=out) for out in outs]
    assert metrics[0]["sense_accuracy"] == 0.5
    assert metrics[0]["sense_num_words"] == 9  # The eight, and 背书, of which 背 is known.
    assert metrics[0] == metrics[1]
    assert hash_folder(outs[0]) == hash_folder(outs[1])
    assert "chance by construction" in json.loads((outs[0] / "probe.json").read_text())["sentences"][0]["en"]


@pytest.mark.shared_data
@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets beside the checkout are absent")
@pytest.mark.parametrize(
    ("language", "file", "num_words"),
    [("zh", "wsd-zh-hownet/wsd.jsonl", 25), ("en", "wsd-en-senseval/hard_interest.tsv", 2)],
)
def test_public_sets_are_read(tmp_path, monkeypatch, language, file, num_words):
    class Blank(FakeEncoder):
        layers = ("embeddings",)

    settings = {"language": language, "shipped_lists": False, "contexts": (str(DATA / file),), "layer": 0}
    metrics, report, _ = probe(tmp_path, monkeypatch, Blank(0.0), max_contexts=20, **settings)
    assert metrics["sense_num_words"] >= num_words
    assert metrics["sense_accuracy"] == pytest.approx(metrics["sense_chance"], abs=1e-9)
    assert report["meaningful"]
