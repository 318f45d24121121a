from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from components.errors import ConfigError, InputError, TrainingError
from components.examples import Example, read_examples, select_examples, write_labels
from components.finetuning.config import ClassificationConfig
from components.finetuning.predict import load_predictor, predict
from components.finetuning.stage import finetune
from components.formats import read_jsonl, write_jsonl
from components.predictions import read_predictions

RECIPES = {
    "bag_of_words": {},
    "word2vec": {},
    "recurrent": {"num_epochs": 12, "batch_size": 4, "learning_rate": 0.02},
    "bert": {"num_epochs": 30, "batch_size": 4, "learning_rate": 2e-3, "max_seq_length": 32},
}
neural = pytest.mark.parametrize("family", ["recurrent", "bert"])
bert_only = pytest.mark.parametrize("family", ["bert"])
recurrent_only = pytest.mark.parametrize("family", ["recurrent"])


def recipe(family: str, **changes: object) -> ClassificationConfig:
    return ClassificationConfig(**{"precision": "float32", **RECIPES[family], **changes})


def quick(family: str, **changes: object) -> ClassificationConfig:
    return recipe(family, **{"num_epochs": 2, **changes})


def text_scorer(model_dir: Path, batch_size: int = 32) -> Callable[[list[str]], np.ndarray]:
    predictor = load_predictor(model_dir, batch_size)
    return lambda texts: predictor.score_inputs([Example("", text, "") for text in texts])


def in_fresh_process(code: str, *arguments: object, hash_seed: str = "0") -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_overfits_and_reports(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    metrics = finetune(recipe(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    assert metrics["val_accuracy"] >= 0.95
    expected = {
        "train_seconds", "num_parameters", "model_bytes", "test_items_per_second", "val_accuracy", "val_macro_f1",
        "num_train_examples", "num_truncated", "num_truncated_train", "num_test_items", "num_unseen_labels",
    }  # fmt: skip
    assert expected <= metrics.keys()
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics["num_train_examples"] == metrics["num_test_items"] == 16
    assert metrics["model_bytes"] == sum(p.stat().st_size for p in (out_dir / "model").rglob("*") if p.is_file())
    predictions = read_predictions(out_dir / "predictions.jsonl")
    assert [p.id for p in predictions] == [e.id for e in read_examples(dataset, "test")]
    assert all(list(p.probabilities) == ["好评", "差评"] for p in predictions)
    assert all(sum(p.probabilities.values()) == pytest.approx(1) for p in predictions)
    assert all(p.label == max(p.probabilities, key=p.probabilities.__getitem__) for p in predictions)
    report = json.loads((out_dir / "load_report.json").read_text())
    assert report["family"] == family
    assert report["loaded"]
    assert not report["missing"]


@neural
def test_overfits_eight_examples(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    config = recipe(family, num_train_examples=8, num_epochs=40)
    finetune(config, encoder=encoder, dataset=dataset, out_dir=out_dir)
    train = select_examples(read_examples(dataset, "train"), 8, config.seed)
    found = predict(out_dir / "model", [example.text for example in train])
    right = sum(p.label == e.label for p, e in zip(found, train, strict=True))
    assert right / len(train) >= 0.95


def test_same_bytes_twice(family: str, encoder: Path, dataset: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=folder)
    one, two = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert one == two


PREDICT_ALL = """
import json, sys, torch
from pathlib import Path
from components.finetuning.predict import predict
torch.set_num_threads(int(sys.argv[1]))
texts = json.loads(sys.argv[2])
print(json.dumps([[[p.label, list(p.probabilities.items())] for p in predict(Path(f), texts)] for f in sys.argv[3:]]))
"""


def test_ft_04_five_fresh_processes_predict_the_same_bits_and_names(
    dataset: Path, tmp_path: Path, makers: dict[str, Callable[[Path], None]]
) -> None:
    """Label order, names and every probability survive the reload under other PYTHONHASHSEEDs, for all families."""
    names = {"好评": "体育", "差评": "10"}
    for split in ("train", "validation", "test"):
        rows = [{**row, "label": names[row["label"]]} for row in read_jsonl(dataset / f"{split}.jsonl")]
        write_jsonl(dataset / f"{split}.jsonl", rows)
    write_labels(dataset, ["体育", "财经", "10", "9"])
    texts = [row["text"] for row in read_jsonl(dataset / "test.jsonl")]
    stored, folders = [], []
    for family, make in makers.items():
        encoder, out_dir = tmp_path / f"encoder-{family}", tmp_path / f"out-{family}"
        encoder.mkdir()
        out_dir.mkdir()
        make(encoder)
        finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
        found = read_predictions(out_dir / "predictions.jsonl")
        assert list(found[0].probabilities) == ["10", "9", "体育", "财经"]
        stored.append([[p.label, [list(pair) for pair in p.probabilities.items()]] for p in found])
        folders.append(out_dir / "model")
    arguments = [torch.get_num_threads(), json.dumps(texts), *folders]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda seed: in_fresh_process(PREDICT_ALL, *arguments, hash_seed=str(seed)), range(5)))
    assert [json.loads(output) for output in outputs] == [stored] * 5
    config = json.loads((folders[-1] / "config.json").read_text())
    assert config["id2label"] == {"0": "10", "1": "9", "2": "体育", "3": "财经"}


def test_rnn_02_predictions_do_not_depend_on_companions(
    family: str, encoder: Path, dataset: Path, out_dir: Path
) -> None:
    finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    score = text_scorer(out_dir / "model")
    short, long = "房间 很 干净", " ".join(["质量", "非常", "差"] * 17)
    alone = score([short])[0]
    for companions in ([long], [long, long, "喜欢"], ["失望"] * 40):
        beside = score([*companions, short])[-1]
        np.testing.assert_allclose(beside, alone, rtol=0, atol=1e-6)


def test_rnn_04_order_does_not_matter(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    texts = [row["text"] for row in read_jsonl(dataset / "test.jsonl")]
    score = text_scorer(out_dir / "model", batch_size=3)
    straight = score(texts)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(texts))
        np.testing.assert_array_equal(score([texts[i] for i in order]), straight[order])


def test_empty_and_unknown_texts_are_predicted(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    found = predict(out_dir / "model", ["", "   ", "\u3000", "龘", "喜欢"])
    assert [p.id for p in found] == ["0", "1", "2", "3", "4"]
    assert all(np.isfinite(list(p.probabilities.values())).all() for p in found)
    assert predict(out_dir / "model", []) == []


def test_text_03_lone_surrogate_is_refused_with_its_position(
    encoder: Path, dataset: Path, out_dir: Path, family: str
) -> None:
    finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    with pytest.raises(InputError, match="text 1 holds a lone surrogate at character 2"):
        predict(out_dir / "model", ["好", "喜欢\ud83d"])
    with pytest.raises(InputError, match="text 0 is a int"):
        predict(out_dir / "model", [3])  # type: ignore[list-item]


@neural
def test_peers_4_encoder_weights_are_used_and_reported(
    family: str, encoder: Path, dataset: Path, out_dir: Path
) -> None:
    """A frozen encoder comes out as it went in: nothing was freshly initialised."""
    finetune(quick(family, freeze="encoder"), encoder=encoder, dataset=dataset, out_dir=out_dir)
    before = load_file(encoder / "model.safetensors")
    after = load_file(out_dir / "model" / "model.safetensors")
    report = json.loads((out_dir / "load_report.json").read_text())
    prefix = "bert." if family == "bert" else ""
    assert len(report["loaded"]) > 5
    for name in report["loaded"]:
        assert (before[prefix + name] == after[prefix + name]).all()
    if family == "bert":
        assert "cls.predictions.bias" in report["unexpected"]


@neural
def test_peers_4_missing_weights_are_refused(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    tensors = load_file(encoder / "model.safetensors")
    save_file(
        {f"renamed.{name}": tensor for name, tensor in tensors.items()}, encoder / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(Exception, match=r"weights|tensors"):
        finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    assert not (out_dir / "predictions.jsonl").exists()


@pytest.mark.parametrize("family", ["word2vec", "bag_of_words"])
def test_peers_4_encoder_of_another_language_is_refused(
    family: str, encoder: Path, dataset: Path, out_dir: Path
) -> None:
    rows = [{**row, "text": "completely foreign words"} for row in read_jsonl(dataset / "train.jsonl")]
    write_jsonl(dataset / "train.jsonl", rows)
    with pytest.raises(TrainingError, match="only 0 of 16 training texts"):
        finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)


@neural
def test_peers_6_first_epoch_is_kept_even_at_score_zero(
    family: str, encoder: Path, dataset: Path, out_dir: Path
) -> None:
    rows = [{**row, "label": "未见"} for row in read_jsonl(dataset / "validation.jsonl")]
    write_jsonl(dataset / "validation.jsonl", rows)
    config = quick(family, unseen_label="count_as_wrong")
    metrics = finetune(config, encoder=encoder, dataset=dataset, out_dir=out_dir)
    assert metrics["val_accuracy"] == 0.0
    assert metrics["best_epoch"] == 1
    assert metrics["num_unseen_labels"] == 16
    assert len(read_predictions(out_dir / "predictions.jsonl")) == 16


@neural
def test_best_epoch_is_the_one_saved(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    history: dict[float, float] = {}

    def log(metrics: dict[str, float], *, step: int | None = None) -> None:
        if "val_accuracy" in metrics:
            history[metrics["epoch"]] = metrics["val_accuracy"]

    config = recipe(family, num_epochs=6, learning_rate=0.05)
    metrics = finetune(config, encoder=encoder, dataset=dataset, out_dir=out_dir, log_metrics=log)
    best = max(history.values())
    assert len(history) == 6
    assert metrics["val_accuracy"] == best
    assert metrics["best_epoch"] == min(epoch for epoch, value in history.items() if value == best)


@neural
def test_train_01_resumed_run_equals_uninterrupted(
    family: str, encoder: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.finetuning.loop.CHECKPOINT_STEPS", 1)
    folders = [tmp_path / "whole", tmp_path / "killed", tmp_path / "resumed"]
    for folder in folders:
        folder.mkdir()
    config = quick(family, num_epochs=5, dropout=0.2, learning_rate=0.01)
    finetune(config, encoder=encoder, dataset=dataset, out_dir=folders[0])

    class Killed(Exception):
        pass

    def die(metrics: dict[str, float], *, step: int | None = None) -> None:
        if step is not None and step >= 14 and "loss" in metrics:
            raise Killed

    with pytest.raises(Killed):
        finetune(
            config,
            encoder=encoder,
            dataset=dataset,
            out_dir=folders[1],
            checkpoint_dir=tmp_path / "cp",
            log_metrics=die,
        )
    assert list((tmp_path / "cp").glob("step-*"))
    steps: list[int] = []

    def note(metrics: dict[str, float], *, step: int | None = None) -> None:
        if step is not None:
            steps.append(step)

    finetune(
        config, encoder=encoder, dataset=dataset, out_dir=folders[2], checkpoint_dir=tmp_path / "cp", log_metrics=note
    )
    assert min(steps) > 12
    whole, resumed = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (folders[0], folders[2])
    )
    assert whole == resumed


@bert_only
def test_transformers_loads_the_same_classifier(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    finetune(quick(family), encoder=encoder, dataset=dataset, out_dir=out_dir)
    model, info = AutoModelForSequenceClassification.from_pretrained(out_dir / "model", output_loading_info=True)
    assert not info["missing_keys"]
    tokenizer = AutoTokenizer.from_pretrained(out_dir / "model")
    text = "房间 很 干净"
    with torch.inference_mode():
        logits = model.eval()(**tokenizer(text, return_tensors="pt")).logits[0]
    mine = text_scorer(out_dir / "model")([text])[0]
    np.testing.assert_allclose(logits.numpy(), mine, atol=1e-6)
    assert model.config.id2label == {0: "好评", 1: "差评"}


@bert_only
def test_tok_05_special_tokens_in_text_are_plain_text(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    from components.finetuning.encoders import load_bert_encoder
    from components.finetuning.text_reader import encode_examples

    loaded = load_bert_encoder(encoder)
    row = encode_examples(loaded, [Example("", "好[SEP]差", "")], 32).rows[0].arrays["input_ids"].tolist()
    assert row.count(loaded.suffix[0]) == 1
    assert row[-1] == loaded.suffix[0]
    assert len(row) > 5


@neural
def test_truncated_texts_are_counted_and_kept(family: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    """The longest review has 10 characters, and the second longest 8; BERT adds [CLS] and [SEP]."""
    special = {"recurrent": 0, "bert": 2}[family]
    for limit, expected in ((10, 0), (9, 1)):
        folder = out_dir / str(limit)
        folder.mkdir()
        config = quick(family, max_seq_length=limit + special)
        metrics = finetune(config, encoder=encoder, dataset=dataset, out_dir=folder)
        assert metrics["num_truncated"] == metrics["num_truncated_train"] == expected
        assert len(read_predictions(folder / "predictions.jsonl")) == 16


@neural
def test_settings_that_the_encoder_cannot_follow_are_refused(
    family: str, encoder: Path, dataset: Path, out_dir: Path
) -> None:
    wrong = {"recurrent": "cls", "bert": "last"}[family]
    with pytest.raises(ConfigError, match=f"pooling '{wrong}' is not one of"):
        finetune(quick(family, pooling=wrong), encoder=encoder, dataset=dataset, out_dir=out_dir)
    if family == "bert":
        (out_dir / "model").rmdir()
        with pytest.raises(ConfigError, match="max_seq_length is 65, the encoder has 64 positions"):
            finetune(quick(family, max_seq_length=65), encoder=encoder, dataset=dataset, out_dir=out_dir)


@pytest.mark.parametrize(
    ("family", "pooling"), [("recurrent", "last"), ("recurrent", "mean"), ("bert", "mean"), ("bert", "max")]
)
def test_every_pooling_reloads(family: str, pooling: str, encoder: Path, dataset: Path, out_dir: Path) -> None:
    finetune(quick(family, pooling=pooling), encoder=encoder, dataset=dataset, out_dir=out_dir)
    texts = [row["text"] for row in read_jsonl(dataset / "test.jsonl")]
    stored = read_predictions(out_dir / "predictions.jsonl")
    assert [p.probabilities for p in predict(out_dir / "model", texts)] == [p.probabilities for p in stored]


def test_tables_agree_with_the_configuration() -> None:
    from typing import get_args

    from components.examples import TaskName
    from components.finetuning.families import FAMILIES
    from components.finetuning.tasks import TASKS
    from components.formats import EncoderFamily

    assert set(FAMILIES) == set(get_args(EncoderFamily))
    assert set(TASKS) == set(get_args(TaskName))
    for name, task in TASKS.items():
        assert task.name == task.config().task == name
    for family in ("word2vec", "recurrent", "bert"):
        assert set(FAMILIES[family].learners) == set(TASKS)


@neural
def test_encoder_learning_rate_moves_the_encoder_alone(
    family: str, encoder: Path, dataset: Path, tmp_path: Path
) -> None:
    """Adam's first step moves a weight by about the learning rate, whatever the gradient's size."""
    moved = {}
    before = load_file(encoder / "model.safetensors")
    name = {"recurrent": "stacks.0.weight_hh_l0", "bert": "bert.encoder.layer.0.output.dense.weight"}[family]
    for encoder_learning_rate in (1e-4, 1e-6):
        folder = tmp_path / str(encoder_learning_rate)
        folder.mkdir()
        config = quick(
            family, num_epochs=1, batch_size=16, learning_rate=1e-2, encoder_learning_rate=encoder_learning_rate,
            warmup_ratio=0, weight_decay=0, dropout=0,
        )  # fmt: skip
        finetune(config, encoder=encoder, dataset=dataset, out_dir=folder)
        after = load_file(folder / "model" / "model.safetensors")
        moved[encoder_learning_rate] = float((after[name] - before[name]).abs().median())
    assert moved[1e-4] == pytest.approx(1e-4, rel=0.1)
    assert moved[1e-6] == pytest.approx(1e-6, rel=0.2)
