"""Reading the tokens of a text for named-entity recognition.

Legend of shape suffixes: B rows, L pieces, W tokens with pieces in a row, H hidden size, K tags, T gold tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from components.examples import TaggedText
from components.finetuning.context import OFFSETS, WordVectorEncoder, neighbours
from components.finetuning.encoders import LoadedEncoder
from components.finetuning.model import TaskModel, gather_positions, make_linear_head
from components.finetuning.outputs import TokenScores, outside_row
from components.finetuning.readers import Reader, ReaderInputs, RowOutput
from components.finetuning.rows import Batch, Row, Rows, as_array, mask_of
from components.finetuning.windows import cut_windows, window_of_most_context
from components.formats import IGNORE_INDEX


class TagHead(nn.Module):
    """A linear layer over each token's vector and, if asked for, a linear-chain CRF over the tags."""

    def __init__(self, hidden_size: int, num_tags: int, dropout: float, *, crf: bool) -> None:
        super().__init__()
        from torchcrf import CRF

        self.scorer = make_linear_head(hidden_size, num_tags, dropout)
        self.crf = CRF(num_tags, batch_first=True) if crf else None


class TagModel(TaskModel):
    """Encoder and head; fixed vectors are read with those of their neighbours."""

    head: TagHead

    def __init__(self, loaded: LoadedEncoder, head: TagHead) -> None:
        super().__init__()
        self.encoder = loaded.module
        self.head = head
        self._states = loaded.states

    def forward(self, batch: Batch) -> Tensor:
        """Scores of every token's tags, shape [B, W, K]."""
        states = self._states(self.encoder, batch["input_ids"], batch["input_ids_lengths"], None)
        hidden_BLH = states.hidden_BLH
        if isinstance(self.encoder, WordVectorEncoder):
            hidden_BLH = neighbours(hidden_BLH, mask_of(batch, "input_ids"))
        scores_BWK: Tensor = self.head.scorer(gather_positions(hidden_BLH, batch["first_pieces"]))
        return scores_BWK

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Mean cross-entropy per token in nats; with a CRF of the sequence of tags, shared among its tokens."""
        tags_BW = batch["tags"]
        if self.head.crf is None:
            return nn.functional.cross_entropy(
                outputs.float().flatten(0, 1), tags_BW.flatten(), ignore_index=IGNORE_INDEX
            )
        mask_BW = tags_BW != IGNORE_INDEX
        likelihood: Tensor = self.head.crf(outputs.float(), tags_BW.clamp(min=0), mask=mask_BW, reduction="token_mean")
        return -likelihood


def make_tag_reader(inputs: ReaderInputs) -> Reader:
    """The reader of tokens; facts: ``labels``, ``crf``, ``max_seq_length``, ``window_overlap``."""
    loaded, facts = inputs.loaded, inputs.facts
    tags: list[str] = list(facts["labels"])
    width = len(OFFSETS) if isinstance(loaded.module, WordVectorEncoder) else 1
    head = TagHead(loaded.hidden_size * width, len(tags), inputs.dropout, crf=facts["crf"])
    model = TagModel(loaded, head)
    pieces = loaded.pieces(inputs.normalization)
    indices = {tag: index for index, tag in enumerate(tags)}

    def rows(examples: Sequence[TaggedText]) -> Rows:
        encoded = pieces.encode_token_lists([example.words() for example in examples])
        made: list[Row] = []
        num_windowed = 0
        for number, text in enumerate(encoded):
            found = window_rows(loaded, number, text.ids, text.first, facts["max_seq_length"], facts["window_overlap"])
            num_windowed += len(found) > 1
            made.extend(found)
        num_without = sum(position is None for text in encoded for position in text.first)
        counts = {"num_windowed": float(num_windowed), "num_tokens_without_pieces": float(num_without)}
        return Rows(made, [len(text.first) for text in encoded], counts)

    def training_rows(examples: Sequence[TaggedText]) -> Rows:
        made = rows(examples)
        for row in made.rows:
            gold = examples[row.example].tags
            row.arrays["tags"] = as_array([indices[gold[token]] for token in row.arrays.pop("tokens")])
        return made

    def assemble(made: Rows, outputs: Sequence[RowOutput]) -> list[TokenScores]:
        return assemble_tokens(head, len(tags), made, outputs)

    pads = {"input_ids": loaded.pad_id, "tags": IGNORE_INDEX}
    return Reader(
        model, pads, training_rows, rows, lambda output, row: output[: len(row.arrays["first_pieces"])], assemble
    )


def window_rows(
    loaded: LoadedEncoder,
    example: int,
    ids: Sequence[int],
    first: Sequence[int | None],
    max_seq_length: int,
    overlap: int,
) -> list[Row]:
    """The windows of one text that hold a token's label piece; each token speaks from the window of most context.

    Args:
        loaded: Encoder.
        example: Number of the text.
        ids: The tokenizer's pieces.
        first: Label piece of every token, or None.
        max_seq_length: Most ids in a row, special ones included.
        overlap: Pieces that neighbouring windows share.
    """
    windows = cut_windows(len(ids), max_seq_length - len(loaded.prefix) - len(loaded.suffix), overlap)
    owner = window_of_most_context(windows, len(ids))
    tokens = as_array([token for token, position in enumerate(first) if position is not None])
    positions = as_array([position for position in first if position is not None])
    rows = []
    for number, (start, end) in enumerate(windows):
        inside = np.flatnonzero((positions >= start) & (positions < end))
        if not len(inside):
            continue
        body = [*loaded.prefix, *loaded.ids(ids[start:end]).tolist(), *loaded.suffix]
        arrays = {
            "input_ids": as_array(body),
            "first_pieces": positions[inside] - start + len(loaded.prefix),
            "tokens": tokens[inside],
        }
        sources = np.flatnonzero(owner[positions[inside]] == number)
        rows.append(Row(example, arrays, sources, tokens[inside][sources]))
    return rows


def assemble_tokens(head: TagHead, num_tags: int, made: Rows, outputs: Sequence[RowOutput]) -> list[TokenScores]:
    """Scores of every gold token, stitched from the windows; a CRF's start and end go into the outer tokens' rows."""
    scores = [np.tile(outside_row(num_tags), (num_tokens, 1)) for num_tokens in made.contexts]
    for row, output in zip(made.rows, outputs, strict=True):
        scores[row.example][row.places] = output[row.sources]
    if head.crf is None:
        return [TokenScores(rows_TK) for rows_TK in scores]
    start, end, transitions = (
        parameter.detach().double().cpu().numpy()
        for parameter in (head.crf.start_transitions, head.crf.end_transitions, head.crf.transitions)
    )
    for rows_TK in scores:
        if len(rows_TK):
            rows_TK[0] += start
            rows_TK[-1] += end
    return [TokenScores(rows_TK, transitions) for rows_TK in scores]
