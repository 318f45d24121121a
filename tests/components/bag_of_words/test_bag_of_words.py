from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from components.artifacts import hash_folder
from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.stage import fit_bag_of_words
from components.encoders.bag_of_words import load_bag_of_words
from components.errors import ArtifactError, InputError
from components.examples import Example, select_examples, write_examples, write_task
from components.formats import read_json, write_json
from components.text.segmentation import Segmenter, SegmenterConfig

TEXTS = ["我 爱 你", "天 冷", "今天很冷。", "我爱读书，读书使我快乐", "Good 天气 good Day"]
CHARACTERS = SegmenterConfig(segmenter="characters")


@pytest.fixture
def dataset(tmp_path):
    return make_dataset(tmp_path / "dataset", TEXTS)


def make_dataset(folder, texts):
    folder.mkdir()
    write_task(folder, "classification")
    for split in ("train", "validation", "test"):
        rows = texts if split == "train" else ["只在别处出现的罕见词"]
        write_examples(folder, split, [Example(f"{split}.csv:{n}", text, "pos") for n, text in enumerate(rows, 2)])
    return folder


def fit(dataset, out_dir, **settings):
    out_dir.mkdir()
    metrics = fit_bag_of_words(BagOfWordsConfig(**settings), dataset=dataset, out_dir=out_dir)
    return load_bag_of_words(out_dir), metrics


def test_one_hot_marks_presence_exactly(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["好好看", "看书"])
    bag, metrics = fit(dataset, tmp_path / "out", weighting="one_hot", segmenter=CHARACTERS)
    assert bag.features == ("书", "好", "看")
    assert bag.transform(["好好看", "书", "没有"]).toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert bag.num_parameters == 0
    assert metrics["num_features"] == 3
    assert metrics["mean_features_per_text"] == 2


def test_tfidf_equals_the_formula(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["好好看", "看书"])
    bag, _ = fit(dataset, tmp_path / "out", sublinear_tf=False, segmenter=CHARACTERS)
    rare = np.log(3 / 2) + 1
    expected = np.array([0, 2 * rare, 1.0])
    assert bag.transform(["好好看"]).toarray()[0] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert bag.num_parameters == 3


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
@pytest.mark.parametrize("weighting", ["one_hot", "tfidf"])
def test_reloaded_transform_equals_scikit_learn(dataset, tmp_path, analyzer, weighting):
    bag, _ = fit(
        dataset, tmp_path / "out", analyzer=analyzer, weighting=weighting, ngram_range=(1, 2), char_ngram_range=(1, 3)
    )
    segment = Segmenter(SegmenterConfig()).segment
    words = {"tokenizer": segment, "token_pattern": None, "ngram_range": (1, 2)}
    reference = TfidfVectorizer(
        analyzer=analyzer,
        dtype=np.float32,
        **(words if analyzer == "word" else {"ngram_range": (1, 3)}),
        **({"binary": True, "use_idf": False, "norm": None} if weighting == "one_hot" else {"sublinear_tf": True}),
    ).fit(TEXTS)
    texts = [*TEXTS, "我今天读书", "", "全新文本 GOOD"]
    assert list(bag.features) == list(reference.get_feature_names_out())
    found, expected = bag.transform(texts), reference.transform(texts)
    assert found.dtype == np.float32
    assert (found != expected).nnz == 0
    assert found.nnz == expected.nnz > 0


def test_word_char_keeps_words_and_characters_apart(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["我爱读书"])
    bag, _ = fit(dataset, tmp_path / "out", analyzer="word_char", char_ngram_range=(1, 1))
    assert set(bag.features) == {"word:我", "word:爱", "word:读书", "char:我", "char:爱", "char:读", "char:书"}


def test_text_07_single_characters_are_words(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["我 爱 你", "天 冷"])
    bag, metrics = fit(dataset, tmp_path / "out")
    assert sorted(bag.features) == sorted("我爱你天冷")
    assert metrics["num_texts_without_features"] == 0


def test_text_07_a_clause_is_not_one_feature(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["我爱你", "今天很冷。"])
    bag, _ = fit(dataset, tmp_path / "out")
    assert {"今天", "很", "冷"} <= set(bag.features)
    assert "今天很冷" not in bag.features


def test_text_07_feature_samples_are_reported(dataset, tmp_path):
    _, metrics = fit(dataset, tmp_path / "out")
    samples = read_json(tmp_path / "out" / "feature_samples.json")
    assert samples["most_texts"][0] == {"feature": "冷", "num_texts": 2}
    assert len(samples["fewest_texts"]) == min(20, metrics["num_features"])


def test_text_07_empty_vocabulary_names_stage_and_setting(dataset, tmp_path):
    with pytest.raises(
        InputError, match=r"fit_bag_of_words .*analyzer='word' and min_count=9 keep 0 of 15 .* is 2"
    ) as error:
        fit(dataset, tmp_path / "out", min_count=9)
    assert "lower min_count to 2" in str(error.value)
    assert str(dataset / "train.jsonl") in str(error.value)


def test_text_07_no_feature_at_all(tmp_path):
    dataset = make_dataset(tmp_path / "dataset", ["  ", "\u3000"])
    with pytest.raises(InputError, match="keep 0 of 0 features from 2 training texts"):
        fit(dataset, tmp_path / "out")


def test_missing_or_empty_training_split_is_refused(tmp_path):
    with pytest.raises(InputError, match="no labelled training text"):
        fit(tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="no labelled training text"):
        fit(make_dataset(tmp_path / "empty", []), tmp_path / "out2")


def test_vocabulary_comes_from_the_labelled_budget_alone(tmp_path):
    texts = [f"字{chr(0x4E00 + n)}" for n in range(40)]
    dataset = make_dataset(tmp_path / "dataset", texts)
    examples = [Example(f"train.csv:{n}", text, "pos") for n, text in enumerate(texts, 2)]
    chosen = {example.text[1] for example in select_examples(examples, 7, 3)}
    bag, metrics = fit(dataset, tmp_path / "out", num_train_examples=7, seed=3, segmenter=CHARACTERS)
    assert set(bag.features) == {"字", *chosen}
    assert metrics["num_train_examples"] == 7


def test_max_features_counts_what_it_drops(dataset, tmp_path):
    _, everything = fit(dataset, tmp_path / "all")
    bag, metrics = fit(dataset, tmp_path / "few", max_features=4)
    assert len(bag.features) == 4
    assert metrics["num_features"] + metrics["num_dropped_features"] == everything["num_features"]


def test_same_input_gives_the_same_bytes(dataset, tmp_path):
    fit(dataset, tmp_path / "a", analyzer="word_char")
    fit(dataset, tmp_path / "b", analyzer="word_char")
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")


def test_files_hold_no_pickle_and_open_without_this_code(dataset, tmp_path):
    bag, _ = fit(dataset, tmp_path / "out")
    with np.load(tmp_path / "out" / "weights.npz", allow_pickle=False) as arrays:
        assert arrays["idf"].shape == (len(bag.features),)
    assert json.loads((tmp_path / "out" / "vocabulary.json").read_text(encoding="utf-8")) == list(bag.features)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "encoder.json", "feature_samples.json", "segmenter.json", "vocabulary.json", "weights.npz",
    ]  # fmt: skip


def test_damaged_encoder_is_refused(dataset, tmp_path):
    fit(dataset, tmp_path / "out")
    write_json(tmp_path / "out" / "vocabulary.json", ["我"])
    with pytest.raises(ArtifactError, match="damaged"):
        load_bag_of_words(tmp_path / "out")


def test_weights_with_a_pickle_are_refused(dataset, tmp_path):
    fit(dataset, tmp_path / "out")
    np.savez(tmp_path / "out" / "weights.npz", idf=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ArtifactError, match="no readable weights"):
        load_bag_of_words(tmp_path / "out")


def test_ngram_range_must_rise():
    with pytest.raises(ValueError, match=r"ngram_range is \(3, 1\)"):
        BagOfWordsConfig(ngram_range=(3, 1))
    assert BagOfWordsConfig.model_validate({"ngram_range": [1, 2]}).ngram_range == (1, 2)
