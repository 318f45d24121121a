from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.errors import ArtifactError
from components.formats import read_json, write_json
from components.report import probe_sections
from components.report.content import Block, Bullets, Fold, Heading, Picture, Pieces, Section, Table
from components.report.probe_sections import NO_RUNG, probes_section
from components.report.sources import ProbeSource, ReportSources
from components.report.stage import write_report
from components.report.writing import open_writing

Probe = Callable[..., ProbeSource]


def text_of(pieces: Pieces) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def rows_of(table: Table) -> list[list[str]]:
    return [[text_of(cell.pieces) for cell in row] for row in table.rows]


def find(blocks: tuple[Block, ...], kind: type[Any]) -> list[Any]:
    inner = [block for fold in blocks if isinstance(fold, Fold) for block in find(fold.blocks, kind)]
    return [block for block in blocks if isinstance(block, kind)] + inner


@pytest.fixture
def section(full_sources: ReportSources) -> Callable[..., Section]:
    def build(*probes: ProbeSource, language: Any = "en") -> Section:
        return probes_section(open_writing(replace(full_sources, probes=probes), language))

    return build


def without_number(make_probe: Probe, folder: Path, rung: str, reason: str) -> ProbeSource:
    changes: dict[str, Any] = {"meaningful": False, "headline": {}, "figures": [], "sentences": []}
    return make_probe(folder / rung, rung, reason=reason, **changes)


def test_one_table_has_the_main_numbers_of_all_rungs(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    headline = {"sense_accuracy": 0.75, "sense_accuracy_low": 0.6, "sense_accuracy_high": 0.9}
    first = make_probe(tmp_path / "a", "bert", headline=headline, metrics=headline)
    found = section(first, make_probe(tmp_path / "b", "lstm", headline={"sense_accuracy": 1.0, "steps": 100.0}))
    (table,) = find(found.blocks, Table)
    assert [column.title for column in table.columns] == ["rung", "senses right", "steps"]
    assert rows_of(table) == [["bert", ".750 (.600 to .900)", "–"], ["lstm", "1.000", "100"]]


def test_rungs_that_share_a_reason_share_the_line(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    reasons = {"one_hot": "No context.", "bert": "", "tfidf": "No context.", "rnn": "No words."}
    probes = [
        without_number(make_probe, tmp_path, rung, reason) if reason else make_probe(tmp_path / rung, rung)
        for rung, reason in reasons.items()
    ]
    lines = [
        text_of(line) for block in section(*probes).blocks if isinstance(block, Bullets) for line in block.sentences
    ]
    assert lines == ["No number for one_hot and tfidf: No context.", "No number for rnn: No words."]
    (chinese, _) = (block.sentences[0] for block in find(section(*probes, language="zh").blocks, Bullets))
    assert text_of(chinese) == "不给出数字：one_hot 和 tfidf：No context."


def test_findings_and_pictures_are_folded_by_rung(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    blocks = section(make_probe(tmp_path / "a", "bert"), make_probe(tmp_path / "b", "lstm")).blocks
    (outer,) = (block for block in blocks if isinstance(block, Fold))
    assert [fold.title for fold in outer.blocks] == ["bert", "lstm"]
    assert not [block for block in blocks if isinstance(block, Picture)]
    assert [picture.file for picture in find(blocks, Picture)] == ["senses_bert_senses.png", "senses_lstm_senses.png"]


def test_a_probe_without_an_encoder_names_no_rung(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    blocks = section(make_probe(tmp_path / "a", NO_RUNG, encoder="none")).blocks
    (table,) = find(blocks, Table)
    assert ([column.title for column in table.columns], rows_of(table)) == (
        ["measure", "value"],
        [["senses right", ".812"]],
    )
    (picture,) = find(blocks, Picture)
    assert (picture.file, picture.caption) == ("senses_senses.png", "By layer")
    said = [text_of(line) for block in find(blocks, Bullets) for line in block.sentences]
    assert said == ["Better than guessing: 81.2 %."]
    assert [block.title for block in blocks if isinstance(block, Fold)] == ["Findings and pictures"]
    assert NO_RUNG not in str([block for block in blocks if not isinstance(block, Heading)])


def test_rungs_with_one_encoder_share_findings(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    first = make_probe(tmp_path / "a", "bert")
    blocks = section(first, replace(first, rung="bert_long")).blocks
    (table,) = find(blocks, Table)
    assert [row[0] for row in rows_of(table)] == ["bert", "bert_long"]
    (picture,) = find(blocks, Picture)
    assert picture.caption == "bert, bert_long: By layer"


def test_pictures_beyond_the_limit_lie_beside_the_page(
    full_sources: ReportSources, make_probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = tuple(make_probe(tmp_path / rung, rung) for rung in ("bert", "lstm"))
    size = (tmp_path / "bert/senses.png").stat().st_size
    monkeypatch.setattr(probe_sections, "MAX_PICTURE_BYTES", size)
    write_report(replace(full_sources, probes=probes), tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    assert page.count("data:image/png") == 1
    assert (
        "lstm: By layer (Not on this page, to keep it small: the file figures/senses_lstm_senses.png beside it.)"
        in page
    )
    assert (tmp_path / "out/figures/senses_lstm_senses.png").stat().st_size == size


def test_rungs_whose_names_look_alike_keep_their_pictures_apart(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path
) -> None:
    blocks = section(make_probe(tmp_path / "a", "b/t"), make_probe(tmp_path / "b", "b-t")).blocks
    names = [picture.file for picture in find(blocks, Picture)]
    assert re.fullmatch(r"senses_b-t-[0-9a-f]{8}_senses.png", names[0])
    assert names[1] == "senses_b-t_senses.png"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"headline": None}, "needs an object as headline"),
        ({"figures": [{"file": "senses.png"}]}, "list of file and caption"),
        ({"meaningful": "absent"}, "has no meaningful"),
        ({"probe": "recall"}, "holds probe 'recall'"),
        ({"figures": [{"file": "../senses.png", "caption": ""}]}, "not in its folder"),
        ({"headline": {"sense_accuracy": "high"}}, "needs a number"),
    ],
)
def test_probe_files_of_another_shape_are_refused(
    section: Callable[..., Section], make_probe: Probe, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    probe = make_probe(tmp_path / "probe", "bert")
    (tmp_path / "senses.png").write_bytes((probe.path / "senses.png").read_bytes())
    content = {**read_json(probe.path / "probe.json"), **change}
    write_json(probe.path / "probe.json", {name: value for name, value in content.items() if value != "absent"})
    with pytest.raises(ArtifactError, match=message):
        section(probe)
