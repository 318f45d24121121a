from __future__ import annotations

import ast
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components import evaluation
from components.errors import ArtifactError
from components.report import sentences_en, sentences_zh, words_en, words_zh
from components.report.content import Pieces
from components.report.sentences import TEMPLATES, write_sentence
from components.report.sources import JsonFile, ReportSources
from components.report.verdict_sections import LEAD as LEAD_KINDS
from components.report.verdict_sections import SHOWN_INGREDIENTS, WARNINGS
from components.report.writing import open_writing

Build = Callable[..., ReportSources]

FOLDER = Path(evaluation.__file__).parent
LANGUAGES = ["en", "zh"]
LEAD = {
    "kind": "best_clear", "rung": "bert", "mean": 0.7, "low": 0.68, "high": 0.7194, "num_seeds": 3, "runner_up": "lstm",
    "difference": 0.0316, "difference_low": -0.001, "difference_high": 0.06, "p_holm": 0.0004, "tied": ["lstm", "tfidf", "rnn"],
    "num_rungs": 5, "view": "all", "metric": "entity_f1",
}  # fmt: skip


def text_of(pieces: Pieces) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def say(facts: dict[str, Any], language: str = "en") -> str:
    return text_of(write_sentence(JsonFile("S1", {"sentences": [facts]}), ("sentences", 0), language))


def strings(node: ast.expr) -> list[str]:
    """The strings that an expression may be: both sides of a condition, an f-string up to its first field."""
    if isinstance(node, ast.IfExp):
        return strings(node.body) + strings(node.orelse)
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        return [f"{node.values[0].value}*"]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def emitted_kinds() -> set[str]:
    """Every kind of sentence that the code of the evaluation can write, read from the code itself."""
    found: set[str] = set()
    endings: dict[str, set[str]] = {"effect": set(), "limit": set(), "reason": {"items"}}
    for path in (*sorted(FOLDER.glob("verdict*.py")), FOLDER / "label_curve.py"):
        file, tree = path.name, ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {
                    kind
                    for key, value in pairs
                    if isinstance(key, ast.Constant) and key.value == "kind"
                    for kind in strings(value)
                }
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                found |= set(strings(node.value)) if name == "kind" else set()
                endings[name] = endings.get(name, set()) | set(strings(node.value))
            if (
                isinstance(node, ast.FunctionDef)
                and file == "verdict_sentences.py"
                and ast.unparse(node.returns or ast.Constant(None)) == "str"
            ):
                found |= {
                    kind
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Return) and inner.value
                    for kind in strings(inner.value)
                }
    open_ended = {kind for kind in found if kind.endswith("*")}
    assert open_ended == {"ingredient_*", "not_separable_*"}
    found |= {f"ingredient_{ending}" for ending in endings["effect"]}
    found |= {f"not_separable_{ending}" for ending in endings["limit"] | {"items"}}
    return found - open_ended


def test_every_kind_that_the_code_can_write_has_words_in_both_languages() -> None:
    kinds = emitted_kinds()
    assert len(kinds) > 20
    assert {"best_clear", "seeds_too_few", "ingredient_costs", "not_separable_seeds", "ahead_throughout"} <= kinds
    for language in LANGUAGES:
        assert kinds <= set(TEMPLATES[language])


def test_every_answer_has_a_form_in_few_words_and_every_choice_a_headline() -> None:
    assert {*WARNINGS, *SHOWN_INGREDIENTS} <= emitted_kinds()
    answers = {kind for kind in emitted_kinds() if kind.startswith(LEAD_KINDS)}
    choices = {kind for kind in answers if kind not in ("best_clear", "best_leads", "all_tied")}
    assert choices == {"only_rung", "best_is_cheapest", "cheaper_as_good", "cheaper_unproven"}
    for templates in TEMPLATES.values():
        variants = {kind for kind in templates for choice in choices if kind.startswith(choice)}
        assert {f"use_{kind}" for kind in variants} <= set(templates)
        assert {f"short_{kind}" for kind in answers | variants} <= set(templates)


def test_languages_say_the_same_with_the_same_facts() -> None:
    def fields(template: str) -> set[tuple[str, str | None]]:
        return {(field, spec) for _, field, spec, _ in string.Formatter().parse(template) if field}

    assert set(words_en.WORDS) == set(words_zh.WORDS)
    for kind, template in sentences_en.SENTENCES.items():
        assert fields(template) == fields(sentences_zh.SENTENCES[kind]), kind


def test_a_kind_without_words_is_an_error() -> None:
    with pytest.raises(ArtifactError, match="of kind 'surprise'"):
        say({"kind": "surprise"})


def test_a_fact_that_is_missing_is_an_error() -> None:
    with pytest.raises(ArtifactError, match="/sentences/0/p_holm"):
        say({name: value for name, value in LEAD.items() if name != "p_holm"})


def test_lead_in_words() -> None:
    assert say(LEAD) == (
        "bert is the best of 5 rungs on all test items: entity F1 .700 (.680–.719), mean of 3 seeds. Every other rung is shown to be "
        "worse; the runner-up, lstm, by 3.2 points (taken alone −0.1 to 6.0; p < .001 after correction for all its comparisons)."
    )
    assert "检验不能把它与 lstm、tfidf 和 rnn 区分开" in say({**LEAD, "kind": "best_leads"}, "zh")
    assert "0.700（0.680–0.719）" in say(LEAD, "zh")


def test_variants_when_a_fact_is_absent_or_turned() -> None:
    limits = {
        "num_items": 40,
        "minimum_detectable_difference": None,
        "margin": 0.05,
        "power": 0.8,
        "num_seeds": 1,
        "view": "all",
    }
    assert "no difference is found with 80 % power" in say({"kind": "test_too_small", **limits})
    assert "from 6.0 points on" in say({"kind": "test_too_small", **limits, "minimum_detectable_difference": 0.06})
    pair = {
        "kind": "not_separable_items",
        "first": "a",
        "second": "b",
        "difference": 0.02,
        "power": 0.8,
        "num_items": 500,
    }
    assert "from about 1,230 items on" in say({**pair, "items_needed": 1234})
    assert "although about 300 of the 500" in say({**pair, "items_needed": 300})
    crossing = {
        "kind": "crosses", "rung": "bert", "over": "lstm", "num_labels": 812, "low": None, "low_is": "below", "high": 2345, "high_is": "within",
        "first_count": 100, "last_count": 3000,
    }  # fmt: skip
    assert say(crossing) == "bert starts to pay over lstm at about 812 labels (fewer than 100 to 2,340)."
    assert say({**crossing, "high": None, "high_is": "beyond"}).endswith("(fewer than 100 to more than 3,000).")


def all_sentences(sources: ReportSources, language: str) -> str:
    files = open_writing(sources, language).tasks[0]
    positions = range(len(files.verdict.at("sentences")))
    return "\n".join(
        text_of(write_sentence(files.verdict, ("sentences", position), language)) for position in positions
    )


@pytest.mark.parametrize(
    ("accuracies", "options", "en", "zh"),
    [
        ({"tfidf": 0.6, "lstm": 0.7, "bert": 0.9}, {}, "bert is the best of 3 rungs", "3 级中 bert 最好"),
        ({"lstm": 0.8, "bert": 0.8}, {}, "There is no clear winner", "没有明确的胜者"),
        ({"lstm": 0.7, "bert": 0.7}, {"leaked": 240, "by_heart": "bert"}, "Beware of copies: without the 240 leaked ones of 500", "当心副本：去掉 500 条测试样本中泄漏的 240 条"),
        ({"lstm": 0.7, "bert": 0.78}, {"size": 40}, "too small for the question: with 40 items", "测试集太小，不足以回答问题：40 条样本"),
    ],
    ids=["clear winner", "tie", "leak-only winner", "too small a test"],
)  # fmt: skip
def test_planted_results_in_words(
    build: Build, tmp_path: Path, accuracies: dict[str, float], options: dict[str, Any], en: str, zh: str
) -> None:
    sources = build(tmp_path, accuracies, **options)
    assert en in all_sentences(sources, "en")
    assert zh in all_sentences(sources, "zh")
