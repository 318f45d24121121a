"""Cloze questions: what a question looks like, what its passage must hold, and what shallow rules reach."""

from __future__ import annotations

from collections import Counter

import pytest

from components.datasets.cloze import ClozeQuestion, build_questions, context_match, question_clause
from components.datasets.cloze_articles import Article, Mention, NamedSentence
from components.datasets.cloze_baselines import longest_common_substring, measure_baselines
from components.datasets.qa_config import ClozeRules, QuestionAnsweringDatasetConfig
from components.datasets.qa_stage import prepare_question_answering
from components.examples import SPLITS, read_any_examples
from components.formats import read_json, read_jsonl

RULES = ClozeRules(min_passage_chars=20, min_question_chars=4, frequent_answer_share=1.0, max_match_chars=10)


def sentence(line, text, *names, words=()):
    mentions = tuple(Mention(text.index(name), text.index(name) + len(name), kind, name) for name, kind in names)
    return NamedSentence(text, line, mentions, tuple((text.index(word), word) for word in words))


ARTICLE = Article(
    (
        sentence(1, "张三访问上海工厂", ("张三", "PER"), ("上海", "LOC"), words=("访问", "工厂")),
        sentence(2, "张三昨天在车间访问了工人。", ("张三", "PER"), words=("车间", "访问", "工人")),
        sentence(3, "厂长李四陪同他看了新产品。", ("李四", "PER"), words=("厂长", "产品")),
        sentence(4, "这家工厂建于去年冬天。", words=("工厂", "去年")),
    )
)


def test_a_question_asks_for_a_name_that_the_rest_of_the_passage_holds():
    (first, second) = build_questions(ARTICLE, RULES)
    assert first == ClozeQuestion(
        line=1,
        question="谁访问上海工厂？",
        passage="张三昨天在车间访问了工人。厂长李四陪同他看了新产品。这家工厂建于去年冬天。",
        answer="张三",
        starts=(0,),
        candidates=((0, "张三"), (15, "李四")),
        type="PER",
        sentence="张三访问上海工厂",
    )
    assert (second.line, second.question) == (2, "谁昨天在车间访问了工人？")
    # The headline ends in no mark, so a line break keeps it apart.
    assert second.passage.startswith("张三访问上海工厂\n厂长李四")


@pytest.mark.parametrize(
    "rules",
    [
        {"min_candidates": 3},
        {"min_shared_words": 2},
        {"max_question_chars": 8, "min_question_chars": 8},
        {"min_passage_chars": 60},
    ],
)
def test_each_rule_can_refuse_a_question(rules):
    assert len(list(build_questions(ARTICLE, RULES.model_copy(update=rules)))) < 2


def test_a_question_that_stands_in_the_passage_almost_word_for_word_is_refused():
    copy = sentence(2, "张三访问上海的消息传开了。", ("张三", "PER"), words=("访问", "消息"))
    article = Article((ARTICLE.sentences[0], copy, *ARTICLE.sentences[2:]))
    asked = {
        limit: [built.line for built in build_questions(article, RULES.model_copy(update={"max_match_chars": limit}))]
        for limit in (3, 4)
    }
    assert asked == {3: [], 4: [1, 2]}


def test_questions_that_counting_answers_are_thinned_out():
    (first, _) = build_questions(ARTICLE, RULES)
    assert not first.answer_is_most_frequent
    again = sentence(5, "张三后来又去了一个车间。", ("张三", "PER"), words=("后来", "车间"))
    article = Article((*ARTICLE.sentences, again))
    built = [
        list(build_questions(article, RULES.model_copy(update={"frequent_answer_share": share})))
        for share in (1.0, 0.0)
    ]
    assert [q.answer_is_most_frequent for q in built[0]] == [True, True, True]
    assert built[1] == []


def test_the_clause_around_a_name():
    text = "会议闭幕后，主席张三会见了“代表，并讲话。"
    mention = Mention(8, 10, "PER", "张三")
    assert question_clause(text, mention, 5, 40) == ("主席", "会见了代表")
    assert question_clause(text, mention, 10, 40) == ("会议闭幕后，主席", "会见了代表")
    assert question_clause(text, mention, 10, 12) is None
    assert question_clause("张三说张三会来开会", Mention(0, 2, "PER", "张三"), 4, 40) is None
    assert question_clause("张三。", Mention(0, 2, "PER", "张三"), 4, 40) is None


def test_longest_common_substring_and_context_match():
    assert longest_common_substring("今天天气好", "天天气坏") == 3
    assert longest_common_substring("甲", "乙") == 0
    assert context_match("主席张三说了话", 2, 2, "副主席", "说话") == 3
    assert context_match("张三", 0, 2, "", "") == 0


def test_baselines_by_hand():
    passage = "李四来了。后来张三开会讲话，李四走了。"
    built = ClozeQuestion(1, "谁开会讲话？", passage, "张三", (7,), ((0, "李四"), (7, "张三"), (14, "李四")), "PER", "")
    shares = measure_baselines([built])
    assert shares["random"] == 0.5
    assert shares["beside_match"] == 1.0
    assert (shares["first"], shares["most_frequent"]) == (0.0, 0.0)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    out = tmp_path_factory.mktemp("cloze")
    return out, prepare_question_answering(QuestionAnsweringDatasetConfig(), out_dir=out)


def test_package_questions_suffice_and_are_well_formed(prepared):
    out, metrics = prepared
    assert metrics["num_train"] >= 1500
    assert metrics["num_validation"] >= 300
    assert metrics["num_test"] >= 800
    assert metrics["num_answers_exact"] == metrics["num_answers"]
    assert list(read_jsonl(out / "misaligned.jsonl")) == []
    sentences = {row["id"]: row["text"] for row in read_jsonl(out / "source_sentences.jsonl")}
    rows = [row for split in SPLITS for row in read_any_examples(out, split)]
    assert len(rows) == len(sentences)
    for row in rows:
        assert len({answer.text for answer in row.answers}) == 1
        assert row.answers[0].text not in row.question
        assert row.answers[0].text in sentences[row.id]
        assert sentences[row.id] not in row.text
        assert 80 <= len(row.text) <= 300
        assert Counter(map(row.question.count, ("谁", "哪里", "什么机构")))[0] <= 2


def test_articles_of_package_questions_do_not_part(prepared):
    out, _ = prepared
    lines = {
        split: {int(row.id.split(":")[1].split(".")[0]) for row in read_any_examples(out, split)} for split in SPLITS
    }
    assert not lines["train"] & lines["test"]
    passages = {split: {row.text for row in read_any_examples(out, split)} for split in SPLITS}
    assert not passages["train"] & passages["test"]


def test_no_shallow_rule_solves_the_package_questions(prepared):
    out, _ = prepared
    for shares in read_json(out / "dataset.json")["baselines"].values():
        assert 0.2 < shares["random"] < 0.35
        assert max(shares.values()) < 0.55
        assert shares["first"] < 0.4


def test_package_questions_are_the_same_in_every_run(prepared, tmp_path):
    out, _ = prepared
    prepare_question_answering(QuestionAnsweringDatasetConfig(), out_dir=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in out.iterdir()
    }
