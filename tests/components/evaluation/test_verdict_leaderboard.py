"""Means and intervals of the verdict are those of the leaderboard, which counts one rung at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.evaluation.aggregate import aggregate
from components.evaluation.comparison import read_compared
from components.evaluation.comparison_config import ComparisonConfig, Entry
from components.evaluation.config import MAIN_METRIC
from components.evaluation.verdict import build_verdict
from components.examples import Answer, AnyExample, Question, TaggedText, TaskName, write_examples, write_task
from components.formats import write_jsonl

SKILLS = {"tfidf": 0.5, "bert": 0.8}
SEEDS = (0, 1, 2)
SIZE, RESAMPLES = 120, 300
Row = dict[str, Any]


def sentence(number: int) -> TaggedText:
    """Every fourth sentence has no entity; the others one of two types."""
    tags = ("O",) * 5 if number % 4 == 3 else ("O", f"B-{'PER' if number % 3 else 'LOC'}", "I-PER", "O", "O")
    tags = tuple("I-LOC" if tag == "I-PER" and tags[1] == "B-LOC" else tag for tag in tags)
    return TaggedText(f"t:{number}", "在王明家里", tuple((n, n + 1) for n in range(5)), tags, number % 5 == 0)


def tags_row(item: AnyExample, right: bool, rung: str) -> Row:
    """Wrong tags name a type that gold lacks, another one for each rung."""
    assert isinstance(item, TaggedText)
    return {"id": item.id, "tags": item.tags if right else (f"B-{rung}", "I-" + rung, "O", "O", "O")}


def question(number: int) -> Question:
    """Passages of one to four questions; every seventh question has no answer."""
    text = f"第{int(np.sqrt(number)):02d}段:巴金生于四川成都。"
    answers = () if number % 7 == 6 else (Answer("四川成都", text.index("四川")),)
    return Question(f"q:{number}", text, "生于何处?", answers, number % 5 == 0)


def answer_row(item: AnyExample, right: bool, rung: str) -> Row:
    """Wrong answers have half of the right one, so that F1 is a fraction."""
    assert isinstance(item, Question)
    start = item.text.index("川成" if rung == "bert" else "生于四")
    end = start + (2 if rung == "bert" else 3)
    if right:
        start, end = (item.answers[0].start, item.answers[0].start + 4) if item.answers else (0, 0)
    return {"id": item.id, "answer": item.text[start:end], "start": start, "end": end}


@pytest.mark.parametrize("view", ["all", "never_leaked"])
@pytest.mark.parametrize(
    ("task", "item_of", "row_of"), [("ner", sentence, tags_row), ("question_answering", question, answer_row)]
)
def test_means_and_intervals_are_those_of_the_leaderboard(
    tmp_path: Path, task: TaskName, item_of: Callable[[int], AnyExample], row_of: Callable[..., Row], view: Any
) -> None:
    items = [item_of(number) for number in range(SIZE)]
    write_task(tmp_path, task)
    write_examples(tmp_path, "train", items[:4])
    write_examples(tmp_path, "test", items)
    generator = np.random.default_rng(4)
    paths = {rung: [tmp_path / f"{rung}-{seed}.jsonl" for seed in SEEDS] for rung in SKILLS}
    for rung, skill in SKILLS.items():
        for path in paths[rung]:
            write_jsonl(path, [row_of(item, generator.random() < skill, rung) for item in items])
    costs = {"train_seconds": 1.0, "items_per_second": 10.0, "num_parameters": 10, "model_bytes": 40}
    entries = tuple(Entry(rung=rung, seed=seed, **costs) for rung in SKILLS for seed in SEEDS)
    config = ComparisonConfig(entries=entries, num_resamples=RESAMPLES, seed=7, alpha=0.1)
    verdict = build_verdict(config, read_compared(config, [path for runs in paths.values() for path in runs], tmp_path))
    rows = {row["rung"]: row for row in verdict["views"][view]["rungs"]}
    settings: dict[str, Any] = {"num_resamples": RESAMPLES, "seed": 7, "view": view, "confidence_level": 0.9}
    for rung in SKILLS:
        found = aggregate(paths[rung], tmp_path, MAIN_METRIC[task], **settings)
        assert (rows[rung]["mean"], rows[rung]["low"], rows[rung]["high"]) == (found.mean, found.low, found.high)
        assert found.low < found.mean < found.high
        assert verdict["views"][view]["num_items"] == found.num_items
    assert rows["bert"]["mean"] > rows["tfidf"]["mean"]
