"""Readers: formats, text-02, text-11 and every refusal with its line."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.datasets.readers import ReadOptions, read_rows
from components.datasets.rows import Columns, source_names
from components.errors import InputError

OPTIONS = ReadOptions(Columns("text", "label"))


def write(path, text):
    path.write_bytes(text.encode())
    return path


def triples(rows):
    return [(row.line, row.text, row.label) for row in rows.rows]


def test_csv_with_quotes_and_line_breaks_keeps_the_first_line_of_each_record(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\r\n"好,""很好""\n第二行",1\r\n坏\x85\u2028,0\r\n')
    assert triples(read_rows(path, OPTIONS)) == [(2, '好,"很好"\n第二行', "1"), (4, "坏\x85\u2028", "0")]


def test_column_order_and_additional_columns_do_not_matter(tmp_path):
    path = write(tmp_path / "a.csv", "cat,label,review\n书,1,好\n")
    assert triples(read_rows(path, ReadOptions(Columns("review", "label")))) == [(2, "好", "1")]


def test_tsv_takes_quotes_literally_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"好\t1\n坏"\t0\n')
    assert triples(read_rows(path, OPTIONS)) == [(2, '"好', "1"), (3, '坏"', "0")]
    path = write(tmp_path / "b.tsv", 'text\tlabel\n"好\t很好"\t1\n')
    assert triples(read_rows(path, ReadOptions(Columns("text", "label"), quoted_tsv=True))) == [(2, "好\t很好", "1")]


def test_headerless_file_with_configured_columns(tmp_path):
    path = write(tmp_path / "a.tsv", "词汇阅读\t3\n中国\t4\n")
    options = ReadOptions(Columns("text", "label"), header=("text", "label"))
    assert triples(read_rows(path, options)) == [(1, "词汇阅读", "3"), (2, "中国", "4")]


def test_json_lines_and_gzip(tmp_path):
    lines = '{"text": "好", "label": 1, "x": null}\r\n\n{"label": "b", "text": "坏"}\n'
    path = write(tmp_path / "a.jsonl", lines)
    rows = read_rows(path, OPTIONS)
    assert triples(rows) == [(1, "好", 1), (3, "坏", "b")]
    assert rows.blank_lines == (2,)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.encode()))
    assert triples(read_rows(packed, OPTIONS)) == triples(rows)


def test_parquet_counts_rows_from_one(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["好", None], "label": pa.array(["a", "b"]).dictionary_encode()}), path)
    assert triples(read_rows(path, OPTIONS)) == [(1, "好", "a"), (2, None, "b")]


def test_parquet_that_is_none_or_missing(tmp_path):
    path = write(tmp_path / "a.parquet", "text")
    with pytest.raises(InputError, match="not a readable Parquet"):
        read_rows(path, OPTIONS)
    with pytest.raises(InputError, match="no such file"):
        read_rows(tmp_path / "b.parquet", OPTIONS)


def test_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"unknown format '.xlsx'.*\.csv, \.tsv"):
        read_rows(tmp_path / "a.xlsx", OPTIONS)


def test_text_02_header_behind_a_byte_order_mark_is_found(tmp_path):
    path = tmp_path / "b.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "text,label\n好,1\n".encode())
    rows = read_rows(path, OPTIONS)
    assert triples(rows) == [(2, "好", "1")]
    assert rows.num_boms == 1


def test_text_11_long_field_is_read_up_to_the_limit(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n"' + "字" * 140_000 + '",1\n')
    assert len(read_rows(path, OPTIONS).rows[0].text) == 140_000


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_text_11_field_beyond_the_limit_names_line_and_length(tmp_path, name):
    content = {
        "a.csv": "text,label\n好,1\n" + "字" * 101 + ",1\n",
        "a.tsv": "text\tlabel\n好\t1\n" + "字" * 101 + "\t1\n",
        "a.jsonl": "\n\n" + json.dumps({"text": "字" * 101, "label": "1"}) + "\n",
    }[name]
    path = write(tmp_path / name, content)
    with pytest.raises(InputError, match="field of 101 characters, the limit is 100") as caught:
        read_rows(path, ReadOptions(Columns("text", "label"), max_text_chars=100))
    assert caught.value.line == 3


def test_text_11_nul_byte(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\n好,1\n坏\0,0\n")
    with pytest.raises(InputError, match="NUL character at column 2") as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 3


def test_text_11_quote_open_to_the_end_names_where_it_opened(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n好,1\n"坏,0\n差,0\n')
    with pytest.raises(InputError, match="read up to line 4") as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 3


def test_text_11_quote_that_swallows_the_next_rows(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n"好,1\n坏,0\n"差",0\n')
    with pytest.raises(InputError, match="balance the quotes") as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 2


@pytest.mark.parametrize("line", ["好,1,2", "好"])
def test_wrong_number_of_fields(tmp_path, line):
    path = write(tmp_path / "a.csv", f"text,label\n{line}\n")
    with pytest.raises(InputError, match="fields, the header has 2") as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 2


def test_missing_column_proposes_the_closest_name(tmp_path):
    path = write(tmp_path / "a.tsv", "labels\ttext_a\n1\t好\n")
    with pytest.raises(InputError, match="no column 'text'; columns are 'labels', 'text_a'") as caught:
        read_rows(path, OPTIONS)
    assert "did you mean 'text_a'" in caught.value.remedy
    assert caught.value.line == 1


def test_missing_key_in_one_json_line(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "好", "label": "a"}\n{"text": "好", "labels": "a"}\n')
    with pytest.raises(InputError, match="did you mean 'labels'") as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 2


def test_missing_parquet_column(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"sentence": ["好"], "label": ["a"]}), path)
    with pytest.raises(InputError, match="no column 'text'"):
        read_rows(path, OPTIONS)


def test_repeated_header_column(tmp_path):
    path = write(tmp_path / "a.csv", "text,label,text\n好,1,坏\n")
    with pytest.raises(InputError, match="column 'text' occurs twice"):
        read_rows(path, OPTIONS)


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"text": "好"', "not a JSON object"),
        ('["好", "a"]', "a JSON list"),
        ('{"text": "好", "text": "坏", "label": "a"}', "key 'text' occurs twice"),
        ('{"text": "好", "label": NaN}', "NaN is not JSON"),
    ],
)
def test_broken_json_lines_name_the_line(tmp_path, line, message):
    path = write(tmp_path / "a.jsonl", '{"text": "好", "label": "a"}\n' + line + "\n")
    with pytest.raises(InputError, match=message) as caught:
        read_rows(path, OPTIONS)
    assert caught.value.line == 2


def test_empty_file_has_no_header(tmp_path):
    with pytest.raises(InputError, match="no header line"):
        read_rows(write(tmp_path / "a.csv", ""), OPTIONS)


def test_id_column_must_not_be_empty(tmp_path):
    path = write(tmp_path / "a.csv", "text,label,id\n好,1,x\n坏,0, \n")
    with pytest.raises(InputError, match="column 'id' is empty") as caught:
        read_rows(path, ReadOptions(Columns("text", "label", "id")))
    assert caught.value.line == 3


def test_names_in_ids_tell_files_apart(tmp_path):
    names = source_names([tmp_path / "a" / "data.csv", tmp_path / "b" / "data.csv", tmp_path / "b" / "test.csv"])
    assert sorted(names.values()) == ["a/data.csv", "b/data.csv", "test.csv"]
    with pytest.raises(InputError, match="same file is used for two splits"):
        source_names([tmp_path / "a.csv", tmp_path / "b" / ".." / "a.csv"])
