"""Reading a question and a passage: the joint reader of BERT and the attentive reader of the rungs below.

Legend of shape suffixes: B windows, L ids of the longest row, N pieces of the longest window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from components.examples import Question
from components.finetuning.attention import AttentiveHead
from components.finetuning.encoders import LoadedEncoder
from components.finetuning.model import TaskModel, gather_positions, make_linear_head
from components.finetuning.passages import Passage, assemble_spans, make_targets, read_passages
from components.finetuning.readers import Reader, ReaderInputs
from components.finetuning.rows import Batch, Row, Rows, as_array, mask_of

Arrays = dict[str, NDArray[np.int64]]


class SpanModel(TaskModel):
    """What both readers learn: the columns of start and end, the first column for "no answer here"."""

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Mean of both pointers' cross-entropies in nats (Devlin et al. 2019, section 4.2).

        Args:
            outputs: Shape [B, 1 + N, 2].
            batch: With ``columns``, shape [B, 2], and the lengths of the windows.
        """
        lengths_B = batch["passage_lengths"]
        beyond = torch.arange(outputs.shape[1], device=outputs.device) > lengths_B[:, None]
        scores = outputs.float().masked_fill(beyond[..., None], float("-inf"))
        return nn.functional.cross_entropy(scores, batch["columns"])


class JointModel(SpanModel):
    """[CLS] question [SEP] window [SEP] in one row, and one linear layer with two outputs over its tokens."""

    def __init__(self, loaded: LoadedEncoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = loaded.module
        self.head = head
        self._states = loaded.states

    def forward(self, batch: Batch) -> Tensor:
        """Scores of [CLS] and every piece of the window, shape [B, 1 + N, 2]."""
        hidden_BLH = self._states(
            self.encoder, batch["input_ids"], batch["input_ids_lengths"], batch["token_type_ids"]
        ).hidden_BLH
        positions = nn.functional.pad(batch["passage"], (1, 0))
        scores: Tensor = self.head(gather_positions(hidden_BLH, positions))
        return scores


class AttentiveModel(SpanModel):
    """Question and window read apart and related by attention."""

    def __init__(self, loaded: LoadedEncoder, head: AttentiveHead) -> None:
        super().__init__()
        self.encoder = loaded.module
        self.head = head
        self._states = loaded.states

    def forward(self, batch: Batch) -> Tensor:
        """Scores of "no answer" and every piece of the window, shape [B, 1 + N, 2]."""
        question, passage = (
            self._states(self.encoder, batch[name], batch[f"{name}_lengths"], None).hidden_BLH
            for name in ("question", "passage")
        )
        scores: Tensor = self.head(
            question,
            passage,
            batch["question"],
            batch["passage"],
            mask_of(batch, "question"),
            mask_of(batch, "passage"),
        )
        return scores


def make_joint_reader(inputs: ReaderInputs) -> Reader:
    """BERT's reader (Devlin et al. 2019, section 4.2)."""
    loaded = inputs.loaded
    model = JointModel(loaded, make_linear_head(loaded.hidden_size, 2, inputs.dropout))

    def arrays_of(passage: Passage, start: int, end: int) -> Arrays:
        head = [*loaded.prefix, *loaded.ids(passage.question).tolist(), *loaded.suffix]
        body = loaded.ids(passage.pieces.ids[start:end]).tolist()
        tail = [*body, *loaded.suffix]
        return {
            "input_ids": as_array(head + tail),
            "token_type_ids": as_array([0] * len(head) + [1] * len(tail)),
            "passage": np.arange(len(head), len(head) + len(body)),
        }

    return _make_reader(inputs, model, arrays_of, {"input_ids": loaded.pad_id})


def make_attentive_reader(inputs: ReaderInputs) -> Reader:
    """The reader of encoders that cannot read two texts in one row (Chen et al. 2017, section 3.2)."""
    loaded = inputs.loaded
    head = AttentiveHead(loaded.hidden_size, loaded.make_context, inputs.dropout)
    model = AttentiveModel(loaded, head)

    def arrays_of(passage: Passage, start: int, end: int) -> Arrays:
        question = passage.question
        return {
            "question": loaded.ids(question) if question else as_array(loaded.empty),
            "passage": loaded.ids(passage.pieces.ids[start:end]),
        }

    return _make_reader(inputs, model, arrays_of, {"question": loaded.pad_id, "passage": loaded.pad_id})


def _make_reader(
    inputs: ReaderInputs, model: SpanModel, arrays_of: Callable[[Passage, int, int], Arrays], pads: dict[str, int]
) -> Reader:
    facts = inputs.facts
    encoder = inputs.loaded.pieces(inputs.normalization)

    def passages_of(examples: Sequence[Question]) -> list[Passage]:
        limits = facts["max_seq_length"], facts["max_question_length"], facts["doc_stride"]
        return read_passages(encoder, examples, *limits)

    def rows(examples: Sequence[Question]) -> Rows:
        passages = passages_of(examples)
        made = [
            Row(number, arrays_of(passage, start, end), owned - start + 1, owned)
            for number, passage in enumerate(passages)
            for (start, end), owned in zip(passage.windows, passage.owned(), strict=True)
        ]
        num_windowed = sum(len(passage.windows) > 1 for passage in passages)
        return Rows(made, passages, {"num_windowed": float(num_windowed)})

    def training_rows(examples: Sequence[Question]) -> Rows:
        return _training_rows(examples, passages_of(examples), arrays_of, keep_all=facts["unanswerable"])

    return Reader(
        model, pads, training_rows, rows,
        cut=lambda output, row: output[: 1 + len(row.arrays["passage"])], assemble=assemble_spans,
    )  # fmt: skip


def _training_rows(
    examples: Sequence[Question],
    passages: Sequence[Passage],
    arrays_of: Callable[[Passage, int, int], Arrays],
    *,
    keep_all: bool,
) -> Rows:
    made: list[Row] = []
    unused: dict[str, list[str]] = {}
    num_left_out = 0
    for number, (example, passage) in enumerate(zip(examples, passages, strict=True)):
        targets = make_targets(example, passage, keep_all=keep_all)
        num_left_out += targets.num_left_out
        if targets.problem:
            unused.setdefault(targets.problem, []).append(example.id)
        for window, columns in sorted(targets.columns.items()):
            arrays = arrays_of(passage, *passage.windows[window])
            made.append(Row(number, arrays | {"columns": as_array(columns)}))
    num_with = sum(bool(row.arrays["columns"][0]) for row in made)
    counts = {
        "num_windows_with_answer": float(num_with),
        "num_windows_without_answer": float(len(made) - num_with),
        "num_windows_left_out": float(num_left_out),
        "num_windowed": float(sum(len(passage.windows) > 1 for passage in passages)),
    }
    for reason in ("answer_in_no_window", "answer_without_place", "passage_without_pieces"):
        counts[f"num_{reason}"] = float(len(unused.get(reason, [])))
    return Rows(made, list(passages), counts, unused)
