"""The stage ``prepare_ner``: splits, limits, ids, types, conversion, the hub, and the same bytes every time."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pydantic import ValidationError

from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_stage import prepare_ner
from components.errors import InputError
from components.examples import read_any_examples, read_labels, read_task

SPLITS = ("train", "validation", "test")


def record(text, *entities, **fields):
    return {"text": text, "entities": [{"start": s, "end": e, "label": name} for s, e, name in entities], **fields}


def many(number, first=0):
    return [record(f"第{row}人江{row}来", (0, 1, "X")) for row in range(first, first + number)]


def write(path, records):
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return str(path)


def prepare(tmp_path, out="out", **settings):
    out_dir = tmp_path / out
    out_dir.mkdir()
    return out_dir, prepare_ner(NerDatasetConfig(source="files", **settings), out_dir=out_dir)


def refused(tmp_path, **settings):
    with pytest.raises(InputError) as caught:
        prepare(tmp_path, **settings)
    assert list((tmp_path / "out").iterdir()) == []
    return str(caught.value)


def dropped(out_dir):
    return [json.loads(line) for line in (out_dir / "dropped.jsonl").read_text("utf-8").split("\n")[:-1]]


def test_artifact_holds_every_file_and_the_counts_add_up(tmp_path):
    records = [*many(50), many(1)[0], record("矛盾", (0, 1, "X")), record("矛盾"), record("  ")]
    out_dir, metrics = prepare(tmp_path, train=write(tmp_path / "a.jsonl", records), num_test_examples=3)
    assert {path.name for path in out_dir.iterdir()} == {
        *("task.json", "labels.json", "normalization.json", "dropped.jsonl", "dataset.json"),
        *(f"{split}.jsonl" for split in SPLITS),
    }
    assert read_task(out_dir) == "ner"
    assert read_labels(out_dir) == ["X"]
    reasons = Counter(row["reason"] for row in dropped(out_dir))
    assert reasons == {
        "duplicate": 1,
        "contradictory_tags": 2,
        "empty_text": 1,
        "over_limit": metrics["num_rows_over_limit"],
    }
    assert metrics["num_test"] == 3
    assert metrics["num_rows"] == 54 == sum(metrics[f"num_{split}"] for split in SPLITS) + sum(reasons.values())
    assert json.loads((out_dir / "normalization.json").read_text())["nfkc"] is True
    card = json.loads((out_dir / "dataset.json").read_text())
    assert card["scheme"] == "iob2"
    assert set(card["files"]) == {"a.jsonl"}


def test_same_input_same_bytes_and_another_seed_another_split(tmp_path):
    train = write(tmp_path / "a.jsonl", many(80))
    one, _ = prepare(tmp_path, "one", train=train)
    two, _ = prepare(tmp_path, "two", train=train)
    other, _ = prepare(tmp_path, "other", train=train, seed=1)
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes()
    assert (one / "test.jsonl").read_bytes() != (other / "test.jsonl").read_bytes()


def test_added_rows_move_no_other_row(tmp_path):
    def split_of(out_dir):
        return {row.text: split for split in SPLITS for row in read_any_examples(out_dir, split)}

    few = split_of(prepare(tmp_path, "few", train=write(tmp_path / "a.jsonl", many(60)))[0])
    more = split_of(prepare(tmp_path, "more", train=write(tmp_path / "b.jsonl", many(30, 100) + many(60)))[0])
    assert few.items() <= more.items()


def test_documents_stay_together_and_keep_their_repeated_rows(tmp_path):
    records = [{**row, "doc": index // 3} for index, row in enumerate(many(90))]
    records.append({**records[0], "doc": 0})
    out_dir, metrics = prepare(tmp_path, train=write(tmp_path / "a.jsonl", records), document_column="doc")
    assert metrics["num_rows_duplicate"] == 0
    splits = [
        {(int(row.id.split(":")[1]) - 1) // 3 for row in read_any_examples(out_dir, split)} - {30} for split in SPLITS
    ]
    assert sum(map(len, splits)) == 30
    assert len(set().union(*splits)) == 30


def test_given_files_are_taken_as_they_are(tmp_path):
    _, metrics = prepare(
        tmp_path,
        train=write(tmp_path / "a.jsonl", many(3) + many(1)),
        validation=write(tmp_path / "b.jsonl", many(2)),
        test=write(tmp_path / "c.jsonl", many(5, 9)),
    )
    assert [metrics[f"num_{split}"] for split in SPLITS] == [4, 2, 5]


def test_unseen_type_stops_with_its_line_or_counts_as_wrong(tmp_path):
    held_out = "江\tB-PER\n来\tO\n\n北\tB-LOC\n京\tI-LOC\n"
    (tmp_path / "t.conll").write_text(held_out.replace("LOC", "PER"), "utf-8")
    (tmp_path / "v.conll").write_text("来\tB-PER\n", "utf-8")
    (tmp_path / "h.conll").write_text(held_out, "utf-8")
    files = {
        "train": str(tmp_path / "t.conll"),
        "validation": str(tmp_path / "v.conll"),
        "test": str(tmp_path / "h.conll"),
    }
    message = refused(tmp_path, **files)
    assert "h.conll:4: entity type 'LOC' of the test split is not in the training split, which has 'PER'" in message
    out_dir, metrics = prepare(tmp_path, "counted", unseen_label="count_as_wrong", **files)
    assert metrics["num_entities_unseen_label"] == 1
    assert read_labels(out_dir) == ["PER"]
    assert read_any_examples(out_dir, "test")[1].tags == ("B-LOC", "I-LOC")


def test_only_allowed_types(tmp_path):
    train = write(tmp_path / "a.jsonl", [*many(40), record("好人", (0, 1, "Y"))])
    assert "a.jsonl:41: entity type 'Y'" in refused(tmp_path, train=train, labels=["X"])
    out_dir, _ = prepare(tmp_path, "both", train=train, labels=["Y", "X", "Z"])
    assert read_labels(out_dir) == ["X", "Y", "Z"]


def test_repeated_id_names_both_lines(tmp_path):
    rows = [{**row, "id": index % 9} for index, row in enumerate(many(10))]
    message = refused(tmp_path, train=write(tmp_path / "a.jsonl", rows), id_column="id")
    assert "a.jsonl:10: id '0' was used at " in message
    assert "a.jsonl:1 already" in message


def test_long_text_is_refused_with_its_line(tmp_path):
    train = write(tmp_path / "a.jsonl", [*many(3), record("长" * 11)])
    assert "a.jsonl:4: text of 11 characters, the limit is 10" in refused(tmp_path, train=train, max_text_chars=10)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "no text among 0 row(s)"),
        ([record("无")] * 2, "split is empty"),
        ([record(f"无{n}") for n in range(40)], "no entity among"),
    ],
)
def test_useless_data_is_refused(tmp_path, records, message):
    assert message in refused(tmp_path, train=write(tmp_path / "a.jsonl", records))


def test_lone_surrogate_is_refused_or_replaced(tmp_path):
    train = write(tmp_path / "a.jsonl", [*many(40), record("好\ud83d", (0, 1, "X"))])
    assert "a.jsonl:41: lone surrogate U+D83D at character 2" in refused(tmp_path, train=train)
    _, metrics = prepare(tmp_path, "replaced", train=train, normalization={"surrogates": "replace"})
    assert metrics["num_surrogates"] == 1


def test_full_width_text_stays_and_opencc_keeps_offsets(tmp_path):
    pytest.importorskip("opencc")
    rows = [record(f"頭髮Ａ{row}發財", (0, 2, "X")) for row in range(40)]
    out_dir, metrics = prepare(tmp_path, train=write(tmp_path / "a.jsonl", rows), opencc="t2s")
    example = read_any_examples(out_dir, "train")[0]
    assert example.text.startswith("头发Ａ")
    assert example.text.endswith("发财")
    assert example.tags[:3] == ("B-X", "I-X", "O")
    assert metrics["num_characters_converted"] == 40 * 4


def test_hub_folder_with_class_labels(tmp_path):
    datasets = pytest.importorskip("datasets")
    names = ["O", "B-PER", "I-PER"]
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    rows = {"tokens": [["Ann", "Lee", str(row)] for row in range(40)], "ner_tags": [[1, 2, 0]] * 40}
    folder = tmp_path / "hub"
    folder.mkdir()
    datasets.Dataset.from_dict(rows, features=features).to_parquet(str(folder / "train.parquet"))
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    config = NerDatasetConfig(source="hub", hub_id=str(folder), language="en")
    metrics = prepare_ner(config, out_dir=out_dir)
    example = read_any_examples(out_dir, "train")[0]
    assert example.tags == ("B-PER", "I-PER", "O")
    assert example.text.startswith("Ann Lee ")
    assert metrics["num_rows"] == 40
    assert set(json.loads((out_dir / "dataset.json").read_text())["files"]) == {"train.parquet"}
    with pytest.raises(InputError, match="no column 'labels'; columns are tokens, ner_tags"):
        prepare_ner(config.model_copy(update={"tags_column": "labels"}), out_dir=out_dir)


@pytest.mark.parametrize(
    "settings",
    [{"source": "files"}, {"source": "hub"}, {"test_fraction": 0.9}, {"labels": ["a", "a"]}, {"schema": "bio"}],
)
def test_settings_that_cannot_work(settings):
    with pytest.raises(ValidationError):
        NerDatasetConfig(**settings)


def test_chinese_columns_may_be_words(tmp_path):
    content = "".join(f"我{row} O\n爱 O\n北京 B-LOC\n\n" for row in range(40))
    (tmp_path / "a.txt").write_text(content, "utf-8")
    out_dir, metrics = prepare(tmp_path, train=str(tmp_path / "a.txt"), token_unit="words")
    example = read_any_examples(out_dir, "train")[0]
    assert example.text.endswith(" 爱 北京")
    assert example.words()[1:] == ["爱", "北京"]
    assert metrics["num_entities_train"] == metrics["num_train"]
