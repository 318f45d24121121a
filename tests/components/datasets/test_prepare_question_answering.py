"""The stage prepare_question_answering: shapes, policies, ids, splits, and counts that add up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from components.datasets.qa_config import QuestionAnsweringDatasetConfig
from components.datasets.qa_stage import prepare_question_answering
from components.errors import InputError
from components.examples import SPLITS, Answer, read_any_examples, read_task
from components.formats import read_json, read_jsonl

DATA = Path(__file__).parents[4] / "shared" / "data"
shared = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside the checkout")
DROPPED = ("duplicate", "empty_text", "inconsistent_answers", "no_valid_answer", "over_limit")
OUTCOMES = ("exact", "repaired", "unplaced", "skipped", "empty", "dropped")


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def question(identifier, text, *answers, **more):
    return {"id": identifier, "question": text, "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


def squad(path, *articles):
    """A file of articles, each a list of (context, questions)."""
    data = [{"title": f"t{n}", "paragraphs": [{"context": c, "qas": q} for c, q in a]} for n, a in enumerate(articles)]
    path.write_text(json.dumps({"version": "1", "data": data}, ensure_ascii=False, indent=1), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path):
    """Validation and test files that are all right."""
    return {
        "validation": squad(tmp_path / "v.json", [("春天来了。", [question("v1", "什么来了？", ("春天", 0))])]),
        "test": squad(tmp_path / "s.json", [("冬天走了。", [question("s1", "什么走了？", ("冬天", 0))])]),
    }


def prepare(out, **settings):
    metrics = prepare_question_answering(QuestionAnsweringDatasetConfig(source="files", **settings), out_dir=out)
    kept = sum(metrics[f"num_{split}"] for split in SPLITS)
    assert metrics["num_questions"] == kept + sum(metrics[f"num_questions_{reason}"] for reason in DROPPED)
    assert metrics["num_answers"] == sum(metrics[f"num_answers_{outcome}"] for outcome in OUTCOMES)
    return metrics


def refused(out, message, **settings):
    with pytest.raises(InputError, match=message) as caught:
        prepare_question_answering(QuestionAnsweringDatasetConfig(source="files", **settings), out_dir=out)
    assert list(out.iterdir()) == []
    return caught.value


def test_several_answers_and_one_character_answers_are_kept(out, tmp_path, files):
    train = squad(tmp_path / "t.json", [("今天天气好。", [question("t1", "天气怎样？", ("好", 4), ("天气好", 2))])])
    metrics = prepare(out, train=train, **files)
    (row,) = read_any_examples(out, "train")
    assert row.answers == (Answer("好", 4), Answer("天气好", 2))
    assert (row.id, row.text, row.question, row.leaked) == ("t1", "今天天气好。", "天气怎样？", False)
    assert read_task(out) == "question_answering"
    assert read_json(out / "normalization.json")["nfkc"] is True
    assert metrics["num_answers_exact"] == 4
    assert not (out / "labels.json").exists()


def test_ft_06_misaligned_answers_are_repaired_or_named(out, tmp_path, files):
    questions = [
        question("t1", "天气怎样？", ("天气", 3)),
        question("t2", "多少人？", ("300", 1), ("三百", 7)),
        question("t3", "几年？", ("1990.0", -1)),
    ]
    metrics = prepare(out, train=squad(tmp_path / "t.json", [("今天天气好，有三百人。", questions)]), **files)
    rows = {row.id: row for row in read_any_examples(out, "train")}
    assert rows["t1"].answers == (Answer("天气", 2),)
    assert rows["t2"].answers == (Answer("300", None), Answer("三百", 7))
    assert rows["t3"].answers == (Answer("1990.0", None),)
    assert (metrics["num_answers_repaired"], metrics["num_answers_unplaced"]) == (1, 2)
    assert metrics["num_questions_without_span"] == 1
    assert next(read_jsonl(out / "misaligned.jsonl")) == {
        "id": "t1",
        "file": "t.json",
        "place": "data[0].paragraphs[0].qas[0].answers[0]",
        "given_start": 3,
        "expected": "天气",
        "found": "气好",
        "nearest": 2,
        "unit": None,
        "outcome": "repaired",
    }


def test_ft_06_policy_stop_names_file_line_id_texts_and_place(out, tmp_path, files):
    train = squad(
        tmp_path / "t.json", [("今天天气好", [question("t1", "?", ("天气", 3)), question("t2", "?", ("无", 3))])]
    )
    error = refused(
        out, "id 't1'.*'天气' at 3: found '气好', nearest at 2; 2 such answer", train=train, misaligned="stop", **files
    )
    assert error.line == Path(train).read_text("utf-8").split("\n").index('       "id": "t1",') + 1
    assert error.file == train


def test_text_10_policy_stop_tells_the_unit(out, tmp_path, files):
    train = squad(tmp_path / "t.json", [("😀天气好", [question("t1", "?", ("天气", 2))])])
    refused(
        out, "the offset counts UTF-16 code units, expected are code points", train=train, misaligned="stop", **files
    )


def test_ft_06_policy_skip_answer(out, tmp_path, files):
    questions = [question("t1", "?", ("天气", 3), ("好", 4)), question("t2", "?", ("无", 3))]
    train = squad(tmp_path / "t.json", [("今天天气好", questions)])
    metrics = prepare(out, train=train, misaligned="skip_answer", **files)
    assert [(row.id, row.answers) for row in read_any_examples(out, "train")] == [("t1", (Answer("好", 4),))]
    assert (metrics["num_answers_skipped"], metrics["num_questions_no_valid_answer"]) == (2, 1)
    assert list(read_jsonl(out / "dropped.jsonl")) == [{"id": "t2", "reason": "no_valid_answer", "other": None}]


def test_ft_10_duplicate_ids_name_both_lines(out, tmp_path, files):
    rows = [question("q1", "甲？", ("天", 0)), question("q1", "乙？", ("天", 0))]
    train = squad(tmp_path / "t.json", [("天气好", rows)])
    lines = [n for n, line in enumerate(Path(train).read_text("utf-8").split("\n"), 1) if '"id": "q1"' in line]
    error = refused(out, rf"qas\[1\] \(id 'q1'\).*used at .*t.json:{lines[0]} \(.*qas\[0\]\)", train=train, **files)
    assert error.line == lines[1]


def test_ft_10_an_id_of_two_files_is_refused(out, tmp_path, files):
    train = squad(tmp_path / "t.json", [("天气好", [question("s1", "甲？", ("天", 0))])])
    refused(out, r"s.json:\d+: .*id 's1'.*t.json:\d+", train=train, **files)


@pytest.mark.parametrize("bad", [None, "", " ", 1.5, True])
def test_ft_10_missing_ids_are_refused(out, tmp_path, files, bad):
    train = squad(tmp_path / "t.json", [("天气好", [question(bad, "甲？", ("天", 0))])])
    refused(out, r"data\[0\].paragraphs\[0\].qas\[0\]: id is", train=train, **files)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (question("t1", "?", ("", 0)), r"answers\[0\] has an empty text"),
        (question("t1", "?", ("天", 0), is_impossible=True), "marked is_impossible, but has 1 answer"),
        (question("t1", "?"), "has no answer and is not marked is_impossible"),
    ],
)
def test_inconsistent_answers_stop_or_are_dropped(out, tmp_path, files, row, problem):
    train = squad(tmp_path / "t.json", [("天气好", [row, question("t2", "?", ("天", 0))])])
    refused(out, problem, train=train, **files)
    metrics = prepare(out, train=train, inconsistent="drop", **files)
    assert [row.id for row in read_any_examples(out, "train")] == ["t2"]
    assert metrics["num_questions_inconsistent_answers"] == 1


def test_an_empty_answer_beside_a_good_one_is_dropped_alone(out, tmp_path, files):
    train = squad(tmp_path / "t.json", [("天气好", [question("t1", "?", (" ", 0), ("好", 2))])])
    metrics = prepare(out, train=train, inconsistent="drop", **files)
    assert read_any_examples(out, "train")[0].answers == (Answer("好", 2),)
    assert metrics["num_answers_empty"] == 1


def test_unanswerable_questions_of_squad_2(out, tmp_path, files):
    rows = [question("t1", "?", is_impossible=True), question("t2", "?", ("天", 0), is_impossible=False)]
    rows += [{"id": "t3", "question": "?", "is_impossible": True}]
    metrics = prepare(out, train=squad(tmp_path / "t.json", [("天气好", rows)]), **files)
    assert [len(row.answers) for row in read_any_examples(out, "train")] == [0, 1, 0]
    assert metrics["num_questions_unanswerable"] == 2


def test_empty_questions_and_passages_are_dropped_and_counted(out, tmp_path, files):
    rows = [question("t1", " ", ("天", 0)), question("t2", "?", ("天", 0))]
    train = squad(tmp_path / "t.json", [("天气好", rows), ("\u3000", [question("t3", "?", ("天", 0))])])
    assert prepare(out, train=train, **files)["num_questions_empty_text"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [\n{"paragraphs": ]}', r"t.json:2: not JSON \(Expecting value at column 16"),
        ("[]", r"the file: \[\] is not an object"),
        ('{"rows": []}', "the file: no 'data', found 'rows'"),
        ('{"data": []}', "holds no question"),
        ('{"data": [{"paragraphs": {}}]}', r"data\[0\].paragraphs: \{\} is not a list"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"data\[0\].paragraphs\[0\]: no 'context', found 'qas'"),
        (
            '{"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "1", "question": "q"}]}]}]}',
            r"qas\[0\]: no 'answers'",
        ),
        ('{"data": NaN}', "NaN is not JSON"),
        ("[" * 200_000, "not JSON"),
    ],
)
def test_other_shapes_are_refused_with_their_place(out, tmp_path, files, content, message):
    (tmp_path / "t.json").write_text(content, encoding="utf-8")
    refused(out, message, train=str(tmp_path / "t.json"), **files)


@pytest.mark.parametrize("start", ["3", 1.0, True, None])
def test_an_offset_must_be_a_whole_number(out, tmp_path, files, start):
    train = squad(tmp_path / "t.json", [("天气好", [question("t1", "?", ("天", start))])])
    refused(out, r"answers\[0\].answer_start: .* is not a whole number", train=train, **files)


def test_text_03_a_surrogate_is_refused_with_its_line(out, tmp_path, files):
    (tmp_path / "t.json").write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "天\ud83d", "qas": [question("t1", "?", ("天", 0))]}]}]})
    )
    refused(out, r"t.json:1: lone surrogate U\+D83D at column 2", train=str(tmp_path / "t.json"), **files)


def test_text_01_wrong_encoding_is_refused(out, tmp_path, files):
    (tmp_path / "t.json").write_bytes('{"data": "天气很好"}'.encode("gb18030"))
    refused(out, "set encoding: gb18030", train=str(tmp_path / "t.json"), **files)


def test_gzip_gives_the_same(out, tmp_path, files):
    train = squad(tmp_path / "t.json", [("天气好", [question("t1", "?", ("天", 0))])])
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(Path(train).read_bytes()))
    prepare(out, train=train + ".gz", **files)
    assert read_any_examples(out, "train")[0].answers == (Answer("天", 0),)


def many(path, num_articles=60):
    return squad(
        path,
        *(
            [
                (f"第{n}篇第{m}段。", [question(f"{n}-{m}-{k}", f"问{k}？", ("第", 0)) for k in range(2)])
                for m in range(3)
            ]
            for n in range(num_articles)
        ),
    )


def test_articles_stay_together(out, tmp_path):
    metrics = prepare(out, train=many(tmp_path / "t.json"), test_fraction=0.3, validation_fraction=0.2)
    articles = {split: {row.id.split("-")[0] for row in read_any_examples(out, split)} for split in SPLITS}
    assert sum(map(len, articles.values())) == 60 == len(set.union(*articles.values()))
    assert metrics["num_test"] == 6 * len(articles["test"])
    assert 8 <= len(articles["test"]) <= 28


def test_paragraphs_may_part_but_not_their_questions(out, tmp_path):
    prepare(out, train=many(tmp_path / "t.json"), split_by="paragraph")
    paragraphs = {split: {row.text for row in read_any_examples(out, split)} for split in SPLITS}
    assert sum(map(len, paragraphs.values())) == 180 == len(set.union(*paragraphs.values()))
    articles = {split: {row.id.split("-")[0] for row in read_any_examples(out, split)} for split in SPLITS}
    assert sum(map(len, articles.values())) > 60


def test_added_articles_move_no_other_and_limits_count(out, tmp_path):
    prepare(out, train=many(tmp_path / "t.json", 40))
    before = {row.id: split for split in SPLITS for row in read_any_examples(out, split)}
    (tmp_path / "more").mkdir()
    metrics = prepare(tmp_path / "more", train=many(tmp_path / "t2.json", 60), num_test_examples=1000)
    after = {row.id: split for split in SPLITS for row in read_any_examples(tmp_path / "more", split)}
    assert before.items() <= after.items()
    (tmp_path / "less").mkdir()
    limited = prepare(tmp_path / "less", train=many(tmp_path / "t2.json", 60), num_test_examples=5)
    assert limited["num_test"] == 5
    assert limited["num_questions_over_limit"] == metrics["num_test"] - 5


def test_an_empty_split_is_refused(out, tmp_path):
    refused(out, "split is empty", train=many(tmp_path / "t.json", 1))


def test_text_is_the_original_one(out, tmp_path, files):
    passage = "共１２３ 人,\n是<b>真的</b>\u200b。"
    train = squad(tmp_path / "t.json", [(passage, [question("t1", "？ １", ("１２３", 1))])])
    prepare(out, train=train, **files)
    (row,) = read_any_examples(out, "train")
    assert (row.text, row.question, row.answers) == (passage, "？ １", (Answer("１２３", 1),))


def test_traditional_is_converted_within_its_passage(out, tmp_path, files):
    rows = [question("t1", "誰發現？", ("發", 5), ("無處可尋發", -1))]
    train = squad(tmp_path / "t.json", [("他的頭髮，發財了。", rows)])
    prepare(out, train=train, opencc="t2s", **files)
    (row,) = read_any_examples(out, "train")
    assert (row.text, row.question) == ("他的头发，发财了。", "谁发现？")
    assert row.answers == (Answer("发", 5), Answer("无处可寻发", None))


def test_local_hub_folder(out, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "hub"
    folder.mkdir()
    rows = [
        {
            "id": f"q{n}",
            "title": f"t{n // 2}",
            "context": f"第{n}天下雨",
            "question": "?",
            "answers": {"text": ["雨"], "answer_start": [len(f"第{n}天下")]},
        }
        for n in range(60)
    ]
    rows[7]["answers"] = {"text": [], "answer_start": []}
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    config = QuestionAnsweringDatasetConfig(source="hub", hub_id=str(folder), test_fraction=0.3)
    metrics = prepare_question_answering(config, out_dir=out)
    assert metrics["num_questions"] == 60 == sum(metrics[f"num_{split}"] for split in SPLITS)
    assert metrics["num_questions_unanswerable"] == 1
    assert metrics["num_answers_exact"] == 59


def test_settings_that_cannot_work():
    with pytest.raises(ValidationError, match="needs train"):
        QuestionAnsweringDatasetConfig(source="files")
    with pytest.raises(ValidationError, match="needs hub_id"):
        QuestionAnsweringDatasetConfig(source="hub")
    with pytest.raises(ValidationError, match="leave nothing for train"):
        QuestionAnsweringDatasetConfig(test_fraction=0.6, validation_fraction=0.4)


# --- real data -------------------------------------------------------------------------------------------------------


@shared
@pytest.mark.shared_data
def test_ft_06_cmrc_2018(out):
    folder = DATA / "qa-zh-cmrc2018"
    metrics = prepare(out, train=str(folder / "cmrc2018_trial.json"), test=str(folder / "cmrc2018_dev.json"))
    assert (metrics["num_questions"], metrics["num_answers"]) == (1002 + 3219, 1002 + 9657)
    findings = list(read_jsonl(out / "misaligned.jsonl"))
    dev = [row for row in findings if row["file"] == "cmrc2018_dev.json"]
    assert len(dev) == 200
    assert sum(row["given_start"] == -1 for row in dev) == 193
    trial = [row for row in findings if row["file"] == "cmrc2018_trial.json"]
    assert len(trial) == 5
    assert all(row["given_start"] - row["nearest"] == 1 and row["outcome"] == "repaired" for row in trial)
    # The passage of all five begins with a character that UTF-16 counts twice.
    assert {row["unit"] for row in trial} == {"UTF-16 code units"}
    assert metrics["num_questions_empty_text"] == 2
    for split in SPLITS:
        for row in read_any_examples(out, split):
            for answer in row.answers:
                assert answer.start is None or row.text.startswith(answer.text, answer.start)
    for name in ("exact", "skip"):
        (out.parent / name).mkdir()
    strict = prepare(
        out.parent / "skip",
        train=str(folder / "cmrc2018_trial.json"),
        test=str(folder / "cmrc2018_dev.json"),
        misaligned="skip_answer",
    )
    assert strict["num_questions_no_valid_answer"] == 5 + 3  # of five trial questions the only answer was off by one


@shared
@pytest.mark.shared_data
def test_ft_06_drcd_has_no_bad_offset_and_converts(out):
    metrics = prepare(out, train=str(DATA / "qa-zh-drcd" / "DRCD_test.json"), opencc="t2s")
    assert (metrics["num_questions"], metrics["num_answers_exact"]) == (3493, 6986)
    rows = read_any_examples(out, "train")
    assert all(row.text.startswith(answer.text, answer.start) for row in rows for answer in row.answers)


@shared
@pytest.mark.shared_data
def test_squad_2(out):
    metrics = prepare(out, train=str(DATA / "qa-en-squad2" / "dev-v2.0.json"), misaligned="stop")
    assert (metrics["num_questions"], metrics["num_questions_unanswerable"]) == (6078, 3168)
    assert metrics["num_answers_exact"] == 10052
