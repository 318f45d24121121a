"""Scores of entities and answers as pictures: where a model is right, and how it is wrong elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from components.evaluation.picture import shorten
from components.evaluation.reference import Reference
from components.fonts import find_font

MAX_BARS = 30
"""Most types that are drawn, the most frequent ones; ``scores.json`` has them all."""


def draw_entities(details: dict[str, Any], reference: Reference, title: str, path: Path) -> bool:
    """F1 of every type beside how often each kind of error occurs.

    Args:
        details: ``per_type`` and ``errors`` of ``describe_entities``.
        reference: Its labels are the names that numbers stand for where no font has their characters.
        title: Text above the picture.
        path: PNG file to write.

    Returns:
        Whether the types are written out (false: numbered in the order of ``labels`` in ``scores.json``).
    """
    rows = sorted(details["per_type"], key=lambda row: -row["support"])[:MAX_BARS]
    numbers = [str(reference.labels.index(row["type"])) for row in rows]
    left, right, figure = _two_axes(title, len(rows))
    named = _bars(
        left,
        [row["type"] for row in rows],
        numbers,
        [row["f1"] for row in rows],
        [f"{row['f1']:.3f} of {row['support']:,}" for row in rows],
    )
    _share_axis(left, "entity F1 by type (IOB2, strict), of gold entities", named)
    kinds = {kind.replace("_", " "): entry["count"] for kind, entry in details["errors"].items()}
    _bars(right, list(kinds), list(kinds), list(kinds.values()), [f"{count:,}" for count in kinds.values()])
    right.set_xlabel("gold and predicted entities by kind")
    right.set_xlim(0, max(1, *kinds.values()) * 1.25)
    figure.savefig(path, metadata={"Software": None})
    return named


def draw_answers(details: dict[str, Any], reference: Reference, title: str, path: Path) -> bool:
    """F1 by the length of the answer beside F1 by the word that the question asks with.

    Args:
        details: ``by_answer_length`` and ``by_question_word`` of ``describe_answers``.
        reference: Unused; question words are numbered in the order of ``scores.json`` where no font has them.
        title: Text above the picture.
        path: PNG file to write.

    Returns:
        Whether the question words are written out (false: numbered).
    """
    lengths, words = details["by_answer_length"], details["by_question_word"]
    left, right, figure = _two_axes(title, max(len(lengths), len(words)))
    _share_axis(left, "F1 by tokens of the shortest gold answer, of questions", _group_bars(left, lengths))
    named = _group_bars(right, words)
    _share_axis(right, "F1 by question word, of questions", named)
    figure.savefig(path, metadata={"Software": None})
    return named


def _two_axes(title: str, num_bars: int) -> tuple[Axes, Axes, Figure]:
    height = float(np.clip(1.6 + 0.34 * num_bars, 3.4, 12.0))
    figure = Figure(figsize=(10.5, height), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(title, fontsize=10)
    return left, right, figure


def _group_bars(axes: Axes, rows: list[dict[str, Any]]) -> bool:
    return _bars(
        axes,
        [row["name"] for row in rows],
        [str(number) for number in range(len(rows))],
        [row["f1"] for row in rows],
        [f"{row['f1']:.3f} of {row['num_questions']:,}" for row in rows],
    )


def _bars(
    axes: Axes, names: Sequence[str], numbers: Sequence[str], values: Sequence[float], notes: Sequence[str]
) -> bool:
    """Horizontal bars, the first on top; numbers instead of names where no installed font has their characters."""
    font: FontProperties | None = find_font(map(shorten, names))
    positions = range(len(names))
    axes.barh(positions, values, color="#4c78a8")
    axes.set_yticks(positions, [shorten(name) for name in names] if font else list(numbers), fontproperties=font)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[["top", "right"]].set_visible(False)
    for position, (value, note) in enumerate(zip(values, notes, strict=True)):
        axes.annotate(note, (value, position), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    return font is not None


def _share_axis(axes: Axes, label: str, named: bool) -> None:
    axes.set_xlim(0, 1.3)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlabel(label if named else f"{label} (numbered as in scores.json)")
