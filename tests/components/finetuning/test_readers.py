from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
import unicodedata
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from components.errors import ConfigError, InputError
from components.examples import read_any_examples
from components.finetuning.config import NerConfig, QuestionAnsweringConfig
from components.finetuning.predict import load_predictor, predict
from components.finetuning.stage import finetune
from components.formats import read_jsonl, write_jsonl
from components.predictions import read_any_predictions

RECIPES = {
    "word2vec": {"num_epochs": 25, "learning_rate": 0.02},
    "recurrent": {"num_epochs": 50, "learning_rate": 0.02},
    "bert": {"num_epochs": 60, "learning_rate": 2e-3},
}
bert_only = pytest.mark.parametrize("reader_family", ["bert"])
recurrent_only = pytest.mark.parametrize("reader_family", ["recurrent"])


def ner(family: str, **changes: Any) -> NerConfig:
    return NerConfig(**{"precision": "float32", "batch_size": 4, "max_seq_length": 32, **RECIPES[family], **changes})


def qa(family: str, **changes: Any) -> QuestionAnsweringConfig:
    fields = {"precision": "float32", "batch_size": 4, "max_seq_length": 32, "max_answer_length": 5}
    return QuestionAnsweringConfig(**{**fields, **RECIPES[family], **changes})


def test_ner_overfits_eight_examples(reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path) -> None:
    metrics = finetune(ner(reader_family), encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)
    assert metrics["num_train_examples"] == 8
    assert metrics["val_entity_f1"] >= 0.95
    found = read_any_predictions(out_dir / "predictions.jsonl", "ner")
    gold = read_any_examples(ner_dataset, "test")
    assert [p.id for p in found] == [e.id for e in gold]
    assert all(len(p.tags) == len(e.tokens) for p, e in zip(found, gold, strict=True))
    assert all(e.text[s.start : s.end] == s.text for p, e in zip(found, gold, strict=True) for s in p.entities)


def test_ft_12_question_answering_overfits_eight_examples(
    reader_family: str, piece_encoder: Path, qa_dataset: Path, out_dir: Path
) -> None:
    metrics = finetune(qa(reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir)
    assert metrics["num_train_examples"] == 8
    assert metrics["val_f1"] >= 0.95
    assert metrics["num_windows_with_answer"] == 8
    assert metrics["num_windows_without_answer"] == 0
    found = read_any_predictions(out_dir / "predictions.jsonl", "question_answering")
    gold = read_any_examples(qa_dataset, "test")
    assert [p.id for p in found] == [e.id for e in gold]
    for prediction, example in zip(found, gold, strict=True):
        assert example.text[prediction.start : prediction.end] == prediction.answer != ""
        for candidate in prediction.candidates:
            assert example.text[candidate.start : candidate.end] == candidate.text


def quick(task: str, family: str, **changes: Any) -> NerConfig | QuestionAnsweringConfig:
    make = {"ner": ner, "question_answering": qa}[task]
    return make(family, **{"num_epochs": 2, **changes})


@pytest.fixture(params=["ner", "question_answering"])
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def dataset(task: str, request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue({"ner": "ner_dataset", "question_answering": "qa_dataset"}[task])  # type: ignore[no-any-return]


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def inputs_of(task: str, dataset: Path) -> list[dict[str, Any]]:
    rows = list(read_jsonl(dataset / "test.jsonl"))
    names = ("text", "tokens") if task == "ner" else ("text", "question")
    return [{name: row[name] for name in names} for row in rows]


PREDICT = """
import json, sys, torch
from dataclasses import asdict
from pathlib import Path
from components.finetuning.predict import predict
torch.set_num_threads(int(sys.argv[1]))
print(json.dumps([asdict(p) for p in predict(Path(sys.argv[2]), json.loads(sys.argv[3]))]))
"""


def test_a_fresh_process_repeats_the_predictions_of_training_and_training_repeats_its_bytes(
    task: str, reader_family: str, piece_encoder: Path, dataset: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        finetune(quick(task, reader_family), encoder=piece_encoder, dataset=dataset, out_dir=folder)
    assert files_of(folders[0]) == files_of(folders[1])
    arguments = [torch.get_num_threads(), folders[0] / "model", json.dumps(inputs_of(task, dataset))]
    done = subprocess.run(
        [sys.executable, "-c", PREDICT, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    stored = [json.loads(json.dumps(asdict(p))) for p in read_any_predictions(folders[0] / "predictions.jsonl", task)]  # type: ignore[arg-type]
    assert [row | {"id": ""} for row in found] == [row | {"id": ""} for row in stored]
    assert [row["id"] for row in found] == [str(number) for number in range(8)]


def test_killed_and_resumed_equals_uninterrupted(
    task: str, reader_family: str, piece_encoder: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.finetuning.loop.CHECKPOINT_STEPS", 1)
    folders = [tmp_path / name for name in ("whole", "killed", "resumed")]
    for folder in folders:
        folder.mkdir()
    given = {"encoder": piece_encoder, "dataset": dataset}
    config = quick(task, reader_family, num_epochs=4, dropout=0.2, learning_rate=0.01)
    finetune(config, **given, out_dir=folders[0])  # type: ignore[arg-type]

    class Killed(Exception):
        pass

    def die(metrics: dict[str, float], *, step: int | None = None) -> None:
        if step is not None and step >= 6 and "loss" in metrics:
            raise Killed

    checkpoints = tmp_path / "checkpoints"
    with pytest.raises(Killed):
        finetune(config, **given, out_dir=folders[1], checkpoint_dir=checkpoints, log_metrics=die)  # type: ignore[arg-type]
    assert list(checkpoints.glob("step-*"))
    finetune(config, **given, out_dir=folders[2], checkpoint_dir=checkpoints)  # type: ignore[arg-type]
    assert files_of(folders[0]) == files_of(folders[2])


@recurrent_only
def test_crf_trains_and_reloads(reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path) -> None:
    config = ner(reader_family, crf=True)
    metrics = finetune(config, encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)
    assert metrics["val_entity_f1"] >= 0.95
    assert {name for name in load_file(out_dir / "model" / "head.safetensors") if name.startswith("crf.")}
    inputs = inputs_of("ner", ner_dataset)
    stored = read_any_predictions(out_dir / "predictions.jsonl", "ner")
    assert [p.tags for p in predict(out_dir / "model", inputs)] == [p.tags for p in stored]


@pytest.mark.parametrize("reader_family", ["word2vec", "bert"])
def test_crf_is_refused_elsewhere(reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path) -> None:
    with pytest.raises(ConfigError, match="crf: true goes with recurrent encoders only"):
        finetune(ner(reader_family, crf=True), encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)


@pytest.mark.parametrize("family", ["word2vec", "recurrent"])
def test_encoders_of_words_are_refused(family: str, encoder: Path, task: str, dataset: Path, out_dir: Path) -> None:
    with pytest.raises(ConfigError, match="units: pieces"):
        finetune(quick(task, family), encoder=encoder, dataset=dataset, out_dir=out_dir)


@bert_only
def test_the_task_must_be_the_data_set_s(
    reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path
) -> None:
    with pytest.raises(InputError, match="the data set is for ner, the configuration for question_answering"):
        finetune(qa(reader_family), encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)
    assert not list(out_dir.iterdir())


@bert_only
def test_transformers_loads_the_same_tagger(
    reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path
) -> None:
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    finetune(quick("ner", reader_family), encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)
    model, info = AutoModelForTokenClassification.from_pretrained(out_dir / "model", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    example = read_any_examples(ner_dataset, "test")[0]
    tokenizer = AutoTokenizer.from_pretrained(out_dir / "model")
    with torch.inference_mode():
        logits = model.eval()(**tokenizer(example.text, return_tensors="pt")).logits[0, 1:-1]
    mine = load_predictor(out_dir / "model").score_inputs([example])[0].scores_TK
    np.testing.assert_allclose(logits.numpy(), mine, atol=1e-6)
    assert model.config.id2label == {0: "O", 1: "B-LOC", 2: "I-LOC", 3: "B-PER", 4: "I-PER"}


@bert_only
def test_transformers_loads_the_same_reader(
    reader_family: str, piece_encoder: Path, qa_dataset: Path, out_dir: Path
) -> None:
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    finetune(quick("question_answering", reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir)
    model, info = AutoModelForQuestionAnswering.from_pretrained(out_dir / "model", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    example = read_any_examples(qa_dataset, "test")[0]
    tokenizer = AutoTokenizer.from_pretrained(out_dir / "model")
    question, text = (unicodedata.normalize("NFKC", value) for value in (example.question, example.text))
    row = tokenizer(question, text, return_tensors="pt")
    with torch.inference_mode():
        output = model.eval()(**row)
    inside = np.array(row.sequence_ids(0)) == 1
    mine = load_predictor(out_dir / "model").score_inputs([example])[0]
    np.testing.assert_allclose(output.start_logits[0].numpy()[inside], mine.start_P, atol=1e-6)
    np.testing.assert_allclose(output.end_logits[0].numpy()[inside], mine.end_P, atol=1e-6)
    assert mine.null == pytest.approx(float(output.start_logits[0, 0] + output.end_logits[0, 0]), abs=1e-6)


@bert_only
def test_bad_inputs_are_refused_with_their_position(
    reader_family: str, piece_encoder: Path, ner_dataset: Path, qa_dataset: Path, tmp_path: Path
) -> None:
    models = {}
    for name, data in (("ner", ner_dataset), ("question_answering", qa_dataset)):
        folder = tmp_path / name
        folder.mkdir()
        finetune(quick(name, reader_family, num_epochs=1), encoder=piece_encoder, dataset=data, out_dir=folder)
        models[name] = folder / "model"
    good = {"ner": "王小明在北京。", "question_answering": {"question": "谁？", "context": "王小明在北京。"}}
    bad: dict[str, list[tuple[Any, str]]] = {
        "ner": [
            (3, "text 1 is a int"),
            ("北\ud83d", "text 1 holds a lone surrogate at character 1"),
            ({"text": "北京"}, "input 1 needs tokens"),
            ({"text": "北京", "tokens": [[0, 3]]}, "input 1: token 0 is 0:3"),
            ({"text": "北京", "tokens": [[1, 2], [0, 1]]}, "input 1: token 1 is 0:1 after 2"),
        ],
        "question_answering": [
            ("北京", "input 1 is a str, not an object"),
            ({"question": "谁？"}, "input 1 needs question, text; text missing"),
            ({"question": "谁？", "text": "北", "answer": "北"}, "unknown: answer"),
            ({"question": " ", "text": "北"}, "input 1 has an empty question"),
            ({"question": "谁" * 17, "text": "北"}, "question 1 has 17 pieces, the limit is 16"),
        ],
    }
    for name, cases in bad.items():
        assert len(predict(models[name], [good[name]])) == 1
        for value, message in cases:
            with pytest.raises(InputError, match=message):
                predict(models[name], [good[name], value])


def test_odd_texts_are_predicted(
    task: str, reader_family: str, piece_encoder: Path, dataset: Path, out_dir: Path
) -> None:
    """Empty, blank, unknown, full-width and long texts; every token has a tag, every answer is in its passage."""
    finetune(quick(task, reader_family), encoder=piece_encoder, dataset=dataset, out_dir=out_dir)
    texts = ["", "  ", "\u200b\u200b", "龘", "王\u200b小明　今天在１９９０北京", "北京" * 100, "[SEP]王小明[CLS]"]
    inputs: list[Any] = (
        texts
        if task == "ner"
        else [{"question": "\u200b" if n % 2 else "谁？", "text": t} for n, t in enumerate(texts)]
    )
    for text, found in zip(texts, predict(out_dir / "model", inputs), strict=True):
        if task == "ner":
            assert len(found.tags) == sum(not character.isspace() for character in text)
        else:
            assert text[found.start : found.end] == found.answer
            assert np.isfinite(found.no_answer_score)


@bert_only
def test_full_width_text_is_read_like_half_width(
    reader_family: str, piece_encoder: Path, ner_dataset: Path, out_dir: Path
) -> None:
    finetune(quick("ner", reader_family), encoder=piece_encoder, dataset=ner_dataset, out_dir=out_dir)
    predictor = load_predictor(out_dir / "model")
    parsed = [
        predictor.task.parse_input(0, text, predictor.facts, predictor.normalization)
        for text in ("在１９９０，", "在1990,")
    ]
    wide, narrow = predictor.score_inputs(parsed)
    np.testing.assert_array_equal(wide.scores_TK, narrow.scores_TK)


@bert_only
def test_companions_do_not_change_an_answer(
    reader_family: str, piece_encoder: Path, qa_dataset: Path, out_dir: Path
) -> None:
    finetune(quick("question_answering", reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir)
    predictor = load_predictor(out_dir / "model", batch_size=3)
    examples = read_any_examples(qa_dataset, "test")
    alone, beside = predictor.score_inputs(examples[:1])[0], predictor.score_inputs(examples)[0]
    np.testing.assert_allclose(alone.start_P, beside.start_P, atol=1e-6)


def test_unusable_questions_are_counted_and_named(
    piece_encoder: Path, reader_family: str, qa_dataset: Path, out_dir: Path
) -> None:
    """ft-08: an answer longer than every window, and one without a place."""
    rows = list(read_jsonl(qa_dataset / "train.jsonl"))
    long = "北京" * 20
    rows.append({"id": "long", "text": long + "。", "question": "谁？", "answers": [{"text": long, "start": 0}]})
    rows.append({"id": "lost", "text": "北京。", "question": "谁？", "answers": [{"text": "广州", "start": None}]})
    write_jsonl(qa_dataset / "train.jsonl", rows)
    metrics = finetune(
        quick("question_answering", reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir
    )
    unused = json.loads((out_dir / "unused_examples.json").read_text())
    assert unused == {"answer_in_no_window": ["long"], "answer_without_place": ["lost"]}
    assert metrics["num_answer_in_no_window"] == metrics["num_answer_without_place"] == 1


def test_ft_09_a_long_question_is_refused_before_training(
    piece_encoder: Path, reader_family: str, qa_dataset: Path, out_dir: Path
) -> None:
    rows = list(read_jsonl(qa_dataset / "test.jsonl"))
    rows[3]["question"] = "谁" * 400
    write_jsonl(qa_dataset / "test.jsonl", rows)
    seen: list[Any] = []
    with pytest.raises(InputError, match=f"question {rows[3]['id']} has 400 pieces, the limit is 16"):
        finetune(
            quick("question_answering", reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir,
            log_metrics=lambda metrics, *, step=None: seen.append(metrics),
        )  # fmt: skip
    assert not seen


def test_ft_09_windows_without_room_are_refused() -> None:
    with pytest.raises(ValueError, match=r"doc_stride is 128, but max_seq_length=384 .* leaves room for 61 pieces"):
        QuestionAnsweringConfig(max_seq_length=384, doc_stride=128, max_question_length=320)
    with pytest.raises(ValueError, match="window_overlap is 30, but a window of max_seq_length=32 has room for 30"):
        NerConfig(max_seq_length=32, window_overlap=30)


def test_unanswerable_questions_get_a_threshold(
    piece_encoder: Path, reader_family: str, qa_dataset: Path, out_dir: Path
) -> None:
    """SQuAD 2.0: half the questions have no answer in their passage."""
    for split in ("train", "validation", "test"):
        rows = list(read_jsonl(qa_dataset / f"{split}.jsonl"))
        for row in rows[1::2]:
            row |= {"question": "了去123456？", "answers": []}
        write_jsonl(qa_dataset / f"{split}.jsonl", rows)
    metrics = finetune(qa(reader_family), encoder=piece_encoder, dataset=qa_dataset, out_dir=out_dir)
    assert metrics["num_windows_without_answer"] == 4
    assert metrics["val_f1"] >= 0.95
    threshold = json.loads((out_dir / "model" / "task.json").read_text())["no_answer_threshold"]
    found = read_any_predictions(out_dir / "predictions.jsonl", "question_answering")
    assert [p.answer == "" for p in found] == [p.no_answer_score > threshold for p in found]
    assert [p.answer == "" for p in found] == [False, True] * 4
    assert all(p.candidates for p in found)


@pytest.mark.parametrize("reader_family", ["word2vec"])
def test_gpu_01_memory_does_not_grow_with_the_number_of_questions(
    reader_family: str, piece_encoder: Path, qa_dataset: Path, out_dir: Path
) -> None:
    finetune(
        quick("question_answering", reader_family, num_epochs=1),
        encoder=piece_encoder,
        dataset=qa_dataset,
        out_dir=out_dir,
    )
    predictor = load_predictor(out_dir / "model")
    peaks = []
    for blocks in (1, 1, 6):
        inputs = (
            {"question": "谁？", "text": "王小明在北京。" * 12} for _ in range(blocks * predictor.task.block_size)
        )
        tracemalloc.start()
        assert sum(1 for _ in predictor.stream(inputs)) == blocks * predictor.task.block_size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The first measurement warms up; one more block of logits alone would be 128 x 84 x 2 floats and all its rows.
    assert peaks[2] < 1.3 * peaks[1]
