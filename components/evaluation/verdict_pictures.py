"""The verdict as pictures: scores with intervals, score against cost, differences of pairs, and the label curve.

Every drawing has two colours for everything that is not data, ``INK`` and ``GRID``, so that a page which embeds one
as SVG can give them the colours of its own theme.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from components.evaluation.picture import find_font, shorten

Language = Literal["zh", "en"]
INK = "#24292e"
GRID = "#d9dee3"
MAIN = "#2f86b0"
SOFT = "#d9822b"
PLAIN = "#8c959f"
COLORS = ("#2f86b0", "#d9822b", "#3f9b5b", "#c9506a", "#8a6bbf", "#8c6d46", "#c77cb5", "#7f8c3b", "#3aa6a6", "#8c959f")
MAX_PAIRS = 24
"""Most pairs that are drawn, those of the best rung first; ``verdict.json`` has them all."""
_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "all": "all test items",
        "never_leaked": "never leaked",
        "score": "{metric}, mean over seeds with {level:.0%} interval",
        "seconds": "seconds to train (encoder + fine-tuning), log scale",
        "difference": "difference in {metric}, points, with {level:.0%} interval",
        "separable": "separable (Holm)",
        "not_separable": "not separable",
        "labels": "labelled examples, log scale",
    },
    "zh": {
        "all": "全部测试样本",
        "never_leaked": "无泄漏样本",
        "score": "{metric}:各随机种子的均值与 {level:.0%} 区间",
        "seconds": "训练秒数(编码器 + 微调),对数刻度",
        "difference": "{metric} 之差(百分点)与 {level:.0%} 区间",
        "separable": "可区分(Holm 校正)",
        "not_separable": "不可区分",
        "labels": "标注样本数,对数刻度",
    },
}


def draw_scores(verdict: dict[str, Any], language: Language) -> Figure:
    """Each rung's mean and interval, the best on top; one row of marks per view."""
    words, views = _words(verdict, language), verdict["views"]
    names = [row["rung"] for row in views[verdict["primary_view"]]["rungs"]]
    axes = _axes(0.42 * len(names) + 1.3)
    shift = 0.15 if len(views) > 1 else 0.0
    for view, color, offset in (("all", MAIN, -shift), ("never_leaked", SOFT, shift)):
        rows = {row["rung"]: row for row in views[view]["rungs"]} if view in views else {}
        for position, name in enumerate(names):
            if name in rows:
                row = rows[name]
                label = words[view] if not position else None
                axes.plot([row["low"], row["high"]], [position + offset] * 2, color=color, alpha=0.5, linewidth=3.5)
                axes.plot(row["mean"], position + offset, "o", color=color, markersize=5.5, label=label)
    _name_rows(axes, names)
    return _finish(axes, x=words["score"], legend=len(views) > 1)


def draw_costs(verdict: dict[str, Any], language: Language) -> Figure:
    """Score against seconds to train in the primary view; the best and the chosen rung stand out."""
    words, view = _words(verdict, language), verdict["views"][verdict["primary_view"]]
    axes = _axes(3.3)
    for row in view["rungs"]:
        marked = row["rung"] in (view["best"], view["cheapest_within_noise"])
        color = MAIN if marked else PLAIN
        seconds = max(row["train_seconds"], 0.1)
        axes.plot([seconds] * 2, [row["low"], row["high"]], color=color, alpha=0.4, linewidth=3)
        axes.plot(seconds, row["mean"], "o", color=color, markersize=6)
        axes.annotate(
            shorten(row["rung"]),
            (seconds, row["mean"]),
            xytext=(6, 3),
            textcoords="offset points",
            fontsize=8,
            fontweight="bold" if marked else "normal",
            color=INK,
            fontproperties=_font([row["rung"]]),
        )
    axes.set_xscale("log")
    axes.margins(x=0.18)
    _plain_numbers(axes)
    return _finish(axes, x=words["seconds"], y=verdict["metric"])


def draw_pairs(verdict: dict[str, Any], language: Language) -> Figure:
    """Difference and interval of pairs of rungs in the primary view; first those of the best rung."""
    words, view = _words(verdict, language), verdict["views"][verdict["primary_view"]]
    pairs = view["pairs"][:MAX_PAIRS]
    axes = _axes(0.3 * len(pairs) + 1.3)
    labelled = set[str]()
    for position, pair in enumerate(pairs):
        kind = "separable" if pair["significant"] else "not_separable"
        color, label = MAIN if pair["significant"] else PLAIN, None if kind in labelled else words[kind]
        labelled.add(kind)
        axes.plot([100 * pair["low"], 100 * pair["high"]], [position] * 2, color=color, alpha=0.5, linewidth=3.5)
        axes.plot(100 * pair["difference"], position, "o", color=color, markersize=5, label=label)
    axes.axvline(0, color=INK, linewidth=0.8)
    _name_rows(axes, [f"{shorten(pair['first'])} − {shorten(pair['second'])}" for pair in pairs])
    return _finish(axes, x=words["difference"], legend=True)


def draw_label_curve(curve: dict[str, Any], language: Language) -> Figure:
    """Mean and band of every rung against the number of labels."""
    words = _WORDS[language]
    axes = _axes(3.9)
    counts = sorted({point["num_labels"] for line in curve["curves"] for point in line["points"]})
    for number, line in enumerate(curve["curves"]):
        color = COLORS[number % len(COLORS)]
        x = [point["num_labels"] for point in line["points"]]
        low, high = ([point[end] for point in line["points"]] for end in ("low", "high"))
        axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        style = "-" if number < len(COLORS) else "--"
        means = [point["mean"] for point in line["points"]]
        axes.plot(x, means, style, marker="o", color=color, markersize=4, linewidth=1.6, label=line["rung"])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return _finish(axes, x=words["labels"], y=curve["metric"], legend=True)


def save_picture(figure: Figure, path: Path) -> None:
    """Write a drawing as PNG; the same drawing gives the same bytes."""
    figure.savefig(path, dpi=150, metadata={"Software": None})


def _words(verdict: dict[str, Any], language: Language) -> dict[str, str]:
    facts = {"metric": verdict["metric"], "level": 1 - verdict["alpha"]}
    return {name: text.format(**facts) for name, text in _WORDS[language].items()}


def _axes(height: float) -> Axes:
    axes: Axes = Figure(figsize=(5.6, height), layout="constrained").subplots()
    return axes


def _font(texts: list[str], size: float = 8.0) -> FontProperties:
    """A font that has the texts' characters, or the default one where none is installed."""
    font = (find_font(texts) or FontProperties()).copy()
    font.set_size(size)
    return font


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontproperties=_font(names))
    axes.set_ylim(len(names) - 0.5, -0.5)


def _plain_numbers(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _finish(axes: Axes, *, x: str, y: str = "", legend: bool = False) -> Figure:
    axes.set_xlabel(x, fontproperties=_font([x]), color=INK)
    axes.set_ylabel(y, fontproperties=_font([y]), color=INK)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    if legend:
        handles, labels = axes.get_legend_handles_labels()
        below = {"loc": "outside upper center", "ncols": min(len(labels), 4), "frameon": False}
        axes.figure.legend(handles, labels, prop=_font(labels), labelcolor=INK, **below)
    figure = axes.figure
    assert isinstance(figure, Figure)
    return figure
