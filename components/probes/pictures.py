"""Pictures of the probes of meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from numpy.typing import NDArray

from components.fonts import find_font

COLORS = ("#3b6ea8", "#d1773b", "#5a9367", "#9a5b95", "#8a8a8a", "#b34f4f")
MARKERS = ("o", "^", "s", "D", "v", "P")


@dataclass(frozen=True)
class Bar:
    """A number with its interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Cloud:
    """Contexts of one word in two dimensions."""

    title: str
    points_N2: NDArray[np.float64]
    senses: Sequence[str]
    """Sense of each of N points."""


def readable(names: Sequence[str]) -> list[str]:
    """The names, or numbers in their place where no font has their characters."""
    return list(names) if find_font(names) else [f"#{number}" for number in range(1, len(names) + 1)]


def draw_intervals(bars: Sequence[Bar], *, chance: float, chance_name: str, title: str, axis: str, path: Path) -> None:
    """Numbers with their intervals, and the line of what guessing gives.

    Args:
        bars: From top to bottom.
        chance: Where the line is.
        chance_name: Its name in the legend.
        title: Text above the picture.
        axis: What the numbers are.
        path: PNG file to write.
    """
    figure = Figure(figsize=(6.4, 1.5 + 0.42 * len(bars)), dpi=120, layout="constrained")
    axes = figure.subplots()
    font = find_font([title, axis, chance_name, *(bar.name for bar in bars)])
    for row, bar in enumerate(bars):
        error = [[max(0.0, bar.value - bar.low)], [max(0.0, bar.high - bar.value)]]
        axes.errorbar(bar.value, row, xerr=error, fmt="o", color=COLORS[0], capsize=4)
        axes.annotate(f"{bar.value:.2f}", (bar.value, row), xytext=(0, 6), textcoords="offset points", ha="center")
    axes.axvline(chance, color=COLORS[4], linestyle="--", label=chance_name)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontproperties=font)
    axes.set_ylim(len(bars) - 0.4, -0.8)
    low, high = min([chance, *(bar.low for bar in bars)]), max([chance, *(bar.high for bar in bars)])
    axes.set_xlim(min(low - 0.08, chance - 0.2), max(high + 0.08, chance + 0.2))
    axes.set_xlabel(axis, fontproperties=font)
    axes.set_title(title, fontproperties=font, fontsize=11)
    figure.legend(prop=font, loc="outside lower right", fontsize=9, frameon=False)
    _finish(figure, path)


def draw_growth(
    sizes: Sequence[int], curves: Mapping[str, Sequence[float]], *, title: str, across: str, up: str, path: Path
) -> None:
    """Bytes against the size of the vocabulary, both on logarithmic axes.

    Args:
        sizes: Words.
        curves: Bytes at each size, by name.
        title: Text above the picture.
        across: Name of the horizontal axis.
        up: Name of the vertical axis.
        path: PNG file to write.
    """
    figure = Figure(figsize=(6.4, 4.0), dpi=120, layout="constrained")
    axes = figure.subplots()
    font = find_font([title, across, up, *curves])
    for number, (name, values) in enumerate(curves.items()):
        axes.plot(sizes, np.asarray(values) / 2**20, marker=MARKERS[number], color=COLORS[number], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across, fontproperties=font)
    axes.set_ylabel(up, fontproperties=font)
    axes.set_title(title, fontproperties=font, fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(prop=font, fontsize=9)
    _finish(figure, path)


def draw_clouds(clouds: Sequence[Cloud], *, title: str, path: Path) -> None:
    """Contexts of some words side by side, coloured by sense.

    Args:
        clouds: One panel a word.
        title: Text above the picture.
        path: PNG file to write.
    """
    columns = min(2, len(clouds))
    rows = -(-len(clouds) // columns)
    figure = Figure(figsize=(4.2 * columns, 0.5 + 3.4 * rows), dpi=120, layout="constrained")
    titles = readable([cloud.title for cloud in clouds])
    font = find_font([title, *titles, *(name for cloud in clouds for name in cloud.senses)]) or find_font([title])
    figure.suptitle(title, fontproperties=font, fontsize=11)
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes, name, cloud in zip(panels, titles, clouds, strict=False):
        axes.set_title(name, fontproperties=font, fontsize=11)
        _draw_cloud(axes, cloud, font)
    for axes in panels[len(clouds) :]:
        axes.set_visible(False)
    _finish(figure, path)


def _draw_cloud(axes: Axes, cloud: Cloud, font: FontProperties | None) -> None:
    senses = list(dict.fromkeys(cloud.senses))
    for number, (sense, name) in enumerate(zip(senses, readable(senses), strict=True)):
        chosen = [index for index, other in enumerate(cloud.senses) if other == sense]
        marker, color = MARKERS[number % len(MARKERS)], COLORS[number % len(COLORS)]
        axes.scatter(*cloud.points_N2[chosen].T, label=name, alpha=0.8, marker=marker, color=color)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.15)
    axes.legend(prop=font, fontsize=9)


def _finish(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Software": None})
