"""Strict decoding: text-01 (wrong encoding, both ways) and text-02 (byte-order mark)."""

from __future__ import annotations

import gzip
import logging
import random

import pytest

from components.datasets.encodings import count_suspicious, rare_share, read_text
from components.errors import InputError


def test_text_01_gb18030_declared_as_utf8_names_line_offset_bytes_and_the_right_encoding(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("ascii\n春天来了\n花开\n".encode("gb18030"))
    with pytest.raises(InputError, match="not valid utf-8 at byte offset 6") as caught:
        read_text(path, "utf-8")
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert "bytes b4" in str(caught.value)
    assert caught.value.remedy.endswith("set encoding: gb18030")


def test_text_01_utf8_declared_as_gb18030_is_refused_although_it_decodes(tmp_path):
    path = tmp_path / "a.txt"
    text = "春天来了\n花开\n"
    path.write_bytes(text.encode())
    assert path.read_bytes().decode("gb18030") != text  # decodes silently: the trap
    with pytest.raises(InputError, match="rare") as caught:
        read_text(path, "gb18030")
    assert caught.value.remedy.endswith("set encoding: utf-8")


@pytest.mark.parametrize("declared", ["gb18030", "latin-1", "cp1252", "big5"])
def test_text_01_longer_utf8_text_is_refused_under_every_other_encoding(tmp_path, declared):
    path = tmp_path / "a.txt"
    path.write_bytes("酒店的房间很干净，服务也不错，下次还会来。\n".encode() * 3)
    with pytest.raises(InputError):
        read_text(path, declared)


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "utf-16"])
def test_text_01_right_encodings_are_read(tmp_path, encoding):
    path = tmp_path / "a.txt"
    text = "天氣很好，我們出去走走。\n第二行\n" if encoding == "big5" else "今天天气很好，我们出去走走。\n第二行\n"
    path.write_bytes(text.encode(encoding))
    assert read_text(path, encoding).text == text


def test_text_01_random_chinese_in_gb18030_is_never_taken_for_utf8(tmp_path):
    path = tmp_path / "a.txt"
    characters = [bytes([high, low]).decode("gb2312") for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFE)]
    generator = random.Random(3)
    for length in (2, 3, 10, 100):
        for _ in range(50):
            text = "".join(generator.choices(characters, k=length))
            path.write_bytes(text.encode("gb18030"))
            assert read_text(path, "gb18030").text == text


def test_text_01_bytes_that_nothing_decodes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ok\n\xff\xff\xff\n")
    with pytest.raises(InputError, match="none of utf-8") as caught:
        read_text(path, "utf-8")
    assert caught.value.line == 2


def test_text_01_a_damaged_utf8_file_is_not_taken_for_another_encoding(tmp_path):
    path = tmp_path / "a.txt"
    data = "今天天气很好，我们出去走走。\n第二行也很好\n".encode()
    path.write_bytes(data[:50] + b"\xff" + data[50:])
    with pytest.raises(InputError, match="gives readable text") as caught:
        read_text(path, "utf-8")
    assert caught.value.line == 2


@pytest.mark.parametrize("encoding", ["utf-16", "big5"])
def test_text_01_other_encodings_are_proposed(tmp_path, encoding):
    path = tmp_path / "a.txt"
    path.write_bytes("天氣很好，我們出去走走。\n".encode(encoding))
    with pytest.raises(InputError, match=f"set encoding: {encoding}"):
        read_text(path, "utf-8")


def test_text_01_mojibake_saved_as_utf8_warns(tmp_path, caplog):
    path = tmp_path / "a.txt"
    path.write_text("春天来了花开我们去公园玩".encode().decode("gb18030", errors="ignore") + "\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        read_text(path, "utf-8")
    assert "are rare: decoded wrongly before?" in caplog.text


def test_text_01_replacement_characters_warn_with_their_number(tmp_path, caplog):
    path = tmp_path / "a.txt"
    path.write_text("好\ufffd\ue000\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert read_text(path, "utf-8").text == "好\ufffd\ue000\n"
    assert "2 characters" in caplog.text


def test_ordinary_text_warns_about_nothing(tmp_path, caplog):
    path = tmp_path / "a.txt"
    path.write_text("今天天气很好，我们出去走走😀。天氣很好。Café. 日本語もどうぞ。한국어\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        read_text(path, "utf-8")
    assert not caplog.records


def test_text_02_byte_order_mark_is_removed_and_counted(tmp_path):
    path = tmp_path / "b.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "好\ufeff\n".encode())
    decoded = read_text(path, "utf-8")
    assert (
        decoded.text == "好\ufeff\n"
    )  # only the first one marks the byte order; the other is a matter of normalisation
    assert decoded.num_boms == 1


def test_gzip_is_read_and_damage_is_named(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("好\n".encode()))
    assert read_text(path, "utf-8").text == "好\n"
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(InputError, match="damaged gzip"):
        read_text(path, "utf-8")
    path.write_bytes(b"plain")
    with pytest.raises(InputError, match="damaged gzip"):
        read_text(path, "utf-8")


def test_missing_file_folder_and_unknown_encoding(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_text(tmp_path / "none.csv", "utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        read_text(tmp_path, "utf-8")
    path = tmp_path / "a.txt"
    path.write_text("a")
    with pytest.raises(InputError, match="unknown encoding 'utf8000'"):
        read_text(path, "utf8000")


def test_rare_share_and_suspicious_counts():
    assert rare_share("abc") == 0.0
    assert rare_share("的龘") == 0.5
    assert count_suspicious("a\ufffd\ue123\uf8ff\uf900😀") == 3
