from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.errors import InputError
from components.examples import Example
from components.finetuning.classification import read_classification
from components.finetuning.config import ClassificationConfig
from components.finetuning.data import POOL_BATCHES, TaskData, blocks, grouped_batches
from components.formats import read_jsonl, write_jsonl


def read_task_data(
    dataset: Path, num_train_examples: int | None, seed: int, unseen_label: str = "stop"
) -> TaskData[Example]:
    config = ClassificationConfig(num_train_examples=num_train_examples, seed=seed, unseen_label=unseen_label)
    return read_classification(dataset, config)


def change_row(dataset: Path, split: str, line: int, **values: object) -> None:
    rows = list(read_jsonl(dataset / f"{split}.jsonl"))
    rows[line - 1] |= values
    write_jsonl(dataset / f"{split}.jsonl", rows)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_ft_01_label_outside_the_range_is_named_with_its_line(dataset: Path, split: str) -> None:
    change_row(dataset, split, 5, label="中评")
    with pytest.raises(InputError, match=r"label '中评' is not in labels.json: '好评', '差评'") as caught:
        read_task_data(dataset, None, 0)
    assert caught.value.file == str(dataset / f"{split}.jsonl")
    assert caught.value.line == 5


def test_ft_02_unseen_labels_are_counted_when_asked_for(dataset: Path) -> None:
    change_row(dataset, "test", 2, label="中评")
    change_row(dataset, "validation", 3, label="中评")
    data = read_task_data(dataset, None, 0, "count_as_wrong")
    assert data.labels == ["好评", "差评"]
    assert data.num_unseen_labels == 2
    assert data.test[1] == Example("test.csv:2", "房间 很 脏", "中评")
    change_row(dataset, "train", 1, label="中评")
    with pytest.raises(InputError, match=r"train\.jsonl:1: label '中评'"):
        read_task_data(dataset, None, 0, "count_as_wrong")


@pytest.mark.parametrize("value", [1.0, 1, True, None, ["好评"]])
def test_ft_03_labels_that_are_not_strings_are_refused_with_their_line(dataset: Path, value: object) -> None:
    change_row(dataset, "train", 7, label=value)
    with pytest.raises(InputError, match=r"train\.jsonl:7: label .* not a string") as caught:
        read_task_data(dataset, None, 0)
    assert "quote" in caught.value.remedy


def test_ft_05_names_that_look_like_other_types_stay_strings(dataset: Path) -> None:
    names = ["yes", "no", "on", "1e3", "010", "12:30", "~", "null"]
    (dataset / "labels.json").write_text(json.dumps(sorted(names)), encoding="utf-8")
    for split in ("train", "validation", "test"):
        write_jsonl(dataset / f"{split}.jsonl", [{"id": f"{split}:{n}", "text": "好", "label": n} for n in names])
    data = read_task_data(dataset, None, 0)
    assert data.labels == sorted(names)
    assert {example.label for example in data.train} == set(names)


@pytest.mark.parametrize("value", [True, 8, 1000.0, None])
def test_ft_05_label_names_of_another_type_are_refused(dataset: Path, value: object) -> None:
    (dataset / "labels.json").write_text(json.dumps([value, "好评"]), encoding="utf-8")
    with pytest.raises(InputError, match="is not a string"):
        read_task_data(dataset, None, 0)


def test_ft_10_repeated_id_names_both_lines(dataset: Path) -> None:
    change_row(dataset, "test", 9, id="test.csv:4")
    with pytest.raises(InputError, match=r"test\.jsonl:9: id 'test.csv:4' repeats the one of line 4"):
        read_task_data(dataset, None, 0)


def test_other_data_that_cannot_be_used_is_refused(dataset: Path) -> None:
    with pytest.raises(InputError, match="num_train_examples is 17, train has 16"):
        read_task_data(dataset, 17, 0)
    train = (dataset / "train.jsonl").read_text(encoding="utf-8")
    (dataset / "train.jsonl").write_text(train + "{oops\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.jsonl:17: not a JSON value"):
        read_task_data(dataset, None, 0)
    (dataset / "train.jsonl").write_text('{"id": "1", "label": "好评"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.jsonl:1: a row needs the fields"):
        read_task_data(dataset, None, 0)
    write_jsonl(dataset / "train.jsonl", [{"id": str(n), "text": "好", "label": "好评"} for n in range(4)])
    with pytest.raises(InputError, match="all 4 training examples carry the label '好评'"):
        read_task_data(dataset, None, 0)
    (dataset / "train.jsonl").write_text(train, encoding="utf-8")
    (dataset / "validation.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="the validation split has no examples"):
        read_task_data(dataset, None, 0)
    (dataset / "test.jsonl").unlink()
    (dataset / "validation.jsonl").write_text(train, encoding="utf-8")
    with pytest.raises(InputError, match=r"test\.jsonl: no such file"):
        read_task_data(dataset, None, 0)


def test_budgets_are_nested_and_follow_the_seed(dataset: Path) -> None:
    def chosen(size: int, seed: int) -> list[str]:
        return [example.id for example in read_task_data(dataset, size, seed).train]

    assert chosen(6, 3) == chosen(12, 3)[:6]
    assert chosen(12, 3) != chosen(12, 4)


def test_batches_hold_every_position_once_and_follow_from_seed_and_epoch() -> None:
    lengths = [(7 * n) % 41 + 1 for n in range(203)]
    batches = grouped_batches(lengths, 8, seed=5, epoch=2)
    assert sorted(position for batch in batches for position in batch) == list(range(203))
    assert sorted(map(len, batches)) == [3] + [8] * 25
    assert batches == grouped_batches(lengths, 8, seed=5, epoch=2)
    assert batches != grouped_batches(lengths, 8, seed=5, epoch=3)
    assert batches != grouped_batches(lengths, 8, seed=6, epoch=2)


def test_batches_of_similar_length_save_padding() -> None:
    lengths = [(7 * n) % 41 + 1 for n in range(POOL_BATCHES * 8 * 4)]
    padded = sum(max(lengths[p] for p in batch) * len(batch) for batch in grouped_batches(lengths, 8, 0, 0))
    assert padded < 1.25 * sum(lengths)


def test_windows_cut_a_stream_without_holding_it() -> None:
    pulled = []

    def stream():
        for number in range(10):
            pulled.append(number)
            yield str(number)

    parts = blocks(stream(), 4)
    assert next(parts) == ["0", "1", "2", "3"]
    assert pulled == [0, 1, 2, 3]
    assert list(parts) == [["4", "5", "6", "7"], ["8", "9"]]
