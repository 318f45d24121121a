"""Pairs of rungs that differ in one ingredient only, so that their difference is what it adds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from pydantic import ConfigDict, Field

from components.contract import StageConfig
from components.errors import ConfigError
from flows.encoders import EncoderSettings
from flows.rungs import Rung

_INGREDIENTS = {
    "pretrained": "pretraining",
    "nsp": "next-sentence prediction",
    "embeddings": "Word2Vec vectors",
    "objective": "language-model pretraining",
    "crf": "conditional random field",
    "bidirectional": "second direction",
}
"""Fields of a rung that add something where they are set."""


class ControlPair(StageConfig):
    """Two rungs that differ in one ingredient only."""

    model_config = ConfigDict(populate_by_name=True)

    ingredient: str = Field(min_length=1)
    """What the second rung has and the first lacks."""
    without: str
    """Rung that lacks it."""
    with_: str = Field(alias="with")
    """Rung that has it."""


def chosen_controls(
    given: Sequence[ControlPair] | None, rungs: list[Rung], encoders: EncoderSettings
) -> Sequence[ControlPair]:  # fmt: skip
    """The pairs that were asked for, or all pairs of rungs that differ in exactly one ingredient.

    Raises:
        ConfigError: A pair names a rung that is not in the ladder, or the same rung twice.
    """
    if given is None:
        return [pair for without, with_ in permutations(rungs, 2) if (pair := _pair(without, with_, encoders))]
    names = [rung.name for rung in rungs]
    for pair in given:
        if unknown := sorted({pair.without, pair.with_} - set(names)):
            raise ConfigError(
                f"comparison.controls: {pair.ingredient} names {unknown}, which are no rungs here; there are {names}"
            )
        if pair.without == pair.with_:
            raise ConfigError(
                f"comparison.controls: {pair.ingredient} compares {pair.with_} with itself; name two rungs"
            )
    return given


def _pair(without: Rung, with_: Rung, encoders: EncoderSettings) -> ControlPair | None:
    less, more = _settled(without, encoders), _settled(with_, encoders)
    differing = [name for name in less if less[name] != more[name]]
    if len(differing) != 1 or differing[0] not in _INGREDIENTS or less[differing[0]] or not more[differing[0]]:
        return None
    ingredient = _INGREDIENTS[differing[0]]
    if differing[0] == "pretrained" and encoders.warm_start:
        ingredient = "warm start and pretraining"
    return ControlPair(ingredient=ingredient, without=without.name, with_=with_.name)


def _settled(rung: Rung, encoders: EncoderSettings) -> dict[str, Any]:
    """The rung's fields, with the section's value where the rung is silent; what adds nothing is False."""
    fields = rung.model_dump(exclude={"name"})
    sections = {"nsp": encoders.pretraining, "objective": encoders.recurrent, "bidirectional": encoders.recurrent}
    fields |= {name: getattr(section, name) for name, section in sections.items() if fields[name] is None}
    ingredients = {name: False if fields[name] in (None, "none") else fields[name] for name in _INGREDIENTS}
    return fields | ingredients
