"""Classification of pairs of texts: a second text column through every reader, its checks and its splits."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from components.datasets.config import DatasetConfig
from components.datasets.stage import prepare_dataset
from components.errors import InputError
from components.examples import SPLITS, read_examples
from components.formats import read_json, read_jsonl

ROWS = [("甲问", "甲答", "1"), ("甲问", "乙答", "0"), ("乙问", "甲答", "0")]


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def write(path, rows, suffix):
    records = [{"text": text, "other": pair, "label": label} for text, pair, label in rows]
    file = path.with_suffix(suffix)
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), file)
    elif suffix == ".jsonl":
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        mark = "," if suffix == ".csv" else "\t"
        file.write_text("".join(mark.join(row) + "\n" for row in [("text", "other", "label"), *rows]), encoding="utf-8")
    return str(file)


def settings(tmp_path, train, suffix=".csv"):
    return {
        "source": "files",
        "train": write(tmp_path / "train", train, suffix),
        "validation": write(tmp_path / "dev", [("丙问", "丙答", "1")], suffix),
        "test": write(tmp_path / "test", [("丁问", "丁答", "0")], suffix),
        "text_pair_column": "other",
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_pairs(tmp_path, out, suffix):
    prepare_dataset(DatasetConfig(**settings(tmp_path, ROWS, suffix)), out_dir=out)
    assert [(row.text, row.text_pair, row.label) for row in read_examples(out, "train")] == ROWS


def test_single_texts_have_no_second_one(tmp_path, out):
    config = {**settings(tmp_path, ROWS), "text_pair_column": None}
    prepare_dataset(DatasetConfig(**config), out_dir=out)
    assert {row.text_pair for row in read_examples(out, "train")} == {None}
    assert read_json(out / "task.json") == {"task": "classification"}
    assert read_json(out / "normalization.json")["nfkc"] is True


def test_both_texts_are_normalised_and_counted(tmp_path, out):
    metrics = prepare_dataset(DatasetConfig(**settings(tmp_path, [*ROWS, ("１", "２３\u200b", "1")])), out_dir=out)
    row = read_examples(out, "train")[-1]
    assert (row.text, row.text_pair) == ("1", "23")
    assert (metrics["num_nfkc"], metrics["num_invisible_characters"]) == (3, 1)


def test_text_06_a_pair_needs_both_texts(tmp_path, out):
    rows = [*ROWS, ("戊问", " ", "1"), ("", "戊答", "0")]
    metrics = prepare_dataset(DatasetConfig(**settings(tmp_path, rows)), out_dir=out)
    assert (metrics["num_rows_empty_text"], metrics["num_train"]) == (2, 3)
    assert [row["id"] for row in read_jsonl(out / "dropped.jsonl")] == ["train.csv:5", "train.csv:6"]


def test_duplicates_and_contradictions_are_those_of_both_texts(tmp_path, out):
    rows = [(f"问{n}", f"答{m}", str(m % 2)) for n in range(20) for m in range(5)]
    rows += [("问0", "答 0", "0"), ("问1", "答1", "0"), ("问", "0答0", "1")]
    config = DatasetConfig(source="files", train=write(tmp_path / "train", rows, ".csv"), text_pair_column="other")
    metrics = prepare_dataset(config, out_dir=out)
    assert (metrics["num_rows_duplicate"], metrics["num_rows_contradictory_label"]) == (1, 2)
    kept = [row for split in SPLITS for row in read_examples(out, split)]
    assert len(kept) == 103 - 3
    assert len({row.text for row in read_examples(out, "test")} & {row.text for row in read_examples(out, "train")}) > 0


def test_missing_or_unusable_columns_are_refused(tmp_path, out):
    config = {**settings(tmp_path, ROWS), "text_pair_column": "othr"}
    with pytest.raises(InputError, match=r"no column 'othr'.*did you mean 'other'"):
        prepare_dataset(DatasetConfig(**config), out_dir=out)
    with pytest.raises(ValidationError, match="package data has single texts"):
        DatasetConfig(text_pair_column="other")
    config = {**settings(tmp_path, [*ROWS, ("x", "y" * 50, "1")], ".jsonl"), "max_text_chars": 40}
    with pytest.raises(InputError, match=r"train.jsonl:4: field of 50 characters"):
        prepare_dataset(DatasetConfig(**config), out_dir=out)
