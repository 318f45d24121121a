"""JSON lines with entities: three shapes, spans on tokens, overlaps, mismatches, and every refusal with its line."""

from __future__ import annotations

import json

import pytest

from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import NerFacts, tokenise, without_overlaps
from components.datasets.ner_sources import read_ner_source
from components.datasets.tag_schemes import EntitySpan
from components.errors import InputError


def read(tmp_path, *records, **settings):
    path = tmp_path / "train.jsonl"
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    facts = NerFacts()
    rows, _ = read_ner_source(NerDatasetConfig(source="files", train=str(path), **settings), facts)
    return rows["train"], facts


def surfaces(row):
    found = []
    for entity in row.entities:
        start, end = row.tokens[entity.start][0], row.tokens[entity.end - 1][1]
        found.append((row.text[start:end], entity.type))
    return found


def spans(text, *entities):
    return {"text": text, "entities": [{"start": start, "end": end, "label": name} for start, end, name in entities]}


def test_cluener_ends_are_inclusive(tmp_path):
    (row,), facts = read(
        tmp_path,
        {
            "text": "浙商银行叶老桂说叶老桂",
            "label": {"name": {"叶老桂": [[4, 6], [8, 10]]}, "company": {"浙商银行": [[0, 3]]}},
        },
    )
    assert surfaces(row) == [("浙商银行", "company"), ("叶老桂", "name"), ("叶老桂", "name")]
    assert facts.forms["train.jsonl"] == {"format": "jsonl, cluener"}


def test_spans_count_code_points_and_ends_are_exclusive(tmp_path):
    (row,), _ = read(tmp_path, spans("😀Mac OS 好", (1, 7, "OS")))
    assert surfaces(row) == [("Mac OS", "OS")]
    assert row.tags() == ["O", "B-OS", "I-OS", "I-OS", "I-OS", "I-OS", "O"]


def test_tokens_of_both_units():
    assert tokenise("A b，\u3000c", "characters") == [(0, 1), (2, 3), (3, 4), (5, 6)]
    text = "Don't go, U.S. snake_case"
    assert [text[start:end] for start, end in tokenise(text, "words")] == [
        *("Don", "'", "t", "go", ",", "U", ".", "S", ".", "snake_case")
    ]


def test_span_that_cuts_a_word_is_widened_and_named(tmp_path):
    (row,), facts = read(tmp_path, spans("the Londoners left", (4, 10, "LOC")), language="en")
    assert surfaces(row) == [("Londoners", "LOC")]
    assert facts.places == {"entities_cutting_words": ["train.jsonl:1 LOC at 4-10"]}


def test_span_of_white_space_is_left_out_and_named(tmp_path):
    (row,), facts = read(tmp_path, spans("a  b", (1, 3, "X")), language="en")
    assert row.entities == ()
    assert facts.counts["num_entities_without_token"] == 1


def test_longest_of_overlapping_entities_stays_and_the_rest_is_named(tmp_path):
    record = spans("北京大学在北京", (0, 2, "LOC"), (0, 4, "ORG"), (5, 7, "LOC"), (5, 7, "LOC"))
    (row,), facts = read(tmp_path, record)
    assert surfaces(row) == [("北京大学", "ORG"), ("北京", "LOC")]
    assert facts.places == {"entities_overlapping": ["train.jsonl:1 LOC 北京"]}
    assert facts.counts["num_entities_repeated"] == 1
    with pytest.raises(InputError, match=r"train.jsonl:1: LOC '北京' shares characters"):
        read(tmp_path, record, overlapping_entities="stop")


def test_equally_long_overlapping_entities_are_chosen_by_place_and_type():
    one, two, three = EntitySpan(0, 2, "B"), EntitySpan(0, 2, "A"), EntitySpan(1, 3, "A")
    assert without_overlaps([three, one, two]) == ([two], [one, three])


def test_mismatch_stops_with_the_nearest_place_or_skips_the_row(tmp_path):
    bad = {"text": "他在北京", "label": {"LOC": {"北京": [[1, 2]]}}}
    good = {"text": "他在北京", "label": {"LOC": {"北京": [[2, 3]]}}}
    with pytest.raises(
        InputError, match=r"train.jsonl:2: LOC at 1-3 reads '在北'.*expected '北京'; the nearest is at 2"
    ):
        read(tmp_path, good, bad)
    rows, facts = read(tmp_path, good, bad, span_mismatch="skip")
    assert len(rows) == 1
    assert [(row.id, row.reason) for row in facts.dropped] == [("train.jsonl:2", "span_mismatch")]


@pytest.mark.parametrize("span", [(-1, 1, "X"), (1, 1, "X"), (2, 1, "X"), (0, 3, "X")])
def test_span_outside_the_text_is_refused(tmp_path, span):
    with pytest.raises(InputError, match=r"train.jsonl:1: X at .* in a text of 2 characters"):
        read(tmp_path, spans("江来", span))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "not a JSON object"),
        ({"text": "a"}, "no field label"),
        ({"text": "a", "label": {"X": [0]}}, "label is not"),
        ({"text": "a", "entities": [{"start": 0}]}, "entities is not a list"),
        ({"text": "a", "entities": [{"start": 0, "end": 1.0, "label": "X"}]}, "offset 1.0 is no whole number"),
        ({"text": "a", "entities": [{"start": 0, "end": 1, "label": " "}]}, "entity type ' ' is no name"),
        ({"text": 3, "entities": []}, "text is 3"),
        ({"entities": []}, "no field 'text'"),
        ({"tokens": ["a"], "ner_tags": ["O", "O"]}, "1 tokens, 2 tags"),
        ({"tokens": ["a"], "ner_tags": [0]}, "expected a list of strings"),
        ({"tokens": ["a"]}, "no field 'ner_tags'"),
    ],
)
def test_malformed_rows_are_refused_with_their_line(tmp_path, record, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, record)
    assert "train.jsonl:1: " in str(caught.value)
    assert message in str(caught.value)


def test_lists_of_tokens(tmp_path):
    (row,), facts = read(
        tmp_path, {"words": ["江", "泽民"], "tags": ["B-PER", "E-PER"]}, tokens_column="words", tags_column="tags"
    )
    assert (row.text, row.tags()) == ("江泽民", ["B-PER", "I-PER"])
    assert facts.forms["train.jsonl"]["scheme"] == "bioes"


def test_blank_lines_are_dropped_and_named(tmp_path):
    rows, facts = read(tmp_path, spans("江来", (0, 1, "PER")), "", spans("好"))
    assert len(rows) == 2
    assert [row.id for row in facts.dropped] == ["train.jsonl:2"]


def test_ids_and_documents_come_from_fields(tmp_path):
    (row,), _ = read(tmp_path, {**spans("江"), "id": 7, "doc": "a"}, id_column="id", document_column="doc")
    assert (row.id, row.document) == ("7", "a")
    with pytest.raises(InputError, match="field 'doc' is missing or empty"):
        read(tmp_path, spans("江"), document_column="doc")
