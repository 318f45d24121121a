"""The confusion matrix as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from components.fonts import find_font

MAX_ANNOTATED = 20
"""Most labels whose cells are written out; beyond, the colour must do."""
MAX_NAME_CHARS = 24


def draw_confusion_matrix(matrix: NDArray[np.int64], labels: Sequence[str], title: str, path: Path) -> bool:
    """Draw counts, coloured by the share of each gold label's items.

    Labels are written in the first installed font that has all their characters. Where there is none, as for Chinese
    on a machine without a CJK font, they are numbered in the order of ``labels`` in ``scores.json``.

    Args:
        matrix: Shape [C, C], rows gold, columns predicted.
        labels: C names.
        title: Text above the picture.
        path: PNG file to write.

    Returns:
        Whether the labels are written out (false: numbered).
    """
    font = find_font(map(shorten, labels))
    names = [shorten(label) for label in labels] if font else [str(index) for index in range(len(labels))]
    size = float(np.clip(2.2 + 0.55 * len(labels), 4.0, 14.0))
    figure = Figure(figsize=(size, size), dpi=120, layout="constrained")
    axes = figure.subplots()
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), names, rotation=45 if len(labels) > 2 else 0, fontproperties=font)
    axes.set_yticks(range(len(labels)), names, fontproperties=font)
    note = "" if font else " (numbered as in scores.json)"
    axes.set_xlabel(f"predicted{note}")
    axes.set_ylabel(f"gold{note}")
    axes.set_title(title, fontsize=10)
    axes.tick_params(length=0)
    if len(labels) <= MAX_ANNOTATED:
        _annotate(axes, matrix, share)
    figure.savefig(path, metadata={"Software": None})
    return font is not None


def shorten(label: str) -> str:
    """A label that fits beside an axis."""
    return label if len(label) <= MAX_NAME_CHARS else label[: MAX_NAME_CHARS - 1] + "…"


def _annotate(axes: Axes, matrix: NDArray[np.int64], share: NDArray[np.float64]) -> None:
    for (row, column), count in np.ndenumerate(matrix):
        color = "white" if share[row, column] > 0.5 else "black"
        axes.text(
            column, row, f"{count:,}\n{share[row, column]:.0%}", ha="center", va="center", color=color, fontsize=9
        )
