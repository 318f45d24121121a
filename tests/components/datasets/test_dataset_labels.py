"""Label rules: ft-01 to ft-05."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml
from pydantic import ValidationError

from components.datasets.config import DatasetConfig
from components.datasets.labels import label_name, label_set
from components.datasets.rows import LabelledText
from components.errors import InputError


def name_of(value, float_labels="refuse", allowed=None):
    return label_name(value, float_labels=float_labels, allowed=allowed, file="a.csv", line=7)


def texts(*labels, file="train.csv"):
    return [LabelledText(f"{file}:{n}", f"t{n}", label, f"{file}:{n}") for n, label in enumerate(labels, 1)]


@pytest.mark.parametrize("value", ["3", "-1", 3, -1])
def test_ft_01_label_outside_the_allowed_set(value):
    with pytest.raises(InputError, match=f"a.csv:7: label '{value}' is not one of '0', '1', '2'"):
        name_of(value, allowed=("2", "0", "1"))


def test_ft_02_unseen_label_is_named_with_file_and_line():
    splits = {
        "train": texts("pos", "neg"),
        "validation": texts("pos"),
        "test": texts("neg", "neutral", file="test.csv"),
    }
    with pytest.raises(
        InputError, match=r"test\.csv:2: label 'neutral' of the test split is not in the training split"
    ):
        label_set(splits, None, stop_on_unseen=True)


def test_ft_02_count_as_wrong_keeps_the_row_and_one_map():
    splits = {"train": texts("pos", "neg"), "validation": texts("neutral"), "test": texts("neutral", "pos")}
    assert label_set(splits, None, stop_on_unseen=False) == (["neg", "pos"], 2)


def test_ft_03_float_labels_need_a_rule():
    with pytest.raises(InputError, match=r"label '1\.0' is a decimal number.*to_integer"):
        name_of("1.0")
    with pytest.raises(InputError, match=r"label '1\.0' is a decimal number"):
        name_of(1.0)
    assert name_of("1.0", "to_integer") == "1"
    assert name_of("-1.00", "to_integer") == "-1"
    assert name_of(0.0, "to_integer") == "0"
    assert name_of("1.0", "text") == "1.0"
    assert name_of("1.0", allowed=("1.0", "2.0")) == "1.0"


@pytest.mark.parametrize("policy", ["refuse", "to_integer"])
def test_ft_03_measurements_are_no_classes(policy):
    with pytest.raises(InputError, match="class names, not measurements"):
        name_of("0.5", policy)


@pytest.mark.parametrize("value", ["", "  ", None])
def test_ft_03_empty_label_is_refused_with_its_line(value):
    with pytest.raises(InputError, match=r"a\.csv:7: label is empty"):
        name_of(value, "to_integer")


def test_ft_04_labels_are_sorted_by_code_point():
    splits = {"train": texts("体育", "财经", "10", "9"), "validation": texts("9"), "test": texts("10")}
    assert label_set(splits, None, stop_on_unseen=True)[0] == ["10", "9", "体育", "财经"]
    assert label_set(splits, ("财经", "9", "10", "体育", "x"), stop_on_unseen=True)[0] == [
        "10",
        "9",
        "x",
        "体育",
        "财经",
    ]


_PROGRAM = """
import sys, pathlib
from components.datasets.config import DatasetConfig
from components.datasets.stage import prepare_dataset
out = pathlib.Path(sys.argv[2]); out.mkdir()
prepare_dataset(DatasetConfig(source="files", train=sys.argv[1], test_fraction=0.3), out_dir=out)
"""


def test_ft_04_same_bytes_whatever_the_hash_seed(tmp_path):
    names = ["体育", "财经", "10", "9"]
    rows = "".join(f"新闻{n}条,{names[n % 4]}\n" for n in range(60))
    (tmp_path / "a.csv").write_text("text,label\n" + rows + rows, encoding="utf-8")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(tmp_path / "a.csv"), str(tmp_path / f"out{seed}")],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for seed in range(5)
    ]
    assert [process.wait() for process in running] == [0] * 5
    contents = [
        {path.name: path.read_bytes() for path in sorted((tmp_path / f"out{seed}").iterdir())} for seed in range(5)
    ]
    assert all(content == contents[0] for content in contents)
    assert len(contents[0]) == 8


@pytest.mark.parametrize("value", ["yes", "no", "on", "1e3", "010", "12:30", "~", "null", "True", "1_000"])
def test_ft_05_labels_stay_as_written(value):
    assert name_of(value) == value


def test_ft_05_other_types_are_refused():
    with pytest.raises(InputError, match="label True is a bool"):
        name_of(True)
    with pytest.raises(InputError, match="label \\['a'\\] is a list"):
        name_of(["a"])
    assert name_of(10) == "10"


@pytest.mark.parametrize("spelling", ["yes", "no", "on", "010", "12:30", "~", "5", "1.5"])
def test_ft_05_a_yaml_label_that_is_no_string_is_refused(spelling):
    labels = yaml.safe_load(f"[{spelling}, pos]")
    assert not isinstance(labels[0], str)
    with pytest.raises(ValidationError, match=r"labels\.0"):
        DatasetConfig(labels=labels)


def test_ft_05_quoted_yaml_labels_round_trip():
    labels = yaml.safe_load("['yes', 'no', 'on', '1e3', '010', '12:30', '~']")
    config = DatasetConfig(labels=labels)
    assert config.labels == ("yes", "no", "on", "1e3", "010", "12:30", "~")
    assert DatasetConfig.model_validate_json(config.model_dump_json()) == config


def test_lone_surrogate_in_a_label():
    with pytest.raises(InputError, match="lone surrogate"):
        name_of("a\ud83d")


def test_one_label_is_no_classification():
    splits = {"train": texts("pos", "pos"), "validation": texts("pos"), "test": texts("pos")}
    with pytest.raises(InputError, match="2 examples with 1 label"):
        label_set(splits, None, stop_on_unseen=True)
