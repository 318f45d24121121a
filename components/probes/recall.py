"""The recall task: one token among noise decides the answer, which is asked for k positions later.

A sequence is a few random fillers, the deciding token, k - 1 random fillers and a query, so that the deciding token
lies k positions before the query, where every model is read. This is the "latch" of Bengio et al. 1994 (section II)
with random noise around it, as in Hochreiter & Schmidhuber 1997 (section 5.2). The noise before it keeps a network from
merely preserving its first input. At the query a backward direction has read the query alone: a bidirectional network
remembers with its forward half, which is what a second direction costs at equal size.

Legend of shape suffixes: B batch, L length, E width of the input, H numbers per position, C values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from components.encoders.recurrent import Cell, RecurrentSettings, make_stacks, run_stacks
from components.probes.draws import generator_at

NUM_HEADS, NUM_LAYERS = 2, 2
"""Of the small BERT."""


@dataclass(frozen=True)
class RecallTask:
    """Token ids: 0 the query, then the values, then the fillers."""

    num_values: int
    num_fillers: int
    distances: tuple[int, ...]
    max_lead: int
    """Most fillers before the deciding token."""

    @property
    def vocab_size(self) -> int:
        """Different tokens."""
        return 1 + self.num_values + self.num_fillers

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return self.max_lead + self.distances[-1] + 1

    @property
    def chance(self) -> float:
        """Accuracy of a guess."""
        return 1 / self.num_values

    def draw(self, distance: int, batch_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random sequences whose deciding token lies ``distance`` positions before the query.

        Returns:
            input_ids_BL, all of one length, and the values_B in [0, num_values), both int64.
        """
        lead = int(torch.randint(self.max_lead + 1, (1,), generator=generator))
        values_B = torch.randint(self.num_values, (batch_size,), generator=generator)
        size = (batch_size, lead + distance + 1)
        input_ids_BL = 1 + self.num_values + torch.randint(self.num_fillers, size, generator=generator)
        input_ids_BL[:, lead] = 1 + values_B
        input_ids_BL[:, -1] = 0
        return input_ids_BL, values_B

    def training_batch(self, step: int, batch_size: int, seed: int) -> tuple[Tensor, Tensor]:
        """Sequences of one training step, from seed and step.

        A step has one distance k, drawn in proportion to k to the power of -1/2: what is learned at short distances
        makes the long ones learnable at all, as in a curriculum (Bengio et al. 2009), and short steps cost less.
        """
        generator = generator_at(seed, step)
        weights_K = torch.tensor(self.distances, dtype=torch.float64) ** -0.5
        distance = self.distances[int(torch.multinomial(weights_K, 1, generator=generator))]
        return self.draw(distance, batch_size, generator)


class RecurrentReader(nn.Module):
    """Embeddings, the ladder's own recurrent stacks, and a linear answer from the last position."""

    def __init__(self, task: RecallTask, cell: Cell, bidirectional: bool, hidden_size: int) -> None:
        super().__init__()
        settings = RecurrentSettings(cell, bidirectional, hidden_size, embedding_size=hidden_size)
        self.embedding = nn.Embedding(task.vocab_size, hidden_size)
        self.stacks = make_stacks(settings, hidden_size)
        self.answer = nn.Linear(hidden_size * len(self.stacks), task.num_values)

    def read(self, inputs_BLE: Tensor) -> Tensor:
        """Logits of the values, shape [B, C], from embedded sequences of one length."""
        lengths_B = torch.full((len(inputs_BLE),), inputs_BLE.shape[1])
        hidden_BLH, _ = run_stacks(self.stacks, inputs_BLE, lengths_B)
        logits_BC: Tensor = self.answer(hidden_BLH[:, -1])
        return logits_BC

    def forward(self, input_ids_BL: Tensor) -> Tensor:
        """Logits of the values, shape [B, C]."""
        return self.read(self.embedding(input_ids_BL))


class BertReader(nn.Module):
    """A small BERT and a linear answer from the last position."""

    def __init__(self, task: RecallTask, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=task.vocab_size, hidden_size=hidden_size, intermediate_size=intermediate_size,
            num_hidden_layers=NUM_LAYERS, num_attention_heads=NUM_HEADS, max_position_embeddings=task.max_length,
            type_vocab_size=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1,
        )  # fmt: skip
        self.encoder: Any = BertModel(config, add_pooling_layer=False)
        self.answer = nn.Linear(hidden_size, task.num_values)

    def forward(self, input_ids_BL: Tensor) -> Tensor:
        """Logits of the values, shape [B, C]."""
        logits_BC: Tensor = self.answer(self.encoder(input_ids=input_ids_BL).last_hidden_state[:, -1])
        return logits_BC


RecallModel = RecurrentReader | BertReader
_RECURRENT: dict[str, tuple[Cell, bool]] = {"rnn": ("rnn", False), "lstm": ("lstm", False), "bilstm": ("lstm", True)}


def count_parameters(model: nn.Module) -> int:
    """Learned numbers."""
    return sum(parameter.numel() for parameter in model.parameters())


def build_model(
    name: Literal["rnn", "lstm", "bilstm", "bert"], task: RecallTask, num_parameters: int, seed: int
) -> RecallModel:
    """A fresh model whose size is as near to ``num_parameters`` as whole widths allow.

    A recurrent model has one width to choose; BERT's is fixed by the rule below, and its feed-forward layer is fitted.
    """
    torch.manual_seed(seed)
    if name == "bert":
        return BertReader(task, *_bert_sizes(task, num_parameters))
    cell, bidirectional = _RECURRENT[name]
    widths = range(2, 2000)
    distance = [abs(_recurrent_size(task, cell, bidirectional, width) - num_parameters) for width in widths]
    return RecurrentReader(task, cell, bidirectional, widths[distance.index(min(distance))])


def _recurrent_size(task: RecallTask, cell: Cell, bidirectional: bool, width: int) -> int:
    gates, directions = {"rnn": 1, "lstm": 4, "gru": 3}[cell], 1 + bidirectional
    stack = gates * (2 * width * width + 2 * width)
    return task.vocab_size * width + directions * stack + (directions * width + 1) * task.num_values


def _bert_size(task: RecallTask, hidden_size: int, intermediate_size: int) -> int:
    embeddings = (task.vocab_size + task.max_length + 1) * hidden_size + 2 * hidden_size
    attention = 4 * (hidden_size * hidden_size + hidden_size) + 2 * hidden_size
    feed_forward = 2 * hidden_size * intermediate_size + intermediate_size + hidden_size + 2 * hidden_size
    return embeddings + NUM_LAYERS * (attention + feed_forward) + (hidden_size + 1) * task.num_values


def _bert_sizes(task: RecallTask, num_parameters: int) -> tuple[int, int]:
    """The widest model that leaves its feed-forward layers at least its own width; else the narrowest there is."""
    for hidden_size in range(256, 3, -NUM_HEADS * 2):
        smallest = _bert_size(task, hidden_size, hidden_size)
        if smallest <= num_parameters:
            room = num_parameters - smallest
            return hidden_size, hidden_size + round(room / (NUM_LAYERS * (2 * hidden_size + 1)))
    return 4, 4
