"""What the corpus loses to held-out examples of every task."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from components.corpus.config import CorpusConfig, CorpusSource
from components.corpus.held_out import HeldOutIndex
from components.corpus.stage import prepare_corpus
from components.examples import (
    SOURCE_SENTENCES,
    Answer,
    AnyExample,
    Example,
    Question,
    TaggedText,
    TaskName,
    write_examples,
    write_task,
)
from components.formats import read_documents, write_jsonl


@pytest.fixture
def connection(tmp_path: Path):
    with sqlite3.connect(tmp_path / "index.sqlite") as database:
        yield database


def dataset(folder: Path, task: TaskName, *test: AnyExample) -> Path:
    folder.mkdir()
    write_task(folder, task)
    write_examples(folder, "test", test)
    return folder


def tagged(identifier: str, text: str) -> TaggedText:
    return TaggedText(identifier, text, tuple((n, n + 1) for n in range(len(text))), ("O",) * len(text))


def question(identifier: str, passage: str) -> Question:
    return Question(identifier, passage, "什么？", (Answer(passage[:1], 0),))


def touched(index: HeldOutIndex, *sentences: str) -> set[int]:
    return {number for found in index.find_contained(sentences) for number in found.sentences}


def test_sentences_of_a_tagged_line_go_however_short(tmp_path: Path, connection: sqlite3.Connection) -> None:
    folder = dataset(tmp_path / "d", "ner", tagged("a:1", "江泽民抵京。会谈今天上午在人民大会堂东大厅里举行。"))
    index = HeldOutIndex([folder], CorpusConfig(), connection)
    assert touched(index, "他来了。", "江泽民抵京!", "会谈今天上午在人民大会堂东大厅里举行。", "完。") == {1, 2}
    assert touched(index, "电讯说江泽民抵京。") == set()  # only whole sentences, when they are short


def test_a_passage_over_several_lines_takes_all_its_sentences(tmp_path: Path, connection: sqlite3.Connection) -> None:
    passage = "标题在这里\n第一句。第二句比较长一些但也不算太长。\n末句。"
    index = HeldOutIndex(
        [dataset(tmp_path / "d", "question_answering", question("q", passage))], CorpusConfig(), connection
    )
    found = index.find_contained(
        ["前文。", "标题在这里", "第一句。", "第二句比较长一些但也不算太长。", "末句。", "后文。"]
    )
    assert range(1, 5) in [match.sentences for match in found]
    assert {number for match in found for number in match.sentences} == {1, 2, 3, 4}


def test_a_passage_counts_once_for_all_its_questions(tmp_path: Path, connection: sqlite3.Connection) -> None:
    passage = "同一段落被问了两次,它只算一段文字。"
    rows = [question("q1", passage), question("q2", passage)]
    index = HeldOutIndex([dataset(tmp_path / "d", "question_answering", *rows)], CorpusConfig(), connection)
    assert index.num_texts == 1
    assert index.find_exact(passage) == "0/test/q1"


def test_the_sentence_a_question_was_built_from_goes_too(tmp_path: Path, connection: sqlite3.Connection) -> None:
    folder = dataset(tmp_path / "d", "question_answering", question("q1", "段落里没有这一句话。"))
    write_jsonl(folder / SOURCE_SENTENCES, [{"id": "q1", "text": "张三来了。"}, {"id": "train", "text": "李四来了。"}])
    index = HeldOutIndex([folder], CorpusConfig(), connection)
    assert touched(index, "张三来了。", "李四来了。") == {0}


def test_both_texts_of_a_pair(tmp_path: Path, connection: sqlite3.Connection) -> None:
    row = Example("p:1", "左边的文字有一些长度了", "1", text_pair="右边的文字也有一些长度")
    index = HeldOutIndex(
        [dataset(tmp_path / "d", "classification", row)], CorpusConfig(min_held_out_chars=8), connection
    )
    assert touched(index, "他说左边的文字有一些长度了。", "没有。", "右边的文字也有一些长度") == {0, 2}


def test_peoples_daily_articles_lose_the_lines_of_test_examples(tmp_path: Path) -> None:
    def prepared(name: str, *held_out: Path) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
        (tmp_path / name).mkdir()
        config = CorpusConfig(
            sources=(CorpusSource(path="people_daily"),), deduplicate_near=False, validation_fraction=0.0
        )
        metrics = prepare_corpus(config, held_out=held_out, out_dir=tmp_path / name)
        return {document.id: document.sentences for document in read_documents(tmp_path / name)}, metrics

    full, _ = prepared("full")
    articles = [sentences for _, sentences in list(full.items())[100:2000:200] if len(sentences) > 6]
    lines = [sentences[2] + sentences[3] for sentences in articles]
    folder = dataset(tmp_path / "d", "ner", *(tagged(f"199801.txt:{n}", line) for n, line in enumerate(lines)))
    cut, metrics = prepared("cut", folder)
    gone = {sentence for sentences in articles for sentence in sentences[2:4]}
    assert len(gone) > 8
    assert not any(sentence in gone for sentences in cut.values() for sentence in sentences)
    assert metrics["num_held_out_texts_found"] == len(lines)
    kept = [sentences for document, sentences in cut.items() if full[document] in articles]
    assert kept
    assert all(len(sentences) >= 1 for sentences in kept)
