"""Public data sets as they are on disk: the counts their description states come out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import NerFacts
from components.datasets.ner_sources import read_ner_source

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not beside the checkout"),
]


def read(name, **settings):
    facts = NerFacts()
    rows, _ = read_ner_source(NerDatasetConfig(source="files", train=str(DATA / name), **settings), facts)
    entities = Counter(entity.type for row in rows["train"] for entity in row.entities)
    return rows["train"], entities, facts


@pytest.mark.parametrize(
    ("name", "rows", "num_spans", "overlapping"), [("train", 10_748, 23_972, 2), ("dev", 1_343, 3_072, 0)]
)
def test_cluener(name, rows, num_spans, overlapping):
    texts, entities, facts = read(f"ner-zh-cluener/{name}.jsonl")
    assert len(texts) == rows
    assert len(entities) == 10
    assert entities.total() + facts.counts["num_entities_overlapping"] == num_spans
    assert facts.counts["num_entities_overlapping"] == overlapping


def test_msra_test_set():
    texts, entities, facts = read("ner-zh-msra/test.txt")
    assert (len(texts), sum(len(row.tokens) for row in texts)) == (4_631, 172_601)
    assert facts.counts["num_tags_repaired"] == 11
    # The description counts B- tags; each of the 11 repaired I- tags begins an entity that the cutting lost.
    repaired = Counter(place.rsplit("-", 1)[1] for place in facts.places["tags_repaired"])
    assert entities - repaired == {"LOC": 2_877, "ORG": 1_331, "PER": 1_973}
    assert facts.forms["test.txt"]["scheme"] == "iob2"


def test_msra_train_set():
    texts, entities, facts = read("ner-zh-msra/train.txt")
    assert (len(texts), sum(len(row.tokens) for row in texts)) == (50_658, 2_169_879)
    repaired = Counter(place.rsplit("-", 1)[1] for place in facts.places["tags_repaired"])
    assert repaired.total() == 6
    assert entities - repaired == {"LOC": 36_517, "ORG": 20_571, "PER": 17_615}


@pytest.mark.parametrize(("name", "rows"), [("train", 3_821), ("dev", 463), ("test", 477)])
def test_resume(name, rows):
    texts, entities, facts = read(f"ner-zh-resume/{name}.char.bmes")
    assert len(texts) == rows
    assert len(entities) == 8
    assert facts.forms[f"{name}.char.bmes"]["scheme"] == "bioes"
    # Two M tags of train lack their B, and the two tags before them lack their E.
    assert facts.counts["num_tags_repaired"] == (4 if name == "train" else 0)


@pytest.mark.parametrize(
    ("name", "rows", "num_entities", "lone_tabs"),
    [("train", 3_394, 1_975, 2_394), ("dev", 1_009, 836, 0), ("test", 1_287, 1_079, 0)],
)
def test_wnut17(name, rows, num_entities, lone_tabs):
    texts, entities, facts = read(f"ner-en-wnut17/{name}.conll", language="en")
    assert len(texts) == rows
    assert (len(entities), entities.total()) == (6, num_entities)
    assert facts.counts["num_blank_separator_lines"] == lone_tabs
    assert facts.forms[f"{name}.conll"]["separator"] == "tab"


@pytest.mark.parametrize(
    ("name", "rows", "blank"),
    [("a", 1_000, 0), ("b", 2_000, 0), ("e", 200, 0), ("f", 2_000, 2), ("g", 2_138, 0), ("h", 2_001, 4)],
)
def test_broad_twitter_corpus(name, rows, blank):
    texts, entities, facts = read(f"ner-en-btc/{name}.conll", language="en")
    assert len(texts) == rows
    assert set(entities) == {"PER", "LOC", "ORG"}
    words = [row.text[start:end] for row in texts for start, end in row.tokens]
    assert sum(not word.strip() for word in words) == blank
    assert facts.forms[f"{name}.conll"] == {
        "format": "conll",
        "separator": "tab",
        "scheme": "iob2",
        "scheme_is": "detected",
    }
    if name == "h":
        assert {"ke s", "re y", "u R", "AD t"} <= set(words)
