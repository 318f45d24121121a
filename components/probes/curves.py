"""Pictures of the probes of structure: curves with bands, bars with intervals, heat maps, attention grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from components.fonts import find_font
from components.probes.intervals import Share
from components.text.sentences import Language

DPI = 120
_UPRIGHT_CHARS = 3
STYLES = ("o-", "s--", "^-.", "D:")
"""Curves differ in marker and dash too, for readers who see no colours."""


@dataclass(frozen=True)
class Curve:
    """A line; ``low`` and ``high`` are its band, or nothing."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def picture_language(language: Language, text: str = "准确率距离步注意力门") -> Language:
    """The language that a picture can be written in: English where no font has Chinese characters."""
    return language if language == "en" or find_font([text]) else "en"


def _letter(axes: Axes, *, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontproperties=find_font([title]), fontsize=10)
    axes.set_xlabel(x, fontproperties=find_font([x]))
    axes.set_ylabel(y, fontproperties=find_font([y]))


def draw_curves(
    curves: Mapping[str, Curve],
    path: Path,
    *,
    title: str,
    x: str,
    y: str,
    level: tuple[str, float] | None = None,
    logarithmic: bool = False,
) -> None:
    """Draw curves over a logarithmic distance.

    Args:
        curves: By name.
        path: PNG file to write.
        title: Above the picture.
        x: Label of the distances.
        y: Label of the values.
        level: Name and height of a horizontal line, such as chance.
        logarithmic: Whether the values' axis is logarithmic; else it spans 0 to 1.
    """
    figure = Figure(figsize=(6.4, 4.0), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    for style, (name, curve) in zip(STYLES * len(curves), curves.items(), strict=False):
        (line,) = axes.plot(curve.x, curve.y, style, markersize=4, label=name, markevery=max(1, len(curve.x) // 10))
        if len(curve.low):
            axes.fill_between(curve.x, curve.low, curve.high, alpha=0.15, color=line.get_color(), linewidth=0)
    if level is not None:
        axes.axhline(level[1], color="grey", linewidth=1, linestyle=(0, (2, 2)), label=level[0])
    axes.set_xscale("log")
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(-0.02, 1.04)
        ticks = [int(value) for value in next(iter(curves.values())).x]
        axes.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(prop=find_font([*curves, level[0] if level else ""]), fontsize=8)
    _letter(axes, title=title, x=x, y=y)
    figure.savefig(path, metadata={"Software": None})


def draw_bars(shares: Mapping[str, Share], path: Path, *, title: str, y: str, levels: Mapping[str, float]) -> None:
    """Draw accuracies as bars with intervals; ``levels`` gives each bar's own baseline, drawn as a short line."""
    figure = Figure(figsize=(max(4.0, 1.1 + 1.15 * len(shares)), 3.8), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    for place, (name, share) in enumerate(shares.items()):
        error = [[share.value - share.low], [share.high - share.value]]
        axes.bar(place, share.value, 0.62, yerr=error, capsize=4, color="#4477aa")
        if name in levels:
            axes.hlines(levels[name], place - 0.42, place + 0.42, color="#cc3311", linestyle="--")
    axes.set_ylim(0, 1.04)
    axes.set_xlim(-0.6, max(len(shares), 2) - 0.4)
    turned = len(shares) > 4
    axes.set_xticks(range(len(shares)), list(shares), fontproperties=find_font(list(shares)),
                    rotation=30 if turned else 0, ha="right" if turned else "center")  # fmt: skip
    axes.grid(axis="y", alpha=0.25)
    _letter(axes, title=title, x="", y=y)
    figure.savefig(path, metadata={"Software": None})


def draw_gates(
    gates: Mapping[str, NDArray[np.float64]], tokens: Sequence[str], path: Path, *, title: str, bar: str
) -> None:
    """Draw gate activations over time, one heat map a gate: a column a token, a row a unit, from 0 to 1.

    Units keep one order in all maps, sorted by the first map's mean, so that rows can be compared.

    Args:
        gates: Arrays of shape [L, H] in [0, 1] by name.
        tokens: L tokens.
        path: PNG file to write.
        title: Above the picture.
        bar: Beside the scale of colours.
    """
    order = np.argsort(-next(iter(gates.values())).mean(axis=0), kind="stable")
    figure = Figure(figsize=(max(5.0, 1.4 + 0.42 * len(tokens)), 1.0 + 1.7 * len(gates)), dpi=DPI, layout="constrained")
    panels = figure.subplots(len(gates), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, gate) in zip(panels, gates.items(), strict=True):
        image = axes.imshow(gate[:, order].T, aspect="auto", cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        axes.set_ylabel(name, fontproperties=find_font([name]))
        axes.set_yticks([])
    figure.colorbar(image, ax=list(panels), shrink=0.6).set_label(bar, fontproperties=find_font([bar]))
    label_tokens(panels[-1], tokens)
    figure.suptitle(title, fontproperties=find_font([title]), fontsize=10)
    figure.savefig(path, metadata={"Software": None})


def draw_attention(
    attention: NDArray[np.float64],
    tokens: Sequence[str],
    path: Path,
    *,
    title: str,
    panel: str,
    row: str,
    bar: str,
    marked: Sequence[int] = (),
) -> None:
    """Draw where the heads look from one word: a panel a layer, a row a head, a column a token.

    Args:
        attention: Shape [layers, heads, L], rows sum to one.
        tokens: L tokens.
        path: PNG file to write.
        title: Above the picture.
        panel: Word before a layer's number.
        row: Word before a head's number.
        bar: Beside the scale of colours.
        marked: Columns of the word, whose tokens are written in red.
    """
    num_layers, num_heads, length = attention.shape
    height = 1.2 + num_layers * (0.3 + 0.19 * num_heads)
    brightest = float(attention.max())
    figure = Figure(figsize=(max(5.0, 1.6 + 0.42 * length), height), dpi=DPI, layout="constrained")
    panels = figure.subplots(num_layers, 1, sharex=True, squeeze=False)[:, 0]
    for number, axes in enumerate(panels):
        image = axes.imshow(
            attention[number], aspect="auto", cmap="Blues", vmin=0, vmax=brightest, interpolation="nearest"
        )
        axes.set_ylabel(f"{panel} {number + 1}", fontproperties=find_font([panel]))
        axes.set_yticks(range(num_heads), [f"{row} {head + 1}" for head in range(num_heads)], fontsize=7,
                        fontproperties=find_font([row]))  # fmt: skip
    figure.colorbar(image, ax=list(panels), shrink=0.6).set_label(bar, fontproperties=find_font([bar]))
    label_tokens(panels[-1], tokens, marked)
    figure.suptitle(title, fontproperties=find_font([title]), fontsize=10)
    figure.savefig(path, metadata={"Software": None})


def label_tokens(axes: Axes, tokens: Sequence[str], marked: Sequence[int] = ()) -> None:
    """Write tokens below the columns, or their numbers where no font has their characters; some in red."""
    font = find_font(tokens)
    names = list(tokens) if font else [str(number) for number in range(1, len(tokens) + 1)]
    axes.set_xticks(range(len(names)), names, fontproperties=font)
    # Chinese words stand upright side by side; only a long one among them, such as [CLS], is turned.
    mostly_short = 2 * sum(len(name) <= _UPRIGHT_CHARS for name in names) > len(names)
    for place, label in enumerate(axes.get_xticklabels()):
        if not (mostly_short and len(names[place]) <= _UPRIGHT_CHARS):
            label.set(rotation=60, ha="right", rotation_mode="anchor")
        if place in marked:
            label.set_color("#cc3311")
