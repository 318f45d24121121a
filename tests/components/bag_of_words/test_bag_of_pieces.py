from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast

from components.artifacts import hash_folder
from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.stage import fit_bag_of_words
from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.wordpiece import load_wordpiece, save_wordpiece
from components.errors import ArtifactError, ConfigError
from components.examples import Answer, Example, Question, TaggedText, write_examples, write_task
from components.formats import write_json
from components.text.segmentation import SegmenterConfig

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "我",
    "爱",
    "你",
    "谁",
    "?",
    "19",
    "1",
    "9",
    "##9",
    "NLP",
    "nlp",
]
CHARACTERS = SegmenterConfig(segmenter="characters")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return make_tokenizer(tmp_path / "tokenizer")


def make_tokenizer(folder: Path, **settings: bool) -> Path:
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt"), **settings), folder)
    return folder


def make_dataset(folder: Path, task: str, examples: list) -> Path:
    folder.mkdir()
    write_task(folder, task)
    write_examples(folder, "train", examples)
    return folder


def fit(dataset: Path, out_dir: Path, tokenizer: Path | None, **settings):
    out_dir.mkdir()
    config = BagOfWordsConfig(units="words" if tokenizer is None else "pieces", **settings)
    metrics = fit_bag_of_words(config, dataset=dataset, tokenizer=tokenizer, out_dir=out_dir)
    return load_bag_of_words(out_dir), metrics


def texts(*values: str) -> list[Example]:
    return [Example(f"train:{number}", value, "x") for number, value in enumerate(values)]


def test_features_are_pieces_and_pairs_of_pieces(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我爱你", "我爱199"))
    bag, metrics = fit(dataset, tmp_path / "out", tokenizer, weighting="one_hot")
    assert set(bag.features) == {"我", "爱", "你", "19", "##9", "我 爱", "爱 你", "爱 19", "19 ##9"}
    assert bag.settings.units == "pieces"
    assert metrics["num_features"] == 9
    row = bag.transform(["你爱你我爱"]).toarray()[0]
    found = {feature for feature, value in zip(bag.features, row, strict=True) if value}
    assert found == {"你", "爱", "我", "爱 你", "我 爱"}


def test_idf_counts_documents_by_hand(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我爱你", "我爱", "我"))
    bag, _ = fit(dataset, tmp_path / "out", tokenizer)
    idf = dict(zip(bag.features, bag.idf.tolist(), strict=True))
    expected = {
        "我": 1.0,
        "爱": np.log(4 / 3) + 1,
        "我 爱": np.log(4 / 3) + 1,
        "你": np.log(2) + 1,
        "爱 你": np.log(2) + 1,
    }
    assert idf == pytest.approx(expected, abs=1e-6)


def test_passages_count_once_and_questions_each(tmp_path, tokenizer):
    rows = [
        Question("a", "我爱你", "谁爱?", (Answer("我", 0),)),
        Question("b", "我爱你", "我爱谁?", ()),
        Question("c", "你", "谁?", ()),
    ]
    dataset = make_dataset(tmp_path / "dataset", "question_answering", rows)
    bag, metrics = fit(dataset, tmp_path / "out", tokenizer, ngram_range=(1, 1))
    idf = dict(zip(bag.features, bag.idf.tolist(), strict=True))
    # Five texts: two passages, three questions.
    counts = {"我": 2, "爱": 3, "你": 2, "谁": 3, "?": 3}
    assert idf == pytest.approx({piece: np.log(6 / (1 + n)) + 1 for piece, n in counts.items()}, abs=1e-6)
    assert metrics["num_train_examples"] == 3


def test_tagged_texts_are_cut_token_by_token(tmp_path, tokenizer):
    rows = [TaggedText("a", "我199", ((0, 1), (1, 2), (2, 3), (3, 4)), ("O",) * 4)]
    dataset = make_dataset(tmp_path / "dataset", "ner", rows)
    bag, _ = fit(dataset, tmp_path / "out", tokenizer)
    assert set(bag.features) == {"我", "1", "9", "我 1", "1 9", "9 9"}


def test_the_budget_is_drawn_from_any_task(tmp_path, tokenizer):
    rows = [Question(f"q{number}", f"{number}我", "谁?", ()) for number in range(20)]
    dataset = make_dataset(tmp_path / "dataset", "question_answering", rows)
    _, metrics = fit(dataset, tmp_path / "out", tokenizer, num_train_examples=5, seed=1)
    assert metrics["num_train_examples"] == 5


def test_original_texts_go_through_the_recipe(tmp_path, tokenizer):
    rows = [Question("a", "ＮＬＰ\u200b我", "谁?", ())]
    dataset = make_dataset(tmp_path / "dataset", "question_answering", rows)
    pieces, _ = fit(dataset, tmp_path / "pieces", tokenizer, ngram_range=(1, 1))
    words, _ = fit(dataset, tmp_path / "words", None, segmenter=CHARACTERS)
    assert set(pieces.features) == {"nlp", "我", "谁", "?"}
    assert "ｎ" not in "".join(words.features)
    assert "我" in words.features
    write_json(dataset / "normalization.json", {"nfkc": False, "remove_invisible": True})
    kept, _ = fit(dataset, tmp_path / "kept", tokenizer, ngram_range=(1, 1))
    assert "nlp" not in kept.features


def test_pairs_of_texts_count_both(tmp_path):
    rows = [Example("a", "我", "x", text_pair="爱"), Example("b", "我", "y", text_pair="你")]
    dataset = make_dataset(tmp_path / "dataset", "classification", rows)
    bag, _ = fit(dataset, tmp_path / "out", None, segmenter=CHARACTERS)
    assert bag.features == ("你", "我", "爱")
    assert bag.idf.tolist() == pytest.approx([np.log(5 / 2) + 1, np.log(5 / 3) + 1, np.log(5 / 2) + 1], abs=1e-6)


def test_the_tokenizer_alone_decides_on_case(tmp_path):
    cased = make_tokenizer(tmp_path / "cased", do_lower_case=False)
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("NLP nlp"))
    bag, _ = fit(dataset, tmp_path / "out", cased, ngram_range=(1, 1))
    assert bag.features == ("NLP", "nlp")
    assert bag.transform(["NLP"]).nnz == 1


def test_unknown_characters_are_one_feature(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我㐂", "㐃"))
    bag, _ = fit(dataset, tmp_path / "out", tokenizer, ngram_range=(1, 1))
    assert bag.features == ("[UNK]", "我")
    assert bag.transform(["龘"]).nnz == 1


def test_the_artifact_carries_the_tokenizer_in_place_of_a_segmenter(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我爱你"))
    for name in ("a", "b"):
        fit(dataset, tmp_path / name, tokenizer)
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"encoder.json", "vocabulary.json", "weights.npz", "tokenizer.json", "vocab.txt"} <= names
    assert "segmenter.json" not in names
    assert load_wordpiece(tmp_path / "a").get_vocab() == load_wordpiece(tokenizer).get_vocab()
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")


def test_ngram_range_depends_on_the_units_until_it_is_given():
    assert BagOfWordsConfig().unit_ngram_range == (1, 1)
    assert BagOfWordsConfig(units="pieces").unit_ngram_range == (1, 2)
    assert BagOfWordsConfig(units="pieces", ngram_range=(1, 1)).unit_ngram_range == (1, 1)


def test_inputs_and_settings_that_do_not_fit_are_refused(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我爱你"))
    with pytest.raises(ConfigError, match="needs the input tokenizer"):
        fit_bag_of_words(BagOfWordsConfig(units="pieces"), dataset=dataset, out_dir=tmp_path)
    with pytest.raises(ConfigError, match="reads no tokenizer"):
        fit_bag_of_words(BagOfWordsConfig(), dataset=dataset, tokenizer=tokenizer, out_dir=tmp_path)
    with pytest.raises(ValueError, match="analyzer='char'"):
        BagOfWordsConfig(units="pieces", analyzer="char")


def test_a_folder_that_is_no_data_set_is_refused(tmp_path, tokenizer):
    dataset = make_dataset(tmp_path / "dataset", "classification", texts("我爱你"))
    (dataset / "task.json").unlink()
    with pytest.raises(ArtifactError, match=r"no task\.json"):
        fit(dataset, tmp_path / "out", tokenizer)
