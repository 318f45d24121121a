"""Rows through a model without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from components.finetuning.readers import Reader, RowOutput
from components.finetuning.rows import Rows, collate, sort_key


@torch.inference_mode()
def row_outputs(reader: Reader, rows: Rows, batch_size: int) -> list[RowOutput]:
    """The output of every row in float32 arithmetic, without dropout.

    Rows go through the model sorted by length and content, so that little is padding and the order they come in
    changes not one bit. Which rows come along can change the last bits of a float32 (a matrix product of another
    shape adds up in another order), which is why bfloat16, with 16 fewer bits, is not used here.

    Args:
        reader: Its model is on its device; the training mode is restored.
        rows: N rows.
        batch_size: Rows per forward pass.

    Returns:
        N arrays without padding.
    """
    model = reader.model
    device = next(model.head.parameters()).device
    order = sorted(range(len(rows.rows)), key=lambda number: sort_key(rows.rows[number]))
    outputs: dict[int, RowOutput] = {}
    was_training = model.training
    model.eval()
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = collate([rows.rows[number] for number in numbers], reader.pads, device)
        for number, output in zip(numbers, model(batch).float().cpu().numpy(), strict=True):
            # A copy: the slice would keep the whole padded batch in memory.
            outputs[number] = reader.cut(output, rows.rows[number]).copy()
    model.train(was_training)
    return [outputs[number] for number in range(len(order))]


def score_examples(reader: Reader, examples: Sequence[Any], batch_size: int) -> Any:
    """The task's outputs of some examples."""
    rows = reader.rows(examples)
    return reader.assemble(rows, row_outputs(reader, rows, batch_size))
