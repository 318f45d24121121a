"""The stage audit_leaks on named entities, questions and pairs of texts."""

from __future__ import annotations

import pytest

from components.datasets.config import AuditConfig
from components.datasets.stage import audit_leaks
from components.errors import ArtifactError, InputError
from components.examples import (
    SOURCE_SENTENCES,
    SPLITS,
    Answer,
    Example,
    Question,
    TaggedText,
    read_any_examples,
    read_labels,
    read_task,
    write_examples,
    write_labels,
    write_task,
)
from components.formats import read_json, read_jsonl, write_json, write_jsonl

PASSAGE = "中国女排昨天在北京体育馆以三比零战胜了来访的古巴队，主教练郎平对队员的表现十分满意，观众也报以热烈的掌声。"
OTHER = "新建的大桥全长两千米，横跨长江，将于明年春天通车，届时两岸居民过江只需要五分钟时间，运输也方便许多了。"


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def write(folder, task, labels=None, **splits):
    folder.mkdir()
    write_task(folder, task)
    for split in SPLITS:
        write_examples(folder, split, splits[split])
    if labels is not None:
        write_labels(folder, labels)
    write_json(folder / "normalization.json", {"nfkc": True})
    return folder


def tagged(identifier, text, *tags):
    return TaggedText(identifier, text, tuple((n, n + 1) for n in range(len(text))), tags)


def ask(identifier, passage, question, *answers):
    return Question(identifier, passage, question, tuple(Answer(text, passage.index(text)) for text in answers))


def ids(folder, split):
    return [row.id for row in read_any_examples(folder, split)]


def test_tagged_texts(tmp_path, out):
    dataset = write(
        tmp_path / "d",
        "ner",
        ["LOC", "PER"],
        train=[
            tagged("t:1", "在北京", "O", "B-LOC", "I-LOC"),
            tagged("t:2", "见张三", "O", "B-PER", "I-PER"),
            tagged("t:3", "见张三", "O", "O", "O"),
            tagged("t:4", "到上海", "O", "B-LOC", "I-LOC"),
        ],
        validation=[tagged("v:1", "去广州", "O", "B-LOC", "I-LOC")],
        test=[tagged("s:1", "在 北京"[0] + "北京", "O", "B-LOC", "I-LOC"), tagged("s:2", "回家了", "O", "O", "O")],
    )
    metrics = audit_leaks(AuditConfig(), dataset=dataset, out_dir=out)
    assert ids(out, "train") == ["t:2", "t:3", "t:4"]
    assert [row.leaked for row in read_any_examples(out, "test")] == [True, False]
    assert (metrics["num_texts_contradictory"], metrics["num_rows_contradictory"]) == (1, 2)
    assert read_labels(out) == ["LOC", "PER"]
    assert read_task(out) == "ner"
    assert read_json(out / "normalization.json") == {"nfkc": True}
    pair = next(row for row in read_json(out / "audit.json")["pairs"] if row["left"]["split"] == "train")
    assert (pair["contradictory"], pair["left"]["label"]) == (True, "O B-PER I-PER")
    assert "num_test_passage_exact_in_train" not in metrics


def test_a_lost_entity_type_is_refused(tmp_path, out):
    rows = [tagged("t:1", "在北京", "O", "B-LOC", "I-LOC"), tagged("t:2", "见张三", "O", "B-PER", "I-PER")]
    dataset = write(
        tmp_path / "d",
        "ner",
        ["LOC", "PER"],
        train=rows,
        validation=[tagged("v:1", "去广州", "O", "B-LOC", "I-LOC")],
        test=[tagged("s:1", "见张三", "O", "B-PER", "I-PER")],
    )
    with pytest.raises(InputError, match="no training row for label\\(s\\) 'PER'"):
        audit_leaks(AuditConfig(), dataset=dataset, out_dir=out)


def questions(tmp_path, **more):
    return write(
        tmp_path / "d",
        "question_answering",
        train=[
            ask("t1", OTHER, "桥有多长？", "两千米"),
            ask("t2", OTHER, "桥有多长？", "长江"),
            ask("t3", "完全无关的一段话在这里。", "哪里？", "这里"),
            ask("t4", PASSAGE.replace("昨天", "前天"), "谁满意？", "郎平"),
            ask("t5", "又一段无关的话放在那边。", "哪边？", "那边"),
        ],
        validation=[
            ask("v1", "验证集的段落写着别的事。", "什么事？", "别的事"),
            ask("v2", PASSAGE, "对谁？", "古巴队"),
        ],
        test=[
            ask("s1", PASSAGE, "战胜了谁？", "古巴队"),
            ask("s2", OTHER, "桥有多长？", "两千米"),
            ask("s3", "测试集独有的段落没有别人。", "没有谁？", "别人"),
        ],
    )


def test_questions_with_a_shared_passage(tmp_path, out):
    dataset = questions(tmp_path)
    write_jsonl(dataset / SOURCE_SENTENCES, [{"id": "s1", "text": "句子。"}])
    metrics = audit_leaks(AuditConfig(), dataset=dataset, out_dir=out)
    assert list(read_jsonl(out / "dropped.jsonl")) == [
        {"id": "t1", "split": "train", "reason": "duplicate_of_test", "other": "s2"},
        {"id": "t2", "split": "train", "reason": "duplicate_of_test", "other": "s2"},
        {"id": "t4", "split": "train", "reason": "passage_of_test", "other": "s1"},
        {"id": "v2", "split": "validation", "reason": "passage_of_test", "other": "s1"},
    ]
    assert [row.leaked for row in read_any_examples(out, "test")] == [True, True, False]
    expected = {
        "num_test_exact_in_train": 1,
        "num_test_near_in_train": 0,
        "num_test_passage_exact_in_train": 1,
        "num_test_passage_near_in_train": 1,
        "num_test_passage_exact_in_validation": 1,
        "num_test_passages": 3,
        "num_texts_contradictory": 1,
        "num_train_removed_passage_of_test": 1,
        "num_validation_removed_passage_of_test": 1,
        "num_test_leaked": 2,
    }
    assert {name: metrics[name] for name in expected} == expected
    for split in SPLITS:
        gone = sum(value for name, value in metrics.items() if name.startswith(f"num_{split}_removed_"))
        assert metrics[f"num_{split}_in"] == metrics[f"num_{split}"] + gone
    assert not (out / "labels.json").exists()
    assert list(read_jsonl(out / SOURCE_SENTENCES)) == [{"id": "s1", "text": "句子。"}]


def test_kept_questions_are_still_marked(tmp_path, out):
    config = AuditConfig(duplicates_of_test="keep", duplicates_of_validation="keep")
    metrics = audit_leaks(config, dataset=questions(tmp_path), out_dir=out)
    assert (metrics["num_train"], metrics["num_validation"], metrics["num_test_leaked"]) == (5, 2, 2)


def test_answers_in_another_order_do_not_contradict(tmp_path, out):
    train = [ask("t1", OTHER, "桥？", "两千米", "长江"), ask("t2", OTHER, "桥？", "长江", "两千米", "长江")]
    other = [ask("v1", "验证集的段落写着别的事。", "什么事？", "别的事")]
    test = [ask("s1", "测试集独有的段落没有别人。", "没有谁？", "别人")]
    dataset = write(tmp_path / "d", "question_answering", train=train, validation=other, test=test)
    assert audit_leaks(AuditConfig(), dataset=dataset, out_dir=out)["num_texts_contradictory"] == 0


def test_pairs_are_copies_only_with_both_texts(tmp_path, out):
    def pair(identifier, text, text_pair, label):
        return Example(identifier, text, label, text_pair=text_pair)

    train = [pair("t:1", "甲乙", "丙丁", "1"), pair("t:2", "甲", "乙丙丁", "0"), pair("t:3", "戊己", "庚辛", "0")]
    train += [pair("t:4", "壬癸", "子丑", "1")]
    dataset = write(
        tmp_path / "d",
        "classification",
        ["0", "1"],
        train=train,
        validation=[pair("v:1", "寅卯", "辰巳", "0")],
        test=[pair("s:1", "甲 乙", "丙丁", "1"), pair("s:2", "戊己", "辰巳", "0")],
    )
    audit_leaks(AuditConfig(near_duplicates=False), dataset=dataset, out_dir=out)
    assert ids(out, "train") == ["t:2", "t:3", "t:4"]
    assert [row.leaked for row in read_any_examples(out, "test")] == [True, False]
    assert read_any_examples(out, "test")[0].text_pair == "丙丁"


def test_a_row_of_another_task_is_refused(tmp_path, out):
    dataset = questions(tmp_path)
    write_task(dataset, "ner")
    with pytest.raises(ArtifactError, match="no data set artifact"):
        audit_leaks(AuditConfig(), dataset=dataset, out_dir=out)
