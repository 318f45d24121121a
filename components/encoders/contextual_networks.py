"""Recurrent networks and BERT as encoders of words in context.

Legend of shape suffixes: B batch, L length, E embedding size, H numbers per state.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertModel

from components.encoders.contextual_tokens import TokenEncoder, Tokens, Vectors, make_table, read_pieces, read_units
from components.encoders.pieces import PieceEncoder, PieceSplitter
from components.encoders.recurrent import CELLS, RecurrentEncoder, load_recurrent, run_stacks
from components.encoders.transformer import load_transformer
from components.encoders.wordpiece import piece_ids
from components.text.normalization import NormalizationConfig
from components.text.vocabulary import UNK_ID
from components.training import choose_device


def recurrent_contexts(folder: Path, recipe: NormalizationConfig) -> TokenEncoder:
    """A recurrent encoder; layer k is the state of layer k of both directions, joined."""
    encoder = load_recurrent(folder).to(choose_device())
    rows: Vectors = encoder.embedding.weight.detach().cpu().numpy()
    depths = [_first_layers(encoder, depth) for depth in range(1, encoder.settings.num_layers + 1)]

    @torch.inference_mode()
    def run(batch: list[list[int]]) -> list[list[Vectors]]:
        input_ids_BL, lengths_B = _pad(batch, 0, encoder.embedding.weight.device)
        embedded_BLE = encoder.embedding(input_ids_BL)
        return _cut([run_stacks(stacks, embedded_BLE, lengths_B)[0] for stacks in depths], batch)

    return TokenEncoder(
        "recurrent",
        ("embeddings", *_layer_names(encoder.settings.num_layers)),
        make_table(encoder.vocabulary.words, rows),
        read=lambda texts: _read(encoder, recipe, texts),
        lookup=lambda ids: rows[list(ids)],
        run=run,
        unknown_id=UNK_ID,
    )


def bert_contexts(folder: Path, recipe: NormalizationConfig) -> TokenEncoder:
    """A BERT encoder; layer k is the output of transformer layer k of a text between ``[CLS]`` and ``[SEP]``."""
    loaded = load_transformer(folder)
    model: BertModel = loaded.model.to(choose_device())
    special = piece_ids(loaded.tokenizer)
    weight = model.embeddings.word_embeddings.weight
    rows: Vectors = weight.detach().cpu().numpy()

    @torch.inference_mode()
    def run(batch: list[list[int]]) -> list[list[Vectors]]:
        framed = [[special.cls, *ids, special.sep] for ids in batch]
        input_ids_BL, lengths_B = _pad(framed, special.pad, weight.device)
        mask_BL = torch.arange(input_ids_BL.shape[1])[None, :] < lengths_B[:, None]
        states = model(input_ids_BL, attention_mask=mask_BL.to(weight.device), output_hidden_states=True).hidden_states
        return _cut([layer_BLH[:, 1:] for layer_BLH in states[1:]], batch)

    pieces = loaded.tokenizer.convert_ids_to_tokens(list(range(len(loaded.tokenizer))))
    reader = PieceEncoder(loaded.tokenizer, recipe)
    return TokenEncoder(
        "bert",
        ("embeddings", *_layer_names(model.config.num_hidden_layers)),
        make_table(pieces, rows),
        read=lambda texts: [Tokens(tuple(item.ids), tuple(item.offsets)) for item in reader.encode_texts(texts)],
        lookup=lambda ids: rows[list(ids)],
        run=run,
        unknown_id=loaded.tokenizer.unk_token_id,
        max_tokens=model.config.max_position_embeddings - 2,
    )


def _read(encoder: RecurrentEncoder, recipe: NormalizationConfig, texts: Sequence[str]) -> list[Tokens]:
    segmenter, vocabulary = encoder.segmenter, encoder.vocabulary
    if not isinstance(segmenter, PieceSplitter):
        return read_units(texts, recipe, segmenter.segment, lambda word: vocabulary.encode([word]))
    return read_pieces(texts, segmenter.encoder(recipe), segmenter.pieces, vocabulary.id_of)


def _first_layers(encoder: RecurrentEncoder, depth: int) -> nn.ModuleList:
    """Both stacks cut after ``depth`` layers: torch's own modules give the states of the last layer only."""
    settings = encoder.settings
    cut = nn.ModuleList()
    for stack in encoder.stacks:
        shorter = CELLS[settings.cell](stack.input_size, settings.hidden_size, num_layers=depth, batch_first=True)
        names = shorter.state_dict().keys()
        shorter.load_state_dict({name: weight for name, weight in stack.state_dict().items() if name in names})
        cut.append(shorter)
    return cut.to(encoder.embedding.weight.device).eval()


def _pad(batch: list[list[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids padded on the right, and their lengths, which stay on the CPU."""
    rows = [torch.tensor(ids, dtype=torch.long) for ids in batch]
    padded_BL = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
    return padded_BL.to(device), torch.tensor([len(ids) for ids in batch])


def _cut(states: Sequence[Tensor], batch: list[list[int]]) -> list[list[Vectors]]:
    """States by text and layer, without padding."""
    layers = [layer_BLH.float().cpu().numpy() for layer_BLH in states]
    return [[layer[row, : len(ids)] for layer in layers] for row, ids in enumerate(batch)]


def _layer_names(count: int) -> tuple[str, ...]:
    return tuple(f"layer_{number}" for number in range(1, count + 1))
