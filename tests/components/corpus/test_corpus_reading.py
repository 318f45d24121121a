"""Reading raw text: encodings, byte-order marks, documents, giant lines, JSON lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.corpus.config import CorpusConfig, CorpusSource
from components.corpus.data import ReadingFacts, read_sources
from components.corpus.lines import FileFacts, read_lines
from components.corpus.mojibake import mojibake_share
from components.errors import ConfigError, InputError
from components.text.articles import is_heading, untag


def source(path: Path, **fields: object) -> CorpusSource:
    return CorpusSource.model_validate({"kind": "files", "path": str(path), **fields})


def read(*sources: CorpusSource, **fields: object) -> tuple[list[tuple[str, list[str]]], ReadingFacts]:
    facts = ReadingFacts()
    config = CorpusConfig.model_validate({"sources": sources, **fields})
    return [(raw.id, [line.text for line in raw.lines]) for raw in read_sources(config, facts)], facts


def test_text_01_gb18030_read_as_utf8_names_line_offset_bytes_and_the_encoding_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("abc\n春天来了\n花开\n".encode("gb18030"))
    with pytest.raises(InputError) as caught:
        read(source(path))
    message = str(caught.value)
    assert f"{path}:2: bytes b4 ba" in message
    assert "at byte offset 4 are not utf-8" in message
    assert "declare encoding gb18030" in message
    assert read(source(path, encoding="gb18030"))[0] == [("a.txt:1", ["abc", "春天来了", "花开"])]


def test_text_01_error_position_is_right_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.corpus.lines.BLOCK_BYTES", 4)
    path = tmp_path / "a.txt"
    path.write_bytes("春天\n花".encode() + b"\xe8\xb5x\n")
    with pytest.raises(InputError, match=r"a\.txt:2: bytes e8 b5 .*at byte offset 10 are not utf-8"):
        read(source(path))


def test_text_01_utf8_read_as_gb18030_is_never_silent(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("春天来了\n花开\n".encode())
    documents, facts = read(source(path, encoding="gb18030"))
    assert documents[0][1][0] != "春天来了"
    assert facts.mojibake_files == ["a.txt"]
    odd = tmp_path / "b.txt"
    odd.write_bytes("春天来\n".encode())
    with pytest.raises(InputError, match="declare encoding utf-8"):
        read(source(odd, encoding="gb18030"))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_text_01_utf8_read_as_single_bytes_is_reported(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Café à la crème, déjà vu à Orléans.\n".encode())
    assert read(source(path, encoding=encoding))[1].mojibake_files == (["a.txt"])
    path.write_bytes("Café à la crème, déjà vu à Orléans.\n".encode(encoding))
    assert read(source(path, encoding=encoding))[1].mojibake_files == []


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_text_01_clean_text_is_not_reported(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("迈向充满希望的新世纪，" * 20 + "\n臺灣的天氣很好。\nplain\n").encode(encoding))
    assert read(source(path, encoding=encoding))[1].mojibake_files == []


def test_mojibake_that_was_saved_as_utf8_is_found() -> None:
    assert mojibake_share("Ã©tÃ© dÃ©jÃ\xa0", "utf-8") > 0.5
    assert mojibake_share("plain", "utf-8") == 0.0
    assert mojibake_share("好" * 99 + "\ufffd", "utf-8") == 0.01


def test_unknown_encoding_is_refused_with_the_field() -> None:
    with pytest.raises(ValidationError, match="unknown text encoding 'utf-9'"):
        CorpusSource(encoding="utf-9")


def test_text_02_byte_order_mark_is_removed_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "好\n".encode())
    documents, facts = read(source(path))
    assert documents == [("a.txt:1", ["好"])]
    assert facts.num_byte_order_marks == 1


def test_text_02_byte_order_mark_before_json_does_not_break_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"text": "好"}).encode() + b"\n")
    assert read(source(path))[0] == [("a.jsonl:1", ["好"])]


def test_text_06_empty_lines_are_documents_or_separators_as_declared(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("好\n\n   \n\u3000\n坏\n", encoding="utf-8")
    (tmp_path / "b.txt").touch()
    by_line, facts = read(source(tmp_path, documents="line"))
    assert [text for _, text in by_line] == [["好"], [""], ["   "], ["\u3000"], ["坏"]]
    assert facts.empty_files == ["b.txt"]
    assert read(source(path))[0] == [("a.txt:1", ["好"]), ("a.txt:5", ["坏"])]


def test_pre_02_blank_lines_separate_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"s1\ns2\r\n\r\n\n s3\n")
    assert [id_ for id_, _ in read(source(path))[0]] == ["a.txt:1", "a.txt:5"]


def test_lines_end_at_line_feed_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("一\u2028二\x85三\x0b四\n五\n", encoding="utf-8", newline="\n")
    assert len(read(source(path, documents="line"))[0]) == 2


def test_text_08_long_line_is_split_after_sentences_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    text = "天地玄黄，宇宙洪荒。" * 350 + "尾"
    path.write_text(text + "\n\n短", encoding="utf-8")
    documents, facts = read(source(path), max_document_chars=1000)
    assert [id_ for id_, _ in documents] == ["g.txt:1", "g.txt:1.1", "g.txt:1.2", "g.txt:1.3", "g.txt:3"]
    assert "".join("".join(lines) for _, lines in documents) == text + "短"
    assert all(len(lines[0]) <= 1000 and lines[0].endswith("。") for _, lines in documents[:3])
    assert (facts.num_long_lines, facts.num_split_documents) == (1, 1)


def test_long_document_of_short_lines_is_split_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("\n".join(["春" * 300] * 7), encoding="utf-8")
    documents, facts = read(source(path), max_document_chars=1000)
    assert [(id_, len(lines)) for id_, lines in documents] == [("g.txt:1", 3), ("g.txt:4", 3), ("g.txt:7", 1)]
    assert facts.num_split_documents == 1


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from("天。a \n\r😀"), max_size=200), block=st.integers(1, 7), limit=st.integers(2, 30))
def test_lines_join_to_the_text_for_any_block_size(
    tmp_path_factory: pytest.TempPathFactory, text: str, block: int, limit: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.corpus.lines.BLOCK_BYTES", block)
        lines = list(read_lines(path, "utf-8", max_chars=limit, facts=FileFacts()))
    joined = "".join(("\n" if line.part == 0 and line.number > 1 else "") + line.text for line in lines)
    assert joined == text.removesuffix("\n")
    assert all(len(line.text) <= limit for line in lines)


def test_files_folders_globs_and_gzip_give_the_same_documents(tmp_path: Path) -> None:
    folder = tmp_path / "texts" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("一\n", encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress("二\n".encode()))
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(json.dumps({"body": "三\n四"}).encode()))
    (folder / "d.pdf").write_bytes(b"\x00")
    by_folder = read(source(tmp_path / "texts", text_field="body"))[0]
    assert by_folder == [("deep/a.txt:1", ["一"]), ("deep/b.txt.gz:1", ["二"]), ("deep/c.jsonl.gz:1", ["三", "四"])]
    by_glob = read(source(tmp_path / "**" / "*.[tj]*", text_field="body"))[0]
    assert [text for _, text in by_glob] == [text for _, text in by_folder]
    assert source(tmp_path / "texts").files() == [folder / "a.txt", folder / "b.txt.gz", folder / "c.jsonl.gz"]


def test_same_file_in_two_sources_keeps_ids_distinct(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("一\n", encoding="utf-8")
    assert [id_ for id_, _ in read(source(path), source(path))[0]] == ["a.txt:1", "1/a.txt:1"]


def test_missing_and_unclear_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\*.*give a file, a folder or a glob"):
        read(source(tmp_path / "nothing*"))
    path = tmp_path / "a.md"
    path.write_text("一\n", encoding="utf-8")
    with pytest.raises(InputError, match="set format to txt or jsonl"):
        read(source(path))
    assert read(source(path, format="txt"))[0] == [("a.md:1", ["一"])]


def test_truncated_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(("春天" * 1000).encode())[:-9])
    with pytest.raises(InputError, match=r"a\.txt\.gz: damaged gzip file"):
        read(source(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"a\.jsonl:2: not JSON"),
        ('{"body": "x"}', r"a\.jsonl:2: no field 'text', found fields body Remedy: set text_field"),
        ("[1]", r"a\.jsonl:2: no field 'text', found list"),
        ('{"text": null}', r"a\.jsonl:2: field 'text' holds None, not a string"),
    ],
)
def test_unusable_json_line_is_refused_with_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "好"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(source(path))


def test_json_line_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.corpus.data.MAX_JSON_LINE_CHARS", 100)
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "x" * 200}), encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:1: JSON line longer than 100 characters"):
        read(source(path))


def test_long_json_document_is_split_with_distinct_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "\n".join(["x" * 600] * 3 + ["y" * 2500])}) + "\n", encoding="utf-8")
    documents, facts = read(source(path), max_document_chars=1000)
    assert [id_ for id_, _ in documents] == ["a.jsonl:1"] + [f"a.jsonl:1.{n}" for n in range(1, len(documents))]
    assert max(sum(map(len, lines)) for _, lines in documents) <= 1000
    assert sum(len(line) for _, lines in documents for line in lines) == 4300
    assert facts.num_split_documents == 1


def test_tagged_line_becomes_text() -> None:
    assert (
        untag("１２月/t  [中央/n  人民/n  广播/vn  电台/n]nt  １/２/m  ［/w  ］/w\n")
        == "１２月中央人民广播电台１/２［］"
    )


def test_headings() -> None:
    assert is_heading("北京举行新年音乐会")
    assert is_heading("挂起红灯迎新年（图片）")
    assert not is_heading("（新华社记者樊如钧摄）")
    assert not is_heading("同胞们、朋友们：")
    assert not is_heading("谢谢！（新华社北京１２月３１日电）")
