from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.errors import ArtifactError, ConfigError
from components.formats import read_json
from components.report.numbers import FORMATS
from components.report.sources import ReportSources
from components.report.stage import write_report

Build = Callable[..., ReportSources]


class Page(html.parser.HTMLParser):
    """Numbers with their sources, and everything that a browser could load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.numbers: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.loads: list[str] = []
        self._open: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.loads += [found[name] for name in ("src", "href", "xlink:href", "srcset", "action") if name in found]
        if tag == "data":
            self._open = {**found, "text": ""}

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open["text"] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "data" and self._open is not None:
            self.numbers.append((self._open["text"], self._open["value"], self._open["data-source"]))
            self._open = None


def at(content: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        content = content[int(key)] if isinstance(content, list) else content[key]
    return content


def write(sources: ReportSources, out: Path, language: str = "en") -> tuple[str, str, dict[str, Any]]:
    write_report(sources, out, language=language)
    return (out / "report.html").read_text(), (out / "report.md").read_text(), read_json(out / "verdict.json")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_is_found_where_it_says(full_sources: ReportSources, tmp_path: Path, language: str) -> None:
    page, _, data = write(full_sources, tmp_path, language)
    root = full_sources.corpus.parents[1]
    contents = {
        name: read_json(next(iter(root.rglob(file["file"])))) for name, file in data["sources"].items() if name != "run"
    }
    contents["run"] = data["run"]
    numbers = Page(page).numbers
    assert len(numbers) > 150
    cited = {source.partition("#")[0] for _, _, source in numbers}
    kinds = {data["sources"][name]["file"].rpartition("/")[2] for name in cited}
    assert kinds == {"run", "verdict.json", "label_curve.json", "audit.json", "manifest.json", "probe.json"}
    for text, value, source in numbers:
        name, _, pointer = source.partition("#")
        found = at(contents[name], pointer)
        assert json.loads(value) == found, source
        if isinstance(found, str):
            assert text in (found, "all test items", "全部测试样本", "2026-01-02 03:04:05 UTC"), source
        elif isinstance(found, int | float):
            shown = {form(found, language) for form in FORMATS.values()} | {f"{found:g}"}
            assert text in shown, source


def test_main_numbers_stand_on_the_page_as_they_are_in_the_verdict(full_sources: ReportSources, tmp_path: Path) -> None:
    page, markdown, data = write(full_sources, tmp_path)
    best = data["tasks"]["classification"]["views"]["all"]["rungs"][0]
    assert best["rung"] == "bert"
    mean, low, high = (f"{best[name]:.3f}".lstrip("0") for name in ("mean", "low", "high"))
    assert f"| **bert** (highest) (use) | {mean} | {low}–{high} |" in markdown
    assert ("10 min 0 s", "600.0", "S1#/views/all/rungs/0/train_seconds") in Page(page).numbers
    assert all(text in markdown for text in ("4.1 M", "2.3 MB", "1,230", "1 min 44 s"))


def test_order_of_the_sections(full_sources: ReportSources, tmp_path: Path) -> None:
    page, markdown, _ = write(full_sources, tmp_path)
    order = ["verdict", "leaderboard", "costs", "labels", "controls", "leaks", "coverage", "probes", "run", "origin"]
    assert re.findall(r'<section id="(\w+)">', page) == order
    assert markdown.count("\n## ") == len(order)
    assert "No number for " in page
    assert "No context." in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_needs_nothing_else(full_sources: ReportSources, tmp_path: Path, language: str) -> None:
    page, markdown, _ = write(full_sources, tmp_path, language)
    found = Page(page)
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(found.tags)
    assert all(load.startswith(("#", "data:image/png;base64,")) for load in found.loads)
    assert not re.search(r"https?://|@import|@font-face", page)
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert not re.search(r"\{[a-z_]+[:}]", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)), (
        "a field was left unfilled"
    )
    assert (page.count("prefers-color-scheme: dark"), found.tags.count("svg")) == (1, 4)
    pictures = re.findall(r"\]\((figures/[^)]+)\)", markdown)
    assert sorted(pictures) == sorted(f"figures/{path.name}" for path in (tmp_path / "figures").iterdir())
    assert len(pictures) == 3


def test_ids_of_drawings_are_unique_and_references_meet_them(full_sources: ReportSources, tmp_path: Path) -> None:
    page, _, _ = write(full_sources, tmp_path)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)


def test_same_input_same_bytes(full_sources: ReportSources, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(full_sources, tmp_path / name)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) == 6
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)


def test_verdict_json_holds_the_comparison_whole(full_sources: ReportSources, tmp_path: Path) -> None:
    _, _, data = write(full_sources, tmp_path)
    stored = read_json(full_sources.tasks["classification"].comparison / "verdict.json")
    assert data["tasks"] == {"classification": stored}
    assert data["run_id"] == "0123abcd"
    assert str(full_sources.corpus.parents[1]) not in json.dumps(data)


def test_no_place_of_this_machine_is_in_the_report(full_sources: ReportSources, tmp_path: Path) -> None:
    page, markdown, _ = write(full_sources, tmp_path)
    assert str(full_sources.corpus.parents[1]) not in page + markdown


def test_hostile_names_are_words(build: Build, tmp_path: Path) -> None:
    name = '<script>alert(1)</script>"&|*{x}'
    sources = build(tmp_path / "in", {name: 0.7, "bert": 0.9}, size=60, num_seeds=2, labels="<&")
    page, markdown, _ = write(
        replace(sources, run={"run_id": "<img src=x onerror=alert(1)>", "deployment": "]]>{{ 7*7 }}"}), tmp_path / "out"
    )
    found = Page(page)
    assert not {"script", "img"} & set(found.tags)
    assert "&lt;script&gt;alert(1)" in page
    assert "{{ 7*7 }}" in page
    assert not re.search(r"(?<!\\)<(script|img)", markdown)
    assert r"\|\*\{x\}" in markdown


def test_one_rung_one_task_no_probes_no_curve(build: Build, tmp_path: Path) -> None:
    sources = replace(build(tmp_path / "in", {"bert": 0.9}, size=60, num_seeds=1), run={})
    page, markdown, data = write(sources, tmp_path / "out")
    assert re.findall(r'<section id="(\w+)">', page) == [
        "verdict",
        "leaderboard",
        "costs",
        "leaks",
        "coverage",
        "probes",
        "run",
        "origin",
    ]
    assert "There is nothing to compare it with" in markdown
    assert "one seed only" in markdown
    assert "| duration | not recorded |" in markdown
    assert data["run_id"] is None


def test_copies_are_in_the_audit_and_in_both_views(full_sources: ReportSources, tmp_path: Path) -> None:
    _, markdown, _ = write(full_sources, tmp_path)
    assert "| Classification | 500 | 40 | 40 |" in markdown
    assert re.search(r"\| Classification \| never leaked \| \*\*bert\*\* \| [^|]+ \| 460 \|", markdown)
    assert "| found in the corpus | 2 |" in markdown
    assert "| dropped: short | 10 |" in markdown
    assert "| **bert** | 4 |" in markdown


def test_a_winner_on_copies_is_flagged_at_the_top(build: Build, tmp_path: Path) -> None:
    sources = build(tmp_path / "in", {"lstm": 0.7, "bert": 0.7}, leaked=240, by_heart="bert", num_seeds=2)
    page, markdown, _ = write(sources, tmp_path / "out")
    assert re.search(r'<p class="warning">Beware of copies: without leaked test items the lead of', page)
    assert markdown.index("> Beware of copies") < markdown.index("**The evidence**") < markdown.index("## Leaderboard")


@pytest.mark.parametrize(
    ("accuracies", "options", "use", "reason", "warning"),
    [
        ({"tfidf": 0.6, "bert": 0.9}, {}, "Use bert.", "**bert** is the best of 2 rungs; every other", None),
        ({"lstm": 0.8, "bert": 0.8}, {"size": 2000}, "Use lstm.", "There is no clear winner: ", None),
        ({"lstm": 0.7, "bert": 0.78}, {"size": 40}, "Use bert, for now.", "**lstm** is cheaper and may be", "The test is too"),
        ({"bert": 0.9}, {"size": 60, "num_seeds": 1}, "Only bert was run.", "There is nothing to compare", "At least one"),
    ],
    ids=["clear winner", "tie", "too small a test", "one rung"],
)  # fmt: skip
def test_the_answer_in_few_words_follows_the_results(
    build: Build, tmp_path: Path, accuracies: dict[str, float], options: dict[str, Any], use: str, reason: str,
    warning: str | None,
) -> None:  # fmt: skip
    _, markdown, data = write(build(tmp_path / "in", accuracies, **options), tmp_path / "out")
    verdict = markdown[markdown.index("## The verdict") : markdown.index("**The evidence**")]
    assert f"**{use}**" in verdict
    assert reason in verdict
    assert (warning is None and "> " not in verdict) or f"> {warning}" in verdict
    best = data["tasks"]["classification"]["views"]["all"]["rungs"][0]
    assert f"**{best['rung']}** {best['mean']:.3f}".replace(" 0.", " .") in verdict


def test_scores_of_another_data_set_are_refused(full_sources: ReportSources, build: Build, tmp_path: Path) -> None:
    other = build(tmp_path / "in", {"bert": 0.9}, size=60, num_seeds=1).tasks["classification"].evaluations
    task = replace(full_sources.tasks["classification"], evaluations=other)
    with pytest.raises(ArtifactError, match="60 test items are scored, the data set has 500"):
        write_report(replace(full_sources, tasks={"classification": task}), tmp_path / "out")


def test_sources_that_do_not_fit_are_refused(full_sources: ReportSources, tmp_path: Path) -> None:
    task = full_sources.tasks["classification"]
    with pytest.raises(ConfigError, match="0 tasks"):
        write_report(replace(full_sources, tasks={}), tmp_path)
    with pytest.raises(ArtifactError, match="on 'classification', given for 'ner'"):
        write_report(replace(full_sources, tasks={"ner": task}), tmp_path)
    with pytest.raises(ArtifactError, match=r"verdict\.json"):
        write_report(replace(full_sources, tasks={"classification": replace(task, comparison=task.dataset)}), tmp_path)
    with pytest.raises(ConfigError, match="2 times"):
        write_report(replace(full_sources, probes=full_sources.probes * 2), tmp_path)
