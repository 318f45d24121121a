"""Minimal pairs: does the model find the well-formed sentence likelier than its twin?

Scored by pseudo-log-likelihood (Salazar et al. 2020, section 2): each piece is hidden in turn and the log probabilities
of the true pieces are added up. The test is that of BLiMP (Warstadt et al. 2020).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from components.errors import InputError
from components.formats import numbered_rows
from components.text.sentences import Language

_KEYS = ("sentence_good", "sentence_bad", "phenomenon")


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in little."""

    good: str
    bad: str
    phenomenon: str


def read_minimal_pairs(path: Path | None, language: Language) -> list[MinimalPair]:
    """The pairs of a JSON-lines file, or those that ship for the language.

    Raises:
        InputError: No such file, or a line that cannot be used; names it.
    """
    if path is None:
        with as_file(files("components.probes") / "lists" / f"minimal_pairs_{language}.jsonl") as shipped:
            return list(_parse(shipped))
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a JSON-lines file of minimal pairs")
    pairs = list(_parse(path))
    if not pairs:
        raise InputError("no minimal pair", file=path, remedy=f"give one object a line with {', '.join(_KEYS)}")
    return pairs


def _parse(path: Path) -> Iterator[MinimalPair]:
    for line, row in numbered_rows(path):
        values = [row.get(key) if isinstance(row, dict) else None for key in _KEYS]
        texts = [value for value in values if isinstance(value, str) and value.strip()]
        if len(texts) < len(_KEYS):
            shown = json.dumps(row, ensure_ascii=False)[:80]
            raise InputError(f"{shown} lacks text", file=path, line=line, remedy=f"give strings {', '.join(_KEYS)}")
        yield MinimalPair(*texts)


def limit_pairs(pairs: Sequence[MinimalPair], most: int, seed: int) -> list[MinimalPair]:
    """At most so many pairs of each phenomenon, in their order."""
    rows: dict[str, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows.setdefault(pair.phenomenon, []).append(row)
    generator = random.Random(seed)
    chosen = [row for group in rows.values() for row in generator.sample(group, min(most, len(group)))]
    return [pairs[row] for row in sorted(chosen)]


def pseudo_log_likelihoods(
    model: Any, rows: Sequence[Sequence[int]], *, mask_id: int, pad_id: int, batch_size: int
) -> NDArray[np.float64]:
    """Sum over the pieces of each row of the log probability of the piece when it alone is hidden.

    Args:
        model: A ``BertForPreTraining`` in evaluation mode.
        rows: N rows of ids with [CLS] and [SEP], which are never hidden.
        mask_id: Id of [MASK].
        pad_id: Id of [PAD].
        batch_size: Hidden pieces at a time.

    Returns:
        Shape [N], natural logarithms.
    """
    # Rows of like length go together, so that padding is rare.
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    places = [(row, place) for row in order for place in range(1, len(rows[row]) - 1)]
    sums = np.zeros(len(rows))
    for start in range(0, len(places), batch_size):
        part = places[start : start + batch_size]
        scores = masked_scores(model, [(rows[row], place) for row, place in part], mask_id=mask_id, pad_id=pad_id)
        truth = torch.tensor([rows[row][place] for row, place in part])
        found = scores.gather(1, truth[:, None])[:, 0].double().numpy()
        np.add.at(sums, [row for row, _ in part], found)
    return sums


def masked_scores(
    model: Any, places: Sequence[tuple[Sequence[int], int]], *, mask_id: int, pad_id: int
) -> torch.Tensor:
    """Log probabilities of all pieces at one hidden place of each row, shape [len(places), vocab_size]."""
    longest = max(len(row) for row, _ in places)
    input_ids = torch.full((len(places), longest), pad_id)
    for number, (row, place) in enumerate(places):
        input_ids[number, : len(row)] = torch.tensor(row)
        input_ids[number, place] = mask_id
    lengths = torch.tensor([len(row) for row, _ in places])
    mask = (torch.arange(longest) < lengths[:, None]).long()
    with torch.inference_mode():
        hidden = model.bert(input_ids=input_ids, attention_mask=mask).last_hidden_state
        at = hidden[torch.arange(len(places)), [place for _, place in places]]
        return torch.log_softmax(model.cls.predictions(at).float(), dim=-1)
