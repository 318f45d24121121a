"""Who bit whom: sentences that differ in the order of their words alone.

Every pair of words fills every template both ways; the label says which of the two groups acts. Both sentences of a
pair have the same pieces, so whatever ignores order gives them one answer and is right once in two: chance.

Legend of shape suffixes: B batch, L length, H width.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from components.errors import InputError
from components.text.sentences import Language

EQUIVARIANCE_TOLERANCE = 1e-5
"""Outputs nearer than this are called equal; the difference itself is reported beside the word."""
DROPPED = ("other_units", "unknown_word", "too_long")
"""Why a pair is left out: its sentences are cut differently, the encoder lacks a word, or positions."""


@dataclass(frozen=True)
class OrderPair:
    """A sentence and its reversal of roles."""

    first: str
    second: str
    straight: str
    """The word of the first group acts: label 0."""
    reversed: str
    """The word of the second group acts: label 1."""


def read_order_list(path: Path | None, language: Language) -> list[OrderPair]:
    """All pairs of a word list, or of the one that ships for the language.

    Raises:
        InputError: The file is no object of three lists of strings, or a template lacks {a} or {b}.
    """
    shipped = files("components.probes") / "lists" / f"order_{language}.json"
    name = str(shipped) if path is None else str(path)
    remedy = 'give {"first": [...], "second": [...], "templates": ["{a} saw {b}."]}'
    try:
        text = shipped.read_text(encoding="utf-8") if path is None else path.read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, ValueError) as error:
        raise InputError(f"no readable JSON: {error}", file=name, remedy=remedy) from error
    lists = []
    for key in ("first", "second", "templates"):
        items = value.get(key) if isinstance(value, dict) else None
        if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
            raise InputError(f"{key} is {str(items)[:60]}, not a list of strings", file=name, remedy=remedy)
        lists.append(items)
    first, second, templates = lists
    for template in templates:
        if template.count("{a}") != 1 or template.count("{b}") != 1:
            raise InputError(f"template {template!r} needs {{a}} and {{b}} once each", file=name, remedy=remedy)
    return [OrderPair(a, b, _fill(t, a, b), _fill(t, b, a)) for t in templates for a in first for b in second]


def _fill(template: str, a: str, b: str) -> str:
    return "".join({"{a}": a, "{b}": b}.get(part, part) for part in _parts(template))


def _parts(template: str) -> list[str]:
    return template.replace("{a}", "\0{a}\0").replace("{b}", "\0{b}\0").split("\0")


def usable_pairs(
    pairs: Sequence[OrderPair],
    units: Callable[[str], list[str]],
    is_unknown: Callable[[OrderPair], bool],
    *,
    max_length: int | None = None,
) -> tuple[list[OrderPair], dict[str, int]]:
    """Pairs whose two sentences have the same units and whose words are known; the rest is counted by reason.

    Args:
        pairs: All pairs.
        units: Splits a sentence into what the encoder reads.
        is_unknown: Whether the encoder lacks a word of the pair.
        max_length: Most units that the encoder can read; None for no limit.
    """
    kept, dropped = [], dict.fromkeys(DROPPED, 0)
    for pair in pairs:
        straight = units(pair.straight)
        if is_unknown(pair):
            dropped["unknown_word"] += 1
        elif max_length is not None and len(straight) > max_length:
            dropped["too_long"] += 1
        elif sorted(straight) != sorted(units(pair.reversed)):
            dropped["other_units"] += 1
        else:
            kept.append(pair)
    return kept, dropped


def meetings(pairs: Sequence[OrderPair]) -> list[tuple[str, str]]:
    """The different pairs of words, sorted."""
    return sorted({(pair.first, pair.second) for pair in pairs})


def split_pairs(pairs: Sequence[OrderPair], test_share: float, seed: int) -> tuple[list[OrderPair], list[OrderPair]]:
    """Training and test pairs: two words that are tested together never meet in training.

    Args:
        pairs: Pairs with at least two different meetings.
        test_share: Share of the meetings that is tested, in (0, 1); at least one is tested and one is not.
        seed: Chooses them.
    """
    met = meetings(pairs)
    random.Random(seed).shuffle(met)
    tested = set(met[: min(len(met) - 1, max(1, round(test_share * len(met))))])
    train = [pair for pair in pairs if (pair.first, pair.second) not in tested]
    return train, [pair for pair in pairs if (pair.first, pair.second) in tested]


def labelled(pairs: Sequence[OrderPair]) -> tuple[list[str], list[int]]:
    """Sentences and labels; the two sentences of a pair lie side by side."""
    return [text for pair in pairs for text in (pair.straight, pair.reversed)], [0, 1] * len(pairs)


def without_positions(model: Any) -> Any:
    """A copy of a BERT whose position embeddings are zero and stay so."""
    blind = copy.deepcopy(model)
    blind.embeddings.position_embeddings.weight.data.zero_()
    blind.embeddings.position_embeddings.weight.requires_grad_(False)
    return blind


def permutation_difference(model: Any, input_ids_BL: Tensor, seed: int) -> float:
    """Largest difference between the outputs of permuted inputs and the permuted outputs.

    A Transformer without positions is equivariant under permutations (Vaswani et al. 2017, section 3.5, give this as
    the reason for positions). Measured in float64, so that rounding does not hide the property of the architecture.

    Args:
        model: A ``BertModel``.
        input_ids_BL: Rows without padding.
        seed: Seed of the permutation.
    """
    exact = copy.deepcopy(model).double().eval()
    order_L = torch.randperm(input_ids_BL.shape[1], generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        plain_BLH = exact(input_ids=input_ids_BL).last_hidden_state
        permuted_BLH = exact(input_ids=input_ids_BL[:, order_L]).last_hidden_state
    return float((plain_BLH[:, order_L] - permuted_BLH).abs().max())
