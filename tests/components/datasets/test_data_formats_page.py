"""docs/data-formats.md stays true: its settings are accepted and its example lines have the fields the code has."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import yaml

from components.corpus.config import CorpusConfig
from components.datasets.audit import Removed
from components.datasets.config import AuditConfig, DatasetConfig
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.qa_config import QuestionAnsweringDatasetConfig
from components.datasets.splits import Dropped
from components.examples import Example, Question, TaggedText
from components.formats import Document, SegmentedDocument
from components.predictions import AnswerPrediction, Prediction, TagPrediction

PAGE = (Path(__file__).parents[3] / "docs" / "data-formats.md").read_text(encoding="utf-8")


KINDS = (
    Example, TaggedText, Question, Dropped, Removed, Document, Prediction, TagPrediction, AnswerPrediction,
)  # fmt: skip


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_settings_on_the_page_are_accepted():
    sections = [next(iter(yaml.safe_load(block).items())) for block in blocks("yaml")]
    configs = {
        "classification": DatasetConfig,
        "ner": NerDatasetConfig,
        "question_answering": QuestionAnsweringDatasetConfig,
        "corpus": CorpusConfig,
    }
    assert {name for name, _ in sections} <= set(configs)
    assert {"classification", "corpus"} <= {name for name, _ in sections}
    for name, values in sections:
        configs[name].model_validate(values.get("dataset", values))


def test_example_lines_have_the_fields_of_the_code():
    kinds = [{field.name for field in fields(kind)} for kind in KINDS]
    assert {field.name for field in fields(SegmentedDocument)} in kinds
    rows = [json.loads(line) for block in blocks("json") for line in block.strip().split("\n")]
    objects = [set(row) for row in rows if isinstance(row, dict) and "id" in row]
    assert len(objects) == 10
    assert all(keys in kinds for keys in objects)


def test_audit_policies_on_the_page_are_the_defaults():
    found = dict(re.findall(r"^\| `(\w+)` \|.*\| `(remove|keep)` \|$", PAGE, flags=re.MULTILINE))
    policies = {name: value for name, value in AuditConfig().model_dump().items() if value in {"remove", "keep"}}
    assert found == policies


def test_the_named_default_figures_are_those_of_the_identity(tmp_path):
    from components.datasets.stage import prepare_dataset

    metrics = prepare_dataset(DatasetConfig(), out_dir=tmp_path)
    kept = sum(metrics[f"num_{split}"] for split in ("train", "validation", "test"))
    identity = re.search(r"`num_rows` = (.*?)\.\n", PAGE)
    assert identity is not None
    assert metrics["num_rows"] == sum(metrics[name] for name in re.findall(r"`(\w+)`", identity[1]))
    assert f"{metrics['num_rows']:,.0f} lines, of which {kept:,.0f} remain" in PAGE
