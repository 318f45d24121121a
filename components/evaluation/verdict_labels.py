"""Names in the pictures of a verdict: short enough, and not written over each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

MAX_NAME_WIDTH = 18
"""Widest name in a picture, in Latin letters: two of them leave room for a difference beside them."""
HEAD, TAIL = 9, 8
"""Letters kept of a longer name; names of one family often differ at the end only."""
STEPS_POINTS = sorted(range(-48, 49, 6), key=abs)
"""How far a name may be moved up or down."""
OVER_NAME, OVER_BAR, OUTSIDE, FAR = 20.0, 1.5, 20.0, 8.0
"""How bad a place is: for each square pixel that covers a name or a point, covers a bar, or leaves the axes, and for
each point of distance."""
Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
"""The side of a name that is at its point; the first is preferred."""
CLEAR_PIXELS = 4
"""Kept clear around other points: a name beside one would be read as its name."""


def text_width(text: str) -> int:
    """Width in Latin letters; a Chinese character takes two."""
    return sum(2 if ord(character) >= 0x2E80 else 1 for character in text)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """What a picture calls each name: long ones lose their middle, unless two would then be called the same."""
    whole = list(names)
    short = {name: name if text_width(name) <= MAX_NAME_WIDTH else f"{name[:HEAD]}…{name[-TAIL:]}" for name in whole}
    return short if len({*short.values()}) == len(short) else {name: name for name in whole}


def num_columns(names: Sequence[str], inches: float) -> int:
    """Columns of a legend with these names that fit into a width."""
    column = 0.5 + 0.07 * max(map(text_width, names))
    return max(1, min(len(names), int(inches / column)))


def spread_labels(figure: Figure) -> Figure:
    """Put the name of every point where it covers no other name and as little as possible else.

    Names are placed from top to bottom, each right or left of its point and a little above or below: the place that
    covers least. Where points lie far apart, a name stays right of its point.
    """
    axes = figure.axes[0]
    labels = [text for text in axes.texts if isinstance(text, Annotation)]
    if not labels:
        return figure
    for label in labels:
        # Else a name that is moved changes the size of the axes, and with it all distances.
        label.set_in_layout(False)
    renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw(renderer)
    drawn = [(np.asarray(line.get_xydata()).tolist(), line.get_window_extent(renderer)) for line in axes.lines]
    bars = [box for ends, box in drawn if len(ends) > 1]
    around = {tuple(ends[0]): box.padded(CLEAR_PIXELS) for ends, box in drawn if len(ends) == 1}
    placed: list[Bbox] = []
    for label in sorted(labels, key=lambda label: -label.get_window_extent(renderer).y0):
        across, up = label.xyann
        taken = [*placed, *(box for point, box in around.items() if point != label.xy)]
        costs: dict[tuple[Side, float], float] = {}
        beside = {side: _move(label, side, abs(across), up).get_window_extent(renderer) for side in SIDES}
        for step, side in product(STEPS_POINTS, SIDES):
            box, height = beside[side].translated(0, step * figure.dpi / 72), up + step
            covered = OVER_NAME * _covered(box, taken) + OVER_BAR * _covered(box, bars)
            outside = OUTSIDE * (box.width * box.height - _covered(box, [axes.bbox]))
            costs[side, height] = covered + outside + FAR * abs(step)
        side, height = min(costs, key=lambda place: costs[place])
        placed.append(_move(label, side, abs(across), height).get_window_extent(renderer))
    return figure


def _move(label: Annotation, side: Side, across: float, up: float) -> Annotation:
    """The name with its left or right side beside its point."""
    label.set_horizontalalignment(side)
    label.xyann = (across if side == "left" else -across, up)
    return label


def _covered(box: Bbox, others: Iterable[Any]) -> float:
    """Square pixels of a box that others cover."""
    shared = (Bbox.intersection(box, other) for other in others)
    return math.fsum(one.width * one.height for one in shared if one is not None)
