from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.artifacts import hash_folder
from components.encoders.bag_of_words import BagOfWords, FeatureSettings, save_bag_of_words
from components.encoders.static import save_word_vectors
from components.errors import ConfigError
from components.probes.meaning_config import SimilarityProbeConfig
from components.probes.memory import memory_growth
from components.probes.similarity import (
    analogy_credits,
    correlate,
    cosines,
    nearest,
    orthogonality,
    triple_credits,
)
from components.probes.similarity_stage import probe_similarity
from components.text.segmentation import Segmenter, SegmenterConfig

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def rows(*values):
    return np.array(values, dtype=np.float32)


def test_correlation_by_hand():
    scores = np.arange(12.0)
    found = correlate(scores / 20, scores)
    assert found.value == pytest.approx(1)
    swapped = scores / 20
    swapped[[0, 11]] = swapped[[11, 0]]
    found = correlate(np.append(swapped, np.nan), np.append(scores, 5))
    # 1 - 6 Σd²/(n(n²-1)) with two differences of 11 ranks.
    assert found.value == pytest.approx(1 - 6 * 2 * 121 / (12 * 143))
    assert found.low < found.value < found.high
    assert (found.num_items, found.num_pairs) == (12, 13)


def test_no_ranking_is_no_number():
    scores = np.arange(12.0)
    assert correlate(np.zeros(12), scores) is None
    assert correlate(np.full(12, 0.3) + 1e-9 * scores, scores) is None
    assert correlate(scores[:9], scores[:9]) is None
    assert correlate(scores, np.ones(12)) is None


def test_the_interval_of_the_correlation_covers_what_it_says():
    """Bonett & Wright's interval on 60 pairs of normal numbers correlated 0.5, whose Spearman correlation is 0.483."""
    generator = np.random.default_rng(0)
    true = 6 / np.pi * np.arcsin(0.25)
    covered = 0
    for _ in range(500):
        first = generator.normal(size=60)
        second = 0.5 * first + np.sqrt(0.75) * generator.normal(size=60)
        found = correlate(first, second)
        covered += found.low <= true <= found.high
    assert 0.92 <= covered / 500 <= 0.98


def test_cosines_and_triples():
    one, unknown = rows([1, 0]), rows([np.nan, np.nan])
    assert cosines(rows([2, 0], [1, 1]), rows([3, 0], [0, 5])).tolist() == pytest.approx([1, 0.5**0.5])
    assert triple_credits(one, rows([1, 1]), rows([0, 1])).tolist() == [1]
    assert triple_credits(one, rows([0, 1]), rows([1, 1])).tolist() == [0]
    assert triple_credits(one, rows([0, 1]), rows([0, -7])).tolist() == [0.5]
    assert np.isnan(triple_credits(one, unknown, one)).all()


def test_analogies_by_hand():
    # king - man + woman = queen on two axes: royal and female.
    vectors = rows([0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1], [-1, -1, 0])
    question = np.array([[0, 2, 1, 3]])
    assert analogy_credits(vectors, question).tolist() == [1]
    assert analogy_credits(vectors, np.array([[0, 2, 1, 4]])).tolist() == [0]


def test_words_of_the_question_are_no_candidates():
    vectors = rows([1, 0], [1, 0.01], [1, 0.02], [0, 1])
    assert analogy_credits(vectors, np.array([[0, 1, 2, 3]])).tolist() == [1]


def test_one_hot_analogies_are_exactly_chance():
    vectors = np.eye(10, dtype=np.float32)
    for offset in (True, False):
        assert analogy_credits(vectors, np.array([[0, 1, 2, 3], [4, 5, 6, 9]]), offset=offset) == pytest.approx(1 / 7)


def test_neighbours_leave_the_word_itself_out():
    found = nearest(rows([1, 0], [0, 1], [1, 0.1], [1, 1]), [0], 2)
    assert [row for row, _ in found[0]] == [2, 3]
    assert found[0][1][1] == pytest.approx(0.7071)


def test_orthogonality():
    found = orthogonality(np.eye(5, dtype=np.float32))
    assert (found.share_orthogonal, found.mean_cosine, found.max_cosine) == (1, 0, 0)
    found = orthogonality(rows([1, 0], [0, 1], [1, 1]))
    assert found.share_orthogonal == pytest.approx(1 / 3)
    assert orthogonality(rows([1, 0])) is None


def test_memory_of_one_hot_vectors_grows_with_the_square():
    sizes = memory_growth(2000, np.zeros((2000, 10), dtype=np.float32))
    assert [item.num_words for item in sizes] == [500, 1000, 2000]
    assert [item.one_hot_dense for item in sizes] == [4 * 500**2, 4 * 1000**2, 4 * 2000**2]
    assert np.eye(500, dtype=np.float32).nbytes == sizes[0].one_hot_dense
    assert sizes[2].learned == 2 * sizes[1].learned == 2000 * 10 * 4
    assert 1.9 < sizes[2].one_hot_sparse / sizes[1].one_hot_sparse < 2.1
    assert memory_growth(10, None)[0].learned is None


def grid_words():
    """Words on two axes: kind (in three groups) and number."""
    return [f"{kind}{number}" for kind in "abc" for number in range(5)]


def vectors_folder(tmp_path, words, vectors, language="en"):
    source, folder = tmp_path / "source", tmp_path / "vectors"
    source.mkdir()
    folder.mkdir()
    Segmenter(SegmenterConfig(language=language)).save(source)
    save_word_vectors(folder, words, vectors, units="words", oov_policy="skip", source=source)
    return folder


def grid_folder(tmp_path, noise):
    kind = np.repeat(np.eye(3), 5, axis=0)
    number = np.tile(0.3 * np.eye(5), (3, 1))
    random = np.random.default_rng(0).normal(size=(15, 60))
    vectors = np.hstack([(1 - noise) * np.hstack([kind, number]), 0.01 * random + noise * random]).astype(np.float32)
    return vectors_folder(tmp_path, grid_words(), vectors)


def lists(tmp_path):
    words = grid_words()
    pairs = [(one, other) for row, one in enumerate(words) for other in words[row + 1 :]]
    files = {
        "word_pairs": "".join(f"{one}\t{other}\t{int(one[0] == other[0])}\n" for one, other in pairs) + "a0\tzz\t1\n",
        "triples": "".join(f"{one}0\t{one}1\t{other}1\n" for one in "abc" for other in "abc" if one != other),
        "analogies": ": grid\n" + "".join(f"a{n} b{n} a{m} b{m}\n" for n in range(5) for m in range(5) if n != m),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return {"language": "en", "shipped_lists": False} | {name: (str(tmp_path / f"{name}.txt"),) for name in files}


def probe(tmp_path, folder, name="out", **settings):
    out = tmp_path / name
    out.mkdir()
    metrics = probe_similarity(SimilarityProbeConfig(**settings), encoder=folder, out_dir=out)
    return metrics, json.loads((out / "probe.json").read_text(encoding="utf-8")), out


def test_planted_similarity_is_found(tmp_path):
    metrics, report, out = probe(tmp_path, grid_folder(tmp_path, 0.0), **lists(tmp_path))
    assert metrics["similarity_spearman_low"] > 0.5
    assert metrics["similarity_triple_accuracy"] == 1
    assert metrics["similarity_analogy_accuracy"] == metrics["similarity_analogy_vocabulary_accuracy"] == 1
    assert metrics["similarity_analogy_chance"] == pytest.approx(1 / 7)
    assert metrics["similarity_analogy_vocabulary_chance"] == pytest.approx(1 / 12)
    assert (metrics["similarity_num_words"], metrics["similarity_num_unknown_words"]) == (16, 1)
    assert report["tables"][0]["rows"][0][-1] == "105 / 106"
    said = " ".join(sentence["en"] for sentence in report["sentences"])
    assert "above chance" in said
    assert "not separable" not in said
    assert all((out / name).is_file() for name in report["pictures"])


def test_noise_is_not_separable_from_chance(tmp_path):
    metrics, report, _ = probe(tmp_path, grid_folder(tmp_path, 1.0), **lists(tmp_path))
    assert metrics["similarity_spearman_low"] < 0 < metrics["similarity_spearman_high"]
    assert metrics["similarity_analogy_accuracy"] < 0.5
    assert "not separable from chance" in report["sentences"][2]["en"]
    assert report["sentences"][2]["zh"].endswith("与随机水平没有可分辨的差别。")


def test_one_hot_words_are_orthogonal_and_rank_nothing(tmp_path):
    folder = tmp_path / "bag"
    folder.mkdir()
    settings = FeatureSettings("one_hot", "word", (1, 1), (1, 1), False, True)
    words = ("苹果", "香蕉", "手机", "医生", "护士", "司机", "猫", "狗", "父亲", "母亲", "医院", "北京", "上海")
    save_bag_of_words(BagOfWords(words, None, settings, Segmenter(SegmenterConfig())), folder)
    metrics, report, _ = probe(tmp_path, folder)
    assert metrics["similarity_orthogonal_share"] == 1
    assert metrics["similarity_triple_accuracy"] == 0.5
    assert "similarity_spearman" not in metrics
    assert "right angles to each other" in report["sentences"][0]["en"]
    assert any("no ranking" in sentence["en"] for sentence in report["sentences"])
    assert report["pictures"] == ["memory.png"]


def test_an_encoder_of_another_language_gets_no_number(tmp_path):
    folder = grid_folder(tmp_path, 0.0)
    metrics, report, _ = probe(tmp_path, folder, language="zh")
    assert "similarity_spearman" not in metrics
    assert metrics["similarity_num_unknown_words"] == metrics["similarity_num_words"]
    assert (report["meaningful"], report["tables"]) == (False, [])
    assert "不足 10 个" in report["reason"]


def test_the_same_call_writes_the_same_bytes(tmp_path):
    folder, settings = grid_folder(tmp_path, 0.5), lists(tmp_path)
    first, second = (probe(tmp_path, folder, name, **settings)[2] for name in ("one", "two"))
    assert hash_folder(first) == hash_folder(second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"layer": 1}, r"layer 1: this encoder has the 1 layers"), ({"shipped_lists": False}, "no word lists")],
)
def test_settings_that_cannot_work_are_refused(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        probe(tmp_path, grid_folder(tmp_path, 0.0), **settings)


def test_files_of_one_name_are_refused(tmp_path):
    file = lists(tmp_path)["word_pairs"][0]
    with pytest.raises(ConfigError, match="two files have one name"):
        probe(tmp_path, grid_folder(tmp_path, 0.0), word_pairs=(file, file))


def test_external_files_are_named():
    config = SimilarityProbeConfig(word_pairs=("a.tsv",), analogies=("b.txt",), triples=("c.tsv",))
    assert config.external_files() == [Path("a.tsv"), Path("b.txt"), Path("c.tsv")]


@pytest.mark.shared_data
@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets beside the checkout are absent")
def test_public_sets_are_read(tmp_path):
    files = {
        "word_pairs": (str(DATA / "wordsim-zh/wordsim-240.tsv"), str(DATA / "wordsim-zh/wordsim-297.tsv")),
        "analogies": (str(DATA / "analogy-zh-ca-translated/ca_translated.txt"),),
    }
    words = sorted({cell for line in (DATA / "wordsim-zh/wordsim-240.tsv").read_text().split("\n")
                    for cell in line.strip().split("\t")[:2] if cell})  # fmt: skip
    vectors = np.random.default_rng(0).normal(size=(len(words), 20)).astype(np.float32)
    folder = vectors_folder(tmp_path, words, vectors, "zh")
    metrics, report, _ = probe(tmp_path, folder, shipped_lists=False, **files)
    assert report["tables"][0]["rows"][0][-1].endswith("/ 240")
    assert report["tables"][0]["rows"][1][-1].endswith("/ 297")
    assert abs(metrics["similarity_spearman"]) < 0.3
