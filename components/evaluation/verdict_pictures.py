"""The verdict as pictures: scores with intervals, score against cost, differences of pairs, and the label curve.

Every drawing has two colours for everything that is not data, ``INK`` and ``GRID``, so that a page which embeds one
as SVG can give them the colours of its own theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from components.evaluation.verdict_labels import num_columns, short_names, spread_labels
from components.fonts import find_font

Language = Literal["zh", "en"]
INK = "#24292e"
GRID = "#d9dee3"
MAIN = "#2f86b0"
SOFT = "#d9822b"
PLAIN = "#8c959f"
COLORS = ("#2f86b0", "#d9822b", "#3f9b5b", "#c9506a", "#8a6bbf", "#8c6d46", "#c77cb5", "#7f8c3b", "#3aa6a6", "#8c959f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
"""With ``COLORS``: marks that are told apart without colours."""
NARROW_INCHES = 3.4
"""Width that a legend must fit into: a page may draw a picture for a phone."""
WIDTH_INCHES = 5.6
LEGEND_ROW_INCHES = 0.17
MANY_CURVES = 4
SHORTEST_SECONDS = 0.1
"""Shorter times are drawn here: a logarithmic axis has no 0, and nobody waits for less."""
MAX_PAIRS = 24
"""Most pairs that are drawn, those of the best rung first; ``verdict.json`` has them all."""
_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "all": "all test items",
        "never_leaked": "never leaked",
        "score": "{metric}, mean over seeds with {level:.0%} interval",
        "seconds": "seconds to train (encoder + fine-tuning), log scale",
        "difference": "difference in {metric}, points, with {level:.0%} interval",
        "separable": "separable (Holm-corrected)",
        "not_separable": "not separable",
        "best": "highest",
        "chosen": "cheapest within noise",
        "both": "highest, and cheapest within noise",
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
        "best": "最高",
        "chosen": "误差范围内最省",
        "both": "最高,且误差范围内最省",
        "labels": "标注样本数,对数刻度",
    },
}


def draw_scores(verdict: dict[str, Any], language: Language) -> Figure:
    """Each rung's mean and interval, the best on top; one row of marks per view."""
    words, views = _words(verdict, language), verdict["views"]
    names = [row["rung"] for row in views[verdict["primary_view"]]["rungs"]]
    axes = _axes(0.42 * len(names) + 1.3)
    shift = 0.15 if len(views) > 1 else 0.0
    for view, color, marker, offset in (("all", MAIN, "o", -shift), ("never_leaked", SOFT, "s", shift)):
        rows = {row["rung"]: row for row in views[view]["rungs"]} if view in views else {}
        for position, row in ((names.index(name), row) for name, row in rows.items()):
            axes.plot([row["low"], row["high"]], [position + offset] * 2, color=color, alpha=0.5, linewidth=3.5)
            label = None if position else words[view]
            axes.plot(row["mean"], position + offset, marker, color=color, markersize=5.5, label=label, linestyle="")
    _name_rows(axes, list(short_names(names).values()))
    return _finish(axes, x=words["score"], legend=len(views) > 1)


def draw_costs(verdict: dict[str, Any], language: Language) -> Figure:
    """Score against seconds to train in the primary view; the best and the chosen rung stand out.

    Names stand right of their points; ``spread_labels`` parts those that cover each other.
    """
    words, view = _words(verdict, language), verdict["views"][verdict["primary_view"]]
    axes = _axes(4.0)
    names = short_names(row["rung"] for row in view["rungs"])
    for row in view["rungs"]:
        kind = _standing(row["rung"], view)
        color, marker = {"best": (MAIN, "o"), "both": (MAIN, "D"), "chosen": (SOFT, "D")}.get(kind, (PLAIN, "o"))
        seconds = max(row["train_seconds"], SHORTEST_SECONDS)
        axes.plot([seconds] * 2, [row["low"], row["high"]], color=color, alpha=0.4, linewidth=3)
        axes.plot(seconds, row["mean"], marker, color=color, markersize=6, linestyle="", label=words.get(kind))
        font = _font([row["rung"]])
        font.set_weight("bold" if kind else "normal")
        place: dict[str, Any] = {"xytext": (6, 3), "textcoords": "offset points"}
        axes.annotate(names[row["rung"]], (seconds, row["mean"]), **place, color=INK, fontproperties=font)
    axes.set_xscale("log")
    axes.margins(x=0.18)
    _plain_numbers(axes)
    return _finish(axes, x=words["seconds"], y=verdict["metric"], legend=True)


def draw_pairs(verdict: dict[str, Any], language: Language) -> Figure:
    """Difference and interval of pairs of rungs in the primary view; first those of the best rung."""
    words, view = _words(verdict, language), verdict["views"][verdict["primary_view"]]
    pairs = view["pairs"][:MAX_PAIRS]
    axes = _axes(0.3 * len(pairs) + 1.3)
    for kind, significant, color, marker in (("separable", True, MAIN, "o"), ("not_separable", False, PLAIN, "s")):
        label: str | None = words[kind]
        for position, pair in enumerate(pairs):
            if pair["significant"] == significant:
                bounds = [100 * pair["low"], 100 * pair["high"]]
                axes.plot(bounds, [position] * 2, color=color, alpha=0.5, linewidth=3.5)
                style: dict[str, Any] = {"color": color, "markersize": 5, "linestyle": "", "label": label}
                axes.plot(100 * pair["difference"], position, marker, **style)
                label = None
    axes.axvline(0, color=INK, linewidth=0.8)
    names = short_names(row["rung"] for row in view["rungs"])
    _name_rows(axes, [f"{names[pair['first']]} − {names[pair['second']]}" for pair in pairs])
    return _finish(axes, x=words["difference"], legend=True)


def draw_label_curve(curve: dict[str, Any], language: Language) -> Figure:
    """Mean and band of every rung against the number of labels; in the legend the highest at the end stands first."""
    words, lines = _WORDS[_readable(language)], curve["curves"]
    names = short_names(line["rung"] for line in lines)
    axes = _axes(3.9)
    # Bands of many rungs would hide each other.
    shade = 0.15 if len(lines) <= MANY_CURVES else 0.06
    for number in sorted(range(len(lines)), key=lambda number: -lines[number]["points"][-1]["mean"]):
        points, color = lines[number]["points"], COLORS[number % len(COLORS)]
        x, means, low, high = ([point[name] for point in points] for name in ("num_labels", "mean", "low", "high"))
        axes.fill_between(x, low, high, color=color, alpha=shade, linewidth=0)
        style: dict[str, Any] = {"marker": MARKERS[number % len(MARKERS)], "markersize": 5, "linewidth": 1.5}
        style |= {"color": color, "linestyle": "-" if number < len(COLORS) else "--"}
        axes.plot(x, means, label=names[lines[number]["rung"]], **style)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({at["num_labels"] for line in lines for at in line["points"]})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return _finish(axes, x=words["labels"], y=curve["metric"], legend=True)


def save_picture(figure: Figure, path: Path) -> None:
    """Write a drawing as PNG; the same drawing gives the same bytes."""
    spread_labels(figure).savefig(path, dpi=150, metadata={"Software": None})


def _words(verdict: dict[str, Any], language: Language) -> dict[str, str]:
    facts = {"metric": verdict["metric"], "level": 1 - verdict["alpha"]}
    return {name: text.format(**facts) for name, text in _WORDS[_readable(language)].items()}


def _readable(language: Language) -> Language:
    """English where no installed font has the characters: boxes say nothing."""
    return language if find_font(_WORDS[language].values()) else "en"


def _standing(rung: str, view: dict[str, Any]) -> str:
    """Why a rung stands out, as a key of the words; "" where it does not."""
    best, chosen = rung == view["best"], rung == view["cheapest_within_noise"]
    return "both" if best and chosen else "best" if best else "chosen" if chosen else ""


def _axes(height: float) -> Axes:
    axes: Axes = Figure(figsize=(WIDTH_INCHES, height), layout="constrained").subplots()
    return axes


def _font(texts: Iterable[str], size: float = 8.0) -> FontProperties:
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
    axes.tick_params(which="both", length=0, labelcolor=INK, labelsize=8)
    figure = axes.figure
    assert isinstance(figure, Figure)
    if legend:
        _add_legend(figure, axes)
    return figure


def _add_legend(figure: Figure, axes: Axes) -> None:
    """A legend above the drawing, which grows by the height of its rows."""
    handles, labels = axes.get_legend_handles_labels()
    columns = num_columns(labels, NARROW_INCHES)
    rows = math.ceil(len(labels) / columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW_INCHES * (rows - 1))
    style: dict[str, Any] = {"prop": _font(labels), "labelcolor": INK, "frameon": False, "ncols": columns}
    figure.legend(handles, labels, loc="outside upper center", **style)
