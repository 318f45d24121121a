from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from components.artifacts import digest_file, hash_folder
from components.encoders.static import load_word_vectors
from components.errors import ConfigError, InputError, TrainingError
from components.formats import Document, SegmentedDocument, ShardWriter, read_json, write_json, write_jsonl
from components.text.segmentation import Segmenter, SegmenterConfig
from components.vectors import read_vectors
from components.word2vec.config import Word2VecConfig
from components.word2vec.data import Sentences, oov_rate, take_census
from components.word2vec.held_out import HeldOutLoss
from components.word2vec.model import check_memory, select_vocabulary
from components.word2vec.neighbours import frequent_words, nearest_neighbours
from components.word2vec.stage import train_word2vec

REPOSITORY = Path(__file__).parents[3]
SMALL = {"vector_size": 8, "min_count": 1, "epochs": 2, "window": 2, "sample": 0.0}


def write_segmented(folder, train, validation=()):
    folder.mkdir()
    for split, sentences in (("train", train), ("validation", validation)):
        writer = ShardWriter(folder, split, shard_documents=3)
        for number, words in enumerate(sentences):
            writer.write(SegmentedDocument(f"text.txt:{number}", (tuple(words),)))
        writer.close()
    Segmenter(SegmenterConfig()).save(folder)
    return folder


@pytest.fixture
def segmented(tmp_path):
    generator = np.random.default_rng(0)
    words = [f"词{chr(0x4E00 + n)}" for n in range(30)]
    sentences = [[words[n] for n in generator.zipf(1.5, size=12) % 30] for _ in range(60)]
    return write_segmented(tmp_path / "segmented", sentences, [[*sentences[0], "未见"], ["未见"]])


def train(segmented, out_dir, *, log_metrics=lambda metrics, *, step=None: None, **settings):
    out_dir.mkdir()
    config = Word2VecConfig(**{**SMALL, **settings})
    return train_word2vec(config, segmented=segmented, out_dir=out_dir, log_metrics=log_metrics)


def test_artifact_and_metrics(segmented, tmp_path):
    steps = []
    metrics = train(
        segmented,
        tmp_path / "out",
        epochs=3,
        log_metrics=lambda metrics, *, step=None: steps.append((step, dict(metrics))),
    )
    words, vectors = read_vectors(tmp_path / "out" / "vectors.txt")
    counts = Counter(word for words in Sentences(segmented) for word in words)
    assert words == sorted(counts, key=lambda word: (-counts[word], word))
    assert vectors.shape == (metrics["vocab_size"], 8)
    assert metrics["num_words"] == 720
    assert metrics["num_sentences"] == 60
    assert metrics["reproducible"] == 1
    assert metrics["words_per_second"] > 0
    assert [step for step, _ in steps] == [1, 2, 3]
    assert steps[-1][1]["progress"] == 1
    assert all(np.isfinite(list(values.values())).all() for _, values in steps)
    assert all(isinstance(value, float) and np.isfinite(value) for value in metrics.values())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "encoder.json", "neighbours.json", "segmenter.json", "vectors.txt",
    ]  # fmt: skip
    assert load_word_vectors(tmp_path / "out").transform([words[0]]).shape == (1, 8)


def test_every_setting_reaches_gensim(segmented, tmp_path, monkeypatch):
    from components.word2vec import model as module

    seen = {}
    original = module.Word2Vec

    def spy(**options):
        seen.update(options)
        return original(**options)

    monkeypatch.setattr(module, "Word2Vec", spy)
    settings = {
        "sg": 0, "vector_size": 7, "window": 3, "negative": 4, "ns_exponent": 0.6, "sample": 0.01, "alpha": 0.03,
        "min_alpha": 0.002, "seed": 11, "workers": 1,
    }  # fmt: skip
    train(segmented, tmp_path / "out", **settings)
    assert settings.items() <= seen.items()


@pytest.mark.parametrize(("sg", "alpha"), [(0, 0.05), (1, 0.025)])
def test_first_learning_rate_follows_the_architecture(segmented, tmp_path, monkeypatch, sg, alpha):
    from components.word2vec import model as module

    rates = []
    original = module.Word2Vec
    monkeypatch.setattr(module, "Word2Vec", lambda **options: rates.append(options["alpha"]) or original(**options))
    train(segmented, tmp_path / "out", sg=sg)
    assert rates == [alpha]


def test_diverging_vectors_end_the_run(segmented, tmp_path, monkeypatch):
    monkeypatch.setattr(HeldOutLoss, "of", lambda *arguments: float("nan"))
    with pytest.raises(TrainingError, match=r"held-out loss is nan after epoch 1\. Remedy: lower alpha"):
        train(segmented, tmp_path / "out", log_metrics=lambda metrics, *, step=None: pytest.fail("logged"))


def test_cbow_and_skip_gram_differ(segmented, tmp_path):
    train(segmented, tmp_path / "cbow", sg=0)
    train(segmented, tmp_path / "skipgram", sg=1)
    cbow, skipgram = (read_vectors(tmp_path / name / "vectors.txt") for name in ("cbow", "skipgram"))
    assert cbow[0] == skipgram[0]
    assert np.abs(cbow[1] - skipgram[1]).max() > 1e-4


def test_another_seed_gives_other_vectors(segmented, tmp_path):
    train(segmented, tmp_path / "a", seed=1)
    train(segmented, tmp_path / "b", seed=2)
    assert digest_file(tmp_path / "a" / "vectors.txt") != digest_file(tmp_path / "b" / "vectors.txt")


def test_words_of_one_topic_become_neighbours(tmp_path):
    generator = np.random.default_rng(1)
    topics = [["苹果", "香蕉", "橘子", "葡萄"], ["汽车", "火车", "飞机", "轮船"]]
    sentences = [list(generator.permutation(topics[n % 2])) * 2 for n in range(400)]
    segmented = write_segmented(tmp_path / "segmented", sentences, sentences[:40])
    losses = []
    metrics = train(
        segmented, tmp_path / "out", epochs=8, alpha=0.05,
        log_metrics=lambda metrics, *, step=None: losses.append(metrics["val_loss"]),
    )  # fmt: skip
    neighbours = read_json(tmp_path / "out" / "neighbours.json")
    assert {entry["word"] for entry in neighbours["苹果"][:3]} == set(topics[0]) - {"苹果"}
    assert losses[-1] < losses[0] < 6 * np.log(2)
    assert metrics["val_loss"] == losses[-1]


# --- fault cases -----------------------------------------------------------------------------------------------------


def test_w2v_01_empty_vocabulary_names_the_highest_count(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", [["a", "b"], ["c", "b"]])
    with pytest.raises(InputError, match=r"min_count=5 keeps 0 of 3 types; the highest count is 2 \('b'\)") as error:
        train(segmented, tmp_path / "out", min_count=5)
    assert error.value.file == str(segmented)
    assert not list((tmp_path / "out").iterdir())


def test_w2v_01_no_text_at_all(tmp_path):
    with pytest.raises(InputError, match="keeps 0 of 0 types"):
        train(write_segmented(tmp_path / "blank", [[]]), tmp_path / "out")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no train"):
        train(tmp_path / "none", tmp_path / "out2")


def test_w2v_02_strings_instead_of_lists_of_words(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", [])
    rows = [{"id": "a:1", "sentences": [["好"]]}, {"id": "a:2", "sentences": ["hello world"]}]
    write_jsonl(segmented / "train-00000.jsonl", rows)
    with pytest.raises(InputError, match=r"train-00000.jsonl:2: sentence 'hello world' is str, not a list of words"):
        train(segmented, tmp_path / "out")


@pytest.mark.parametrize("word", ["New York", "", "两\u3000半", 7])
def test_w2v_02_words_that_cannot_be_stored_are_named_before_training(tmp_path, word):
    segmented = write_segmented(tmp_path / "segmented", [])
    write_jsonl(segmented / "train-00000.jsonl", [{"id": "a:1", "sentences": [["好", word]]}])
    with pytest.raises(InputError, match=r"train-00000.jsonl:1: word"):
        train(segmented, tmp_path / "out")


TRAIN_ALONE = """
import sys
from pathlib import Path
from components.word2vec.config import Word2VecConfig
from components.word2vec.stage import train_word2vec
segmented, out_dir, sg = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
out_dir.mkdir()
config = Word2VecConfig(sg=sg, vector_size=8, min_count=1, epochs=2, window=2)
train_word2vec(config, segmented=segmented, out_dir=out_dir)
"""


def test_w2v_03_same_bytes_in_fresh_processes_with_any_hash_seed(segmented, tmp_path):
    for name, hash_seed in (("one", "1"), ("two", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", TRAIN_ALONE, str(segmented), str(tmp_path / name), "1"]
        subprocess.run(command, env=environment, check=True, cwd=REPOSITORY)
    assert hash_folder(tmp_path / "one") == hash_folder(tmp_path / "two")


def test_w2v_03_several_workers_are_marked_not_reproducible(segmented, tmp_path):
    assert train(segmented, tmp_path / "one", workers=1)["reproducible"] == 1
    assert train(segmented, tmp_path / "two", workers=2)["reproducible"] == 0


def test_w2v_04_oov_rate_is_reported_per_split(segmented, tmp_path):
    metrics = train(segmented, tmp_path / "out", min_count=20)
    counts = Counter(word for words in Sentences(segmented) for word in words)
    rare = sum(count for count in counts.values() if count < 20)
    assert 0 < metrics["oov_rate_train"] == pytest.approx(rare / 720)
    assert metrics["num_dropped_words"] == rare
    assert metrics["num_types"] == metrics["vocab_size"] + metrics["num_dropped_types"]
    held_out = [word for words in Sentences(segmented, "validation") for word in words]
    unknown = sum(counts[word] < 20 for word in held_out)
    assert metrics["oov_rate_validation"] == pytest.approx(unknown / len(held_out))
    assert unknown >= 2


def test_w2v_04_a_split_without_words_has_no_rate(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", [["好", "坏"]])
    assert oov_rate(segmented, "validation", {"好": 1}) is None
    metrics = train(segmented, tmp_path / "out")
    assert "oov_rate_validation" not in metrics
    assert "val_loss" not in metrics
    assert metrics["oov_rate_train"] == 0


def test_w2v_05_written_vectors_are_the_trained_ones(segmented, tmp_path):
    metrics = train(segmented, tmp_path / "out", vector_size=5)
    lines = (tmp_path / "out" / "vectors.txt").read_text(encoding="utf-8").split("\n")
    assert lines[0] == f"{int(metrics['vocab_size'])} 5"
    assert len(lines) == metrics["vocab_size"] + 2
    assert {len(line.split(" ")) for line in lines[1:-1]} == {6}


def test_w2v_06_corpus_file_is_not_offered():
    assert "corpus_file" not in Word2VecConfig.model_fields
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Word2VecConfig.model_validate({"corpus_file": "text.txt"})


def test_w2v_06_no_word_is_lost_between_iterations(tmp_path):
    words = [chr(0x4E00 + n % 20_000) for n in range(23_456)]
    segmented = write_segmented(tmp_path / "segmented", [words, [], ["好"]])
    census = take_census(segmented)
    sentences = Sentences(segmented)
    assert [len(part) for part in sentences] == [10_000, 10_000, 3_456, 1]
    assert [word for part in sentences for word in part] == [*words, "好"]
    assert (census.num_sentences, census.num_cut_sentences, census.num_empty_sentences) == (4, 1, 1)
    assert census.counts == Counter([*words, "好"])
    assert census.num_words == 23_457


def test_w2v_07_memory_is_estimated_before_training():
    assert check_memory(1_000_000, 100, 2048) == pytest.approx(1_000_000 * 100 * 4 * 2 / 2**20)
    with pytest.raises(ConfigError, match=r"about 38,147 MiB for 1,000,000 types x vector_size 5000 .* is 2,048"):
        check_memory(1_000_000, 5000, 2048)


def test_w2v_07_too_large_tables_are_refused_before_gensim_allocates(segmented, tmp_path, monkeypatch):
    from components.word2vec import model as module

    monkeypatch.setattr(module, "Word2Vec", lambda **options: pytest.fail("allocated"))
    with pytest.raises(ConfigError, match="raise min_count, lower vector_size, or raise max_memory_mib"):
        train(segmented, tmp_path / "out", vector_size=100_000, max_memory_mib=1)


# --- inputs and parts ------------------------------------------------------------------------------------------------


def test_vocabulary_ties_are_in_code_point_order():
    counts = Counter({"丙": 2, "乙": 2, "甲": 5, "丁": 1})
    assert list(select_vocabulary(counts, 2, source=Path("x"))) == ["甲", "丙", "乙"]


@pytest.mark.parametrize(
    ("units", "given"),
    [("words", ()), ("words", ("corpus", "tokenizer")), ("pieces", ("segmented",)), ("pieces", ("corpus",))],
)
def test_inputs_must_go_with_the_units(tmp_path, units, given):
    with pytest.raises(ConfigError, match=f"with units='{units}' needs"):
        train_word2vec(Word2VecConfig(units=units), out_dir=tmp_path, **dict.fromkeys(given, tmp_path))


def test_pieces_come_from_the_tokenizer(tmp_path):
    from transformers import BertTokenizerFast

    from components.encoders.wordpiece import save_wordpiece

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "爱", "读", "书", "read", "##ing", "##s"]
    (tmp_path / "tokenizer").mkdir()
    save_wordpiece(BertTokenizerFast(vocab={piece: n for n, piece in enumerate(pieces)}), tmp_path / "tokenizer")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for split in ("train", "validation"):
        writer = ShardWriter(corpus, split)
        writer.write(Document("a:1", ("我爱读书", "readings 书 [MASK]")))
        writer.close()
    (tmp_path / "out").mkdir()
    config = Word2VecConfig(**SMALL, units="pieces")
    metrics = train_word2vec(config, corpus=corpus, tokenizer=tmp_path / "tokenizer", out_dir=tmp_path / "out")
    words, _ = read_vectors(tmp_path / "out" / "vectors.txt")
    assert {"我", "爱", "读", "书", "read", "##ing", "##s"} <= set(words)
    assert "[MASK]" not in words
    assert words[0] in {"书", "[UNK]"}
    assert metrics["oov_rate_validation"] == 0
    vectors = load_word_vectors(tmp_path / "out")
    assert vectors.split("readings书") == ["read", "##ing", "##s", "书"]
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_nearest_neighbours_by_hand():
    words = ["东", "南", "西", "北"]
    vectors = np.array([[2, 0], [0, 1], [-1, 0], [1, 1]], dtype=np.float32)
    found = nearest_neighbours(words, vectors, ["东"], 3)
    assert found["东"] == [
        {"word": "北", "cosine": 0.7071},
        {"word": "南", "cosine": 0.0},
        {"word": "西", "cosine": -1.0},
    ]
    assert frequent_words({"的": 9, "，，": 8, "中国": 7, "##ing": 6, "北京": 5, "上海": 4}, 2) == ["中国", "北京"]


@pytest.mark.parametrize("sg", [0, 1])
def test_held_out_loss_by_hand(tmp_path, sg):
    segmented = write_segmented(tmp_path / "segmented", [], [["甲", "乙"]])
    held_out = HeldOutLoss.draw(
        Sentences(segmented, "validation"), {"甲": 1, "乙": 1}, window=1, negative=2, ns_exponent=0.75, sg=sg, seed=0
    )
    assert sorted(held_out.targets_P.tolist()) == [0, 1]
    zeros = np.zeros((2, 3), dtype=np.float32)
    assert held_out.of(zeros, zeros) == pytest.approx(3 * np.log(2))
    inputs = np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32)
    outputs = np.array([[0, 2, 0], [2, 0, 0]], dtype=np.float32)
    expected = 0.0
    for source, target, noise in zip([0, 1] if sg else [1, 0], held_out.targets_P, held_out.noise_PK, strict=True):
        scores = outputs @ inputs[source]
        expected += np.log1p(np.exp(-scores[target])) + np.log1p(np.exp(scores[noise])).sum()
    assert held_out.of(inputs, outputs) == pytest.approx(expected / 2, rel=1e-6)


def test_card_names_what_the_vectors_are(segmented, tmp_path):
    train(segmented, tmp_path / "out", oov_policy="skip")
    card = read_json(tmp_path / "out" / "encoder.json")
    assert (card["family"], card["units"], card["oov_policy"], card["vector_size"]) == ("word2vec", "words", "skip", 8)
    write_json(tmp_path / "out" / "encoder.json", {**card, "oov_policy": "characters"})
    assert load_word_vectors(tmp_path / "out").oov_policy == "characters"
