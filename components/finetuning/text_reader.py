"""Reading a text, or a pair of texts, for classification.

Legend of shape suffixes: B texts, L tokens, H hidden size, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from components.examples import Example
from components.finetuning.classification import encode_labels
from components.finetuning.encoders import LoadedEncoder
from components.finetuning.model import POOLS, Pool, TaskModel, make_linear_head
from components.finetuning.readers import Reader, ReaderInputs, RowOutput
from components.finetuning.rows import Batch, Row, Rows, as_array, mask_of


class TextModel(TaskModel):
    """Encoder, pooling, one linear layer.

    A pair is read in one row where the encoder can do that; else each text for itself, and the layer reads
    [u; v; |u - v|; u · v] (Conneau et al. 2017, section 3.1).
    """

    def __init__(self, loaded: LoadedEncoder, pool: Pool, head: nn.Module, label_smoothing: float) -> None:
        super().__init__()
        self.encoder = loaded.module
        self.head = head
        self._states = loaded.states
        self._pool = pool
        self._label_smoothing = label_smoothing

    def forward(self, batch: Batch) -> Tensor:
        """Logits, shape [B, C]; padding and the other texts of the batch have no part in a text's row."""
        vectors_BH = self._vectors(batch, "input_ids")
        if "pair_ids" in batch:
            vectors_BH = compare(vectors_BH, self._vectors(batch, "pair_ids"))
        logits: Tensor = self.head(vectors_BH)
        return logits

    def _vectors(self, batch: Batch, name: str) -> Tensor:
        types = batch.get("token_type_ids")
        return self._pool(
            self._states(self.encoder, batch[name], batch[f"{name}_lengths"], types), mask_of(batch, name)
        )

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Mean cross-entropy in nats."""
        return label_loss(outputs, batch["label"][:, 0], self._label_smoothing)


def compare(u_BH: Tensor, v_BH: Tensor) -> Tensor:
    """[u; v; |u - v|; u · v], shape [B, 4 · H]."""
    return torch.cat([u_BH, v_BH, (u_BH - v_BH).abs(), u_BH * v_BH], dim=-1)


def label_loss(logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    """Mean cross-entropy in nats.

    Args:
        logits: Shape [B, num_labels], float.
        targets: Shape [B], int64 class indices.
        label_smoothing: Share of the target probability spread over all labels.
    """
    return nn.functional.cross_entropy(logits.float(), targets, label_smoothing=label_smoothing)


def make_text_reader(inputs: ReaderInputs) -> Reader:
    """The reader of texts or pairs; facts: ``labels``, ``pairs``, ``pooling``, ``max_seq_length``."""
    loaded, facts = inputs.loaded, inputs.facts
    apart = facts["pairs"] and not loaded.joint
    head = make_linear_head(loaded.hidden_size * (4 if apart else 1), len(facts["labels"]), inputs.dropout)
    model = TextModel(loaded, POOLS[facts["pooling"]], head, inputs.label_smoothing)

    def rows(examples: Sequence[Example]) -> Rows:
        return encode_examples(loaded, examples, facts["max_seq_length"])

    def training_rows(examples: Sequence[Example]) -> Rows:
        made = rows(examples)
        labels = encode_labels(examples, facts["labels"])
        for row in made.rows:
            row.arrays["label"] = labels[row.example : row.example + 1]
        return made

    return Reader(
        model, {"input_ids": loaded.pad_id, "pair_ids": loaded.pad_id}, training_rows, rows, _whole, stack_logits
    )


def _whole(output: RowOutput, row: Row) -> RowOutput:
    return output


def stack_logits(rows: Rows, outputs: Sequence[RowOutput]) -> NDArray[np.float64]:
    """One row of logits per example, shape [N, C]."""
    return np.stack(outputs).astype(np.float64) if outputs else np.empty((0, 0))


def encode_examples(loaded: LoadedEncoder, examples: Sequence[Example], max_seq_length: int) -> Rows:
    """One row per example, cut to ``max_seq_length``; ``num_truncated`` counts the examples that lost tokens."""
    firsts = [ids or list(loaded.empty) for ids in loaded.encode([example.text for example in examples])]
    pairs = [example.text_pair for example in examples]
    if not examples or pairs[0] is None:
        room = max_seq_length - len(loaded.prefix) - len(loaded.suffix)
        rows = [
            Row(number, {"input_ids": as_array([*loaded.prefix, *ids[:room], *loaded.suffix])})
            for number, ids in enumerate(firsts)
        ]
        return Rows(rows, counts={"num_truncated": float(sum(len(ids) > room for ids in firsts))})
    seconds = [ids or list(loaded.empty) for ids in loaded.encode([pair or "" for pair in pairs])]
    join = _joint_row if loaded.joint else _separate_row
    made = [join(loaded, *texts, max_seq_length) for texts in zip(firsts, seconds, strict=True)]
    rows = [Row(number, arrays) for number, (arrays, _) in enumerate(made)]
    return Rows(rows, counts={"num_truncated": float(sum(cut for _, cut in made))})


def _joint_row(
    loaded: LoadedEncoder, first: list[int], second: list[int], max_seq_length: int
) -> tuple[dict[str, NDArray[np.int64]], bool]:
    """[CLS] first [SEP] second [SEP], with token type 1 from the second text on (Devlin et al. 2019, section 3)."""
    room = max_seq_length - len(loaded.prefix) - 2 * len(loaded.suffix)
    keep_first, keep_second = cut_longest_first(len(first), len(second), room)
    head = [*loaded.prefix, *first[:keep_first], *loaded.suffix]
    tail = [*second[:keep_second], *loaded.suffix]
    types = [0] * len(head) + [1] * len(tail)
    arrays = {"input_ids": as_array(head + tail), "token_type_ids": as_array(types)}
    return arrays, keep_first + keep_second < len(first) + len(second)


def _separate_row(
    loaded: LoadedEncoder, first: list[int], second: list[int], max_seq_length: int
) -> tuple[dict[str, NDArray[np.int64]], bool]:
    arrays = {"input_ids": as_array(first[:max_seq_length]), "pair_ids": as_array(second[:max_seq_length])}
    return arrays, max(len(first), len(second)) > max_seq_length


def cut_longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two lengths to keep when tokens are taken one by one from the longer, the second on a tie."""
    half = room // 2
    if first + second <= room:
        return first, second
    if first <= half:
        return first, room - first
    if second <= half:
        return room - second, second
    return room - half, half
