"""Recurrent encoder: reads a text word by word; its last state stands for the text.

Each direction is a stack of its own, joined only at the output, as in ELMo (Peters et al. 2018, section 3.1): so each
can be trained as a language model without seeing the word it predicts. With one layer this is the usual bidirectional
network. Sequences are padded on the right and the backward stack reads them reversed within their own length, so that
padding comes after everything a state depends on; packed sequences are neither needed nor, on CPUs, fast.

Legend of shape suffixes: B batch, L length, E embedding_size, H hidden_size times directions, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from components.errors import ArtifactError
from components.formats import read_encoder_card, read_json, write_encoder_card, write_json
from components.text.segmentation import Segmenter, load_segmenter
from components.text.vocabulary import PAD_ID, Vocabulary

if TYPE_CHECKING:
    from components.encoders.pieces import PieceSplitter

Cell = Literal["rnn", "lstm", "gru"]
Units = Literal["words", "pieces"]
CELLS: dict[Cell, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


@dataclass(frozen=True)
class RecurrentSettings:
    """Sizes of a recurrent encoder."""

    cell: Cell = "lstm"
    bidirectional: bool = True
    hidden_size: int = 128
    """Units per direction."""
    num_layers: int = 1
    embedding_size: int = 100
    dropout: float = 0.0
    """On embeddings, between layers and on outputs, while training."""


class RecurrentOutput(NamedTuple):
    """States of a batch; positions after a sequence's end are zero."""

    hidden_BLH: Tensor
    last_BH: Tensor
    """Final state of each direction: after the last word for the forward one, after the first for the backward one."""


class RecurrentEncoder(nn.Module):
    """Embeddings and one recurrent stack per direction, with the vocabulary and segmenter it was made for.

    It reads words, or the pieces of a tokenizer; then the tokenizer is its segmenter.
    """

    def __init__(
        self, settings: RecurrentSettings, vocabulary: Vocabulary, segmenter: Segmenter | PieceSplitter
    ) -> None:
        """Initialise weights from torch's global generator."""
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self.segmenter = segmenter
        self.embedding = nn.Embedding(len(vocabulary), settings.embedding_size, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=0.1)
        with torch.no_grad():
            self.embedding.weight[PAD_ID] = 0
        self.dropout = nn.Dropout(settings.dropout)
        self.stacks = make_stacks(settings, settings.embedding_size)

    @property
    def units(self) -> Units:
        """What an id stands for."""
        return "words" if isinstance(self.segmenter, Segmenter) else "pieces"

    @property
    def output_size(self) -> int:
        """H: numbers per position and per text."""
        return self.settings.hidden_size * len(self.stacks)

    @property
    def num_parameters(self) -> int:
        """Learned numbers, embeddings included."""
        return sum(parameter.numel() for parameter in self.parameters())

    def encode(self, text: str) -> list[int]:
        """Word ids of a text; empty for a text without words, which ``forward`` refuses."""
        return self.vocabulary.encode(self.segmenter.segment(text))

    def forward(self, input_ids_BL: Tensor, lengths_B: Tensor) -> RecurrentOutput:
        """Encode a batch; a row's result depends on neither its padding nor its companions.

        Batches of one length take the fast way, without any gathering.

        Args:
            input_ids_BL: Word ids, int64, padded on the right with 0.
            lengths_B: Words per row, int64, each in [1, L].

        Raises:
            ValueError: A length is out of range; names the rows.
        """
        hidden_BLH, last_BH = run_stacks(self.stacks, self.dropout(self.embedding(input_ids_BL)), lengths_B)
        return RecurrentOutput(self.dropout(hidden_BLH), self.dropout(last_BH))


def make_stacks(settings: RecurrentSettings, input_size: int) -> nn.ModuleList:
    """One fresh stack per direction for vectors of ``input_size`` numbers."""
    return nn.ModuleList(_make_stack(settings, input_size) for _ in range(1 + settings.bidirectional))


def run_stacks(stacks: nn.ModuleList, values_BLX: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """States of vectors that are padded on the right; a row depends on neither its padding nor its companions.

    Args:
        stacks: One per direction, the forward one first.
        values_BLX: Vectors, float.
        lengths_B: Vectors per row, int64, each in [1, L].

    Returns:
        hidden_BLH, zero at padding, and last_BH, the final state of each direction.

    Raises:
        ValueError: A length is out of range; names the rows.
    """
    longest = values_BLX.shape[1]
    ragged = any(length != longest for length in check_lengths(lengths_B, longest))
    mirror_BL = _mirror(lengths_B.to(values_BLX.device), longest) if ragged else None
    hidden, last = [], []
    for backward, stack in enumerate(stacks):
        states = stack(_reverse(values_BLX, mirror_BL) if backward else values_BLX)[0]
        last.append(_at_end(states, lengths_B) if ragged else states[:, -1])
        hidden.append(_reverse(states, mirror_BL) if backward else states)
    hidden_BLH = torch.cat(hidden, dim=-1)
    if ragged:
        positions_L = torch.arange(longest, device=values_BLX.device)
        hidden_BLH = hidden_BLH * (positions_L < lengths_B.to(positions_L.device)[:, None])[..., None]
    return hidden_BLH, torch.cat(last, dim=-1)


def _make_stack(settings: RecurrentSettings, input_size: int) -> nn.RNNBase:
    stack = CELLS[settings.cell](
        input_size,
        settings.hidden_size,
        num_layers=settings.num_layers,
        batch_first=True,
        dropout=settings.dropout if settings.num_layers > 1 else 0.0,
    )
    for name, parameter in stack.named_parameters():
        for gate, block in enumerate(torch.split(parameter.data, settings.hidden_size)):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(block)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(block)
            else:
                # An open forget gate lets an untrained LSTM remember (Jozefowicz et al. 2015, section 2.2).
                block.fill_(1.0 if settings.cell == "lstm" and gate == 1 and name.startswith("bias_ih") else 0.0)
    return stack


def _mirror(lengths_B: Tensor, length: int) -> Tensor:
    """For each row, the positions that reverse its words and leave its padding where it is; shape [B, L]."""
    positions_L = torch.arange(length, device=lengths_B.device)
    mirrored_BL = lengths_B[:, None] - 1 - positions_L
    return torch.where(mirrored_BL >= 0, mirrored_BL, positions_L)


def _reverse(values_BLX: Tensor, mirror_BL: Tensor | None) -> Tensor:
    if mirror_BL is None:
        return values_BLX.flip(1)
    return values_BLX.gather(1, mirror_BL[..., None].expand_as(values_BLX))


def _at_end(states_BLX: Tensor, lengths_B: Tensor) -> Tensor:
    rows_B = torch.arange(len(states_BLX), device=states_BLX.device)
    return states_BLX[rows_B, lengths_B.to(states_BLX.device) - 1]


def check_lengths(lengths_B: Tensor, max_length: int) -> list[int]:
    """The lengths as numbers, each in [1, max_length].

    Raises:
        ValueError: A length is out of range; names the rows.
    """
    lengths: list[int] = lengths_B.tolist()
    if bad := [row for row, length in enumerate(lengths) if not 1 <= length <= max_length]:
        raise ValueError(
            f"rows {bad[:8]} of the batch have lengths {[lengths[row] for row in bad[:8]]}, outside [1, {max_length}]"
        )
    return lengths


def save_recurrent(encoder: RecurrentEncoder, folder: Path) -> None:
    """Write weights, sizes, vocabulary, segmenter and card."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    write_json(folder / "config.json", asdict(encoder.settings))
    encoder.vocabulary.save(folder)
    encoder.segmenter.save(folder)
    write_encoder_card(
        folder,
        "recurrent",
        units=encoder.units,
        cell=encoder.settings.cell,
        output_size=encoder.output_size,
        num_parameters=encoder.num_parameters,
    )


def load_recurrent(folder: Path) -> RecurrentEncoder:
    """Read what ``save_recurrent`` wrote; the encoder is on the CPU and in evaluation mode.

    Raises:
        ArtifactError: The folder holds another kind of encoder, or weights that do not fit its sizes.
    """
    card = read_encoder_card(folder)
    if card["family"] != "recurrent":
        raise ArtifactError(f"{folder} holds a {card['family']} encoder, not recurrent")
    settings = RecurrentSettings(**read_json(folder / "config.json"))
    segmenter: Segmenter | PieceSplitter = load_segmenter(folder) if card["units"] == "words" else load_splitter(folder)
    encoder = RecurrentEncoder(settings, Vocabulary.load(folder), segmenter)
    try:
        encoder.load_state_dict(load_file(folder / "model.safetensors"))
    except (RuntimeError, OSError, SafetensorError) as error:
        raise ArtifactError(f"{folder}: weights do not fit config.json and vocabulary.txt: {error}") from error
    return encoder.eval()


def load_splitter(tokenizer: Path) -> PieceSplitter:
    """The tokenizer of a folder as a segmenter.

    Raises:
        InputError: The folder holds no usable tokenizer.
    """
    # Imported here: transformers costs a second that encoders of words need not pay.
    from components.encoders.pieces import PieceSplitter

    return PieceSplitter(tokenizer)
