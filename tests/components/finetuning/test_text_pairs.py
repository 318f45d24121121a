from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import InputError
from components.examples import read_examples
from components.finetuning.config import ClassificationConfig
from components.finetuning.predict import predict
from components.finetuning.stage import finetune
from components.formats import read_jsonl, write_jsonl

RECIPES = {
    "bag_of_words": {"C": 100.0},
    "word2vec": {"C": 100.0},
    "recurrent": {"num_epochs": 30, "batch_size": 4, "learning_rate": 0.02},
    "bert": {"num_epochs": 40, "batch_size": 4, "learning_rate": 2e-3, "max_seq_length": 32},
}
GOOD, BAD = ("房间 很 干净", "服务 热情", "喜欢", "满意"), ("房间 很 脏", "服务 冷淡", "讨厌", "失望")


@pytest.fixture
def pairs(dataset: Path) -> Path:
    """好评 when the second text is a good review, whatever the first is."""
    rows = [(a, b, label) for a in (*GOOD, *BAD) for label, side in (("好评", GOOD), ("差评", BAD)) for b in side[:2]]
    for split in ("train", "validation", "test"):
        write_jsonl(
            dataset / f"{split}.jsonl",
            [{"id": f"{split}:{n}", "text": a, "text_pair": b, "label": c} for n, (a, b, c) in enumerate(rows, 1)],
        )
    return dataset


def test_pairs_are_learned_by_every_family_and_served(family: str, encoder: Path, pairs: Path, out_dir: Path) -> None:
    config = ClassificationConfig(precision="float32", **RECIPES[family])  # type: ignore[arg-type]
    metrics = finetune(config, encoder=encoder, dataset=pairs, out_dir=out_dir)
    assert metrics["val_accuracy"] >= 0.95
    stored = [row["probabilities"] for row in read_jsonl(out_dir / "predictions.jsonl")]
    given = [{"text": e.text, "text_pair": e.text_pair} for e in read_examples(pairs, "test")]
    assert [p.probabilities for p in predict(out_dir / "model", given)] == stored
    swapped = [{"text": row["text_pair"], "text_pair": row["text"]} for row in given]
    assert [p.probabilities for p in predict(out_dir / "model", swapped)] != stored


@pytest.mark.parametrize("family", ["recurrent"])
def test_single_texts_and_pairs_are_not_mixed(family: str, encoder: Path, pairs: Path, out_dir: Path) -> None:
    config = ClassificationConfig(num_epochs=1)
    finetune(config, encoder=encoder, dataset=pairs, out_dir=out_dir)
    with pytest.raises(InputError, match="input 1 is not what this model was trained on: a pair"):
        predict(out_dir / "model", [{"text": "好", "text_pair": "坏"}, "好"])
    with pytest.raises(InputError, match="text_pair 0 is a int, not a string"):
        predict(out_dir / "model", [{"text": "好", "text_pair": 3}])
    rows = list(read_jsonl(pairs / "validation.jsonl"))
    del rows[2]["text_pair"]
    write_jsonl(pairs / "validation.jsonl", rows)
    with pytest.raises(InputError, match="validation:3 differs from most"):
        finetune(config, encoder=encoder, dataset=pairs, out_dir=out_dir)


@pytest.mark.parametrize("family", ["bert"])
def test_transformers_gives_the_same_logits_for_a_pair(family: str, encoder: Path, pairs: Path, out_dir: Path) -> None:
    import numpy as np
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    finetune(ClassificationConfig(num_epochs=1, max_seq_length=32), encoder=encoder, dataset=pairs, out_dir=out_dir)
    model = AutoModelForSequenceClassification.from_pretrained(out_dir / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(out_dir / "model")
    with torch.inference_mode():
        logits = model(**tokenizer("房间 很 脏", "满意", return_tensors="pt")).logits[0]
    (found,) = predict(out_dir / "model", [{"text": "房间 很 脏", "text_pair": "满意"}])
    np.testing.assert_allclose(
        logits.softmax(-1).numpy(), [found.probabilities[n] for n in ("好评", "差评")], atol=1e-6
    )
