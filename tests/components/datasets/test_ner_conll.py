"""Files of columns: separators, columns, comments, documents, blank tokens and every refusal with its line."""

from __future__ import annotations

import gzip
import json

import pytest

from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import NerFacts
from components.datasets.ner_sources import read_ner_source
from components.datasets.ner_stage import prepare_ner
from components.errors import InputError


def read(tmp_path, content, name="train.conll", **settings):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    facts = NerFacts()
    rows, _ = read_ner_source(NerDatasetConfig(source="files", train=str(path), **settings), facts)
    return rows["train"], facts


def refused(tmp_path, content, **settings):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, **settings)
    return str(caught.value)


def test_chinese_tokens_join_without_space(tmp_path):
    (row,), facts = read(tmp_path, "江 B-PER\n泽 I-PER\n民 I-PER\n来 O\n")
    assert (row.text, row.tokens, row.tags()) == (
        "江泽民来",
        ((0, 1), (1, 2), (2, 3), (3, 4)),
        ["B-PER", "I-PER", "I-PER", "O"],
    )
    assert facts.forms == {
        "train.conll": {"format": "conll", "separator": "space", "scheme": "iob2", "scheme_is": "detected"}
    }


def test_english_tokens_join_with_a_space(tmp_path):
    (row,), facts = read(tmp_path, "New\tB-LOC\nYork\tI-LOC\n!\tO\n", language="en")
    assert (row.text, row.tokens) == ("New York !", ((0, 3), (4, 8), (9, 10)))
    assert facts.forms["train.conll"]["separator"] == "tab"


def test_four_columns_docstart_and_other_columns(tmp_path):
    content = (
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsays VBZ I-VP O\n\nhi UH O O\n-DOCSTART- -X- O O\n\nyou PRP O O\n"
    )
    rows, facts = read(tmp_path, content, language="en")
    assert [row.text for row in rows] == ["EU says", "hi", "you"]
    assert [row.line for row in rows] == [3, 6, 9]
    assert rows[0].document == rows[1].document != rows[2].document
    assert facts.counts["num_document_lines"] == 2
    rows, _ = read(tmp_path, content, language="en", tag_column=2)
    assert rows[0].tags() == ["B-NP", "B-VP"]


def test_lone_tab_parts_sentences_by_rule_only(tmp_path):
    content = "a\tO\n\t\nb\tB-X\n \n\nc\tO\n"
    rows, facts = read(tmp_path, content, language="en")
    assert [row.text for row in rows] == ["a", "b", "c"]
    assert facts.counts["num_blank_separator_lines"] == 2
    rows, _ = read(tmp_path, "a\tO\n\tO\nb\tB-X\n", language="en", blank_separators=False)
    assert len(rows) == 1
    assert "train.conll:4" in refused(tmp_path, content, language="en", blank_separators=False)


def test_comments_only_when_declared(tmp_path):
    rows, facts = read(tmp_path, "# id 1\na\tO\n# note\nb\tO\n", language="en", comment_prefix="# ")
    assert [row.text for row in rows] == ["a b"]
    assert facts.counts["num_comment_lines"] == 2
    (row,), _ = read(tmp_path, "#tag\tO\n", language="en")
    assert row.text == "#tag"
    assert "comment_prefix" in refused(tmp_path, "a\tO\n# id 2\n", language="en")


def test_line_ends_and_break_characters_inside_tokens(tmp_path):
    rows, _ = read(tmp_path, "a\u2028b\tO\r\n\x85\x1c\tO\r\n\r\nc\tO\r\n", language="en")
    assert [row.text for row in rows] == ["a\u2028b \x85\x1c", "c"]


def test_gzip_and_byte_order_mark(tmp_path):
    content = gzip.compress("\ufeff江 B-PER\n".encode())
    (row,), facts = read(tmp_path, content, name="train.bmes.gz")
    assert (row.text, facts.counts["num_boms_removed"]) == ("江", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a O\nb O O\n", "train.conll:2: 3 column(s) parted by space, expected 2"),
        ("a\tO\n\nb O\n", "train.conll:3: 1 column(s) parted by tab"),
        ("a\n", "train.conll:1: 1 column(s)"),
        ("a O\nb Q-PER\n", "train.conll:2: unknown tag 'Q-PER'"),
        ("a B-PER\nb LOC\n", "train.conll:2: tag 'LOC' has no prefix"),
        ("a\tO\nb\t\n", "train.conll:2: unknown tag ''"),
    ],
)
def test_refusals_name_the_line(tmp_path, content, message):
    assert message in refused(tmp_path, content)


def test_missing_column_is_refused(tmp_path):
    assert "train.conll:1: no column 5" in refused(tmp_path, "a O\n", token_column=5)


def test_ft_17_blank_token_is_kept_and_named_or_refused(tmp_path):
    (row,), _ = read(tmp_path, "a O\n\u3000 O\n江 B-PER\n")
    assert row.text == "a\u3000江"
    assert row.tags() == ["O", "O", "B-PER"]
    (row,), _ = read(tmp_path, "a\tO\n\tO\n \tO\nke s\tO\n江\tB-PER\n")
    assert row.text == "a  ke s江"
    assert [row.text[start:end] for start, end in row.tokens] == ["a", " ", " ", "ke s", "江"]


def test_ft_17_stage_names_blank_tokens_by_file_and_line(tmp_path):
    lines = ["\u3000 O", "\u200b O", "江 B-PER", "泽 I-PER"]
    path = tmp_path / "train.txt"
    path.write_text("".join("\n".join([*lines, f"{chr(0x4E00 + row)} O"]) + "\n\n" for row in range(60)), "utf-8")
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    config = NerDatasetConfig(source="files", train=str(path))
    metrics = prepare_ner(config, out_dir=out_dir)
    card = json.loads((out_dir / "dataset.json").read_text("utf-8"))
    assert metrics["num_tokens_blank"] == 120
    assert card["places"]["tokens_blank"][:3] == ["train.txt:1 U+3000", "train.txt:2 U+200B", "train.txt:7 U+3000"]
    assert len(card["places"]["tokens_blank"]) == 100
    assert sum(metrics[f"num_tokens_{split}"] for split in ("train", "validation", "test")) == 300
    with pytest.raises(InputError, match=r"train.txt:1: token 1 has no visible character \(U\+3000\)"):
        prepare_ner(config.model_copy(update={"blank_tokens": "refuse"}), out_dir=out_dir)


def test_ft_17_line_with_three_columns_is_refused(tmp_path):
    assert "train.conll:2: 3 column(s)" in refused(tmp_path, "江 B-PER\n泽 民 I-PER\n")


def test_repairs_are_named_by_file_and_line(tmp_path):
    rows, facts = read(tmp_path, "江 I-PER\n来 O\n\n北 B-LOC\n京 I-LOC\n\n石 B-PER\n", scheme="iob2")
    assert rows[0].tags() == ["B-PER", "O"]
    assert facts.counts["num_tags_repaired"] == 1
    assert facts.places == {"tags_repaired": ["train.conll:1 江 I-PER"]}
    assert facts.forms["train.conll"]["scheme_is"] == "declared"


def test_unknown_ending_is_refused_and_declared_format_is_not(tmp_path):
    with pytest.raises(InputError, match="format: conll or jsonl"):
        read(tmp_path, "江 B-PER\n", name="train.data")
    (row,), _ = read(tmp_path, "江 B-PER\n", name="train.data", format="conll")
    assert row.text == "江"
