from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Annotation

from components.evaluation.verdict_labels import num_columns, short_names, spread_labels
from components.evaluation.verdict_pictures import draw_costs, draw_label_curve, draw_pairs, draw_scores, save_picture

NAMES = [
    "one_hot", "tfidf", "word2vec_cbow", "word2vec_skipgram", "rnn", "lstm", "lstm_word2vec",
    "bert_small_random_start", "bert_small_trained_on_the_corpus",
]  # fmt: skip


def verdict(means: list[float], seconds: list[float]) -> dict[str, Any]:
    rungs = [
        {"rung": name, "mean": mean, "low": mean - 0.02, "high": mean + 0.02, "train_seconds": time}
        for name, mean, time in zip(NAMES, means, seconds, strict=True)
    ]
    pairs = [
        {
            "first": first,
            "second": second,
            "difference": 0.01,
            "low": -0.01,
            "high": 0.03,
            "significant": first == "rnn",
        }
        for first, second in combinations(NAMES, 2)
    ]
    view = {"rungs": rungs, "pairs": pairs, "best": NAMES[0], "cheapest_within_noise": NAMES[1]}
    return {"metric": "accuracy", "primary_view": "all", "alpha": 0.05, "views": {"all": view, "never_leaked": view}}


CROWDED = verdict([0.80, 0.801, 0.70, 0.701, 0.702, 0.699, 0.70, 0.69, 0.71], [1, 1.1, 20, 21, 22, 23, 24, 25, 26])
CURVES = {
    "metric": "accuracy",
    "curves": [
        {"rung": name, "points": [{"num_labels": n, "mean": 0.5, "low": 0.4, "high": 0.6} for n in (100, 1000)]}
        for name in NAMES
    ],
}


def names_of(figure: Figure) -> list[Annotation]:
    return [text for text in figure.axes[0].texts if isinstance(text, Annotation)]


def boxes(figure: Figure) -> tuple[dict[str, Any], Any]:
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    return {label.get_text(): label.get_window_extent(renderer) for label in names_of(figure)}, renderer


def test_names_of_near_points_do_not_cover_each_other_or_another_point() -> None:
    figure = draw_costs(CROWDED, "en")
    before, _ = boxes(figure)
    assert any(one.overlaps(other) for one, other in combinations(before.values(), 2))
    found, renderer = boxes(spread_labels(figure))
    assert len(found) == len(NAMES)
    assert not any(one.overlaps(other) for one, other in combinations(found.values(), 2))
    page = figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in found.values())
    points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    for point, name in zip(points, found, strict=True):
        others = [box for other, box in found.items() if other != name]
        assert not any(point.get_window_extent(renderer).overlaps(box) for box in others)


def test_names_of_far_points_stay_beside_them() -> None:
    figure = draw_costs(verdict(list(np.linspace(0.5, 0.9, 9)), list(np.geomspace(1, 1e9, 9))), "en")
    spread_labels(figure)
    for label in names_of(figure)[:7]:  # The last two would leave the drawing.
        assert (label.xyann, label.get_horizontalalignment()) == ((6, 3), "left")


def test_long_names_lose_their_middle_unless_two_would_be_one() -> None:
    assert (
        short_names(["lstm", "bert_small_trained_on_the_corpus"])["bert_small_trained_on_the_corpus"]
        == "bert_smal…e_corpus"
    )
    alike = ["bert_small_one_of_the_corpus", "bert_small_two_of_the_corpus"]
    assert short_names(alike) == dict(zip(alike, alike, strict=True))


def test_legend_columns_fit_the_width() -> None:
    assert num_columns(["a", "b"], 3.4) == 2
    assert num_columns(["a" * 18] * 9, 3.4) == 1
    assert num_columns(["六个汉字名称"] * 9, 3.4) == num_columns(["a" * 12] * 9, 3.4) == 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_picture_is_drawn_in_full(tmp_path: Path, language: Any) -> None:
    drawings = [draw_scores(CROWDED, language), draw_pairs(CROWDED, language), draw_label_curve(CURVES, language)]
    for figure in [*drawings, draw_costs(CROWDED, language)]:
        save_picture(figure, tmp_path / "picture.png")
        pixels = imread(tmp_path / "picture.png")[..., :3]
        assert pixels.shape[1] == 840
        border = np.concatenate([pixels[:, 0], pixels[:, -1], pixels[0], pixels[-1]])
        assert (border > 0.8).all(), "something is cut off at the border"


def test_lines_of_a_label_curve_are_told_apart_without_colours() -> None:
    axes = draw_label_curve(CURVES, "en").axes[0]
    assert len({line.get_marker() for line in axes.lines}) == len(NAMES)


def test_the_highest_and_the_chosen_rung_are_named_in_the_legend() -> None:
    def shown(content: dict[str, Any]) -> list[str]:
        return [text.get_text() for text in draw_costs(content, "en").legends[0].get_texts()]

    assert shown(CROWDED) == ["highest", "cheapest within noise"]
    same = {**CROWDED["views"]["all"], "cheapest_within_noise": NAMES[0]}
    assert shown({**CROWDED, "views": {"all": same}}) == ["highest, and cheapest within noise"]
