"""Encoders of every neural family behind one record: from text to ids, from ids to states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor, nn

from components.encoders.recurrent import load_recurrent
from components.encoders.static import load_word_vectors
from components.errors import ConfigError
from components.finetuning.context import RecurrentContext, WindowContext, WordVectorEncoder
from components.finetuning.fitting import WeightReport
from components.finetuning.model import Encode, States
from components.text.normalization import NormalizationConfig
from components.text.vocabulary import PAD_ID, UNK_ID

if TYPE_CHECKING:
    from components.encoders.pieces import PieceEncoder


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder module with its ways from text to token ids."""

    module: nn.Module
    states: Encode
    encode: Callable[[Sequence[str]], list[list[int]]]
    """Texts to token ids without special tokens, not cut; for classification."""
    report: WeightReport
    hidden_size: int
    """Size of a token's vector, and of the text's."""
    pad_id: int
    make_pieces: Callable[[NormalizationConfig], PieceEncoder] | None
    """The encoder's tokenizer behind a recipe; None when it reads words, which NER and answers have no offsets for."""
    make_context: Callable[[int], tuple[nn.Module, int]]
    """Size of a token's features to a module that relates neighbouring tokens, and the size of its states."""
    piece_ids: NDArray[np.int64] | None = None
    """The encoder's id of each piece of the tokenizer; None when they are the same."""
    prefix: tuple[int, ...] = ()
    """Ids before every text."""
    suffix: tuple[int, ...] = ()
    """Ids after every text."""
    empty: tuple[int, ...] = ()
    """Ids that stand for a text without tokens."""
    max_length: int | None = None
    """Most tokens the encoder can take, special ones included."""
    joint: bool = False
    """Whether two texts can be read as one row, with token types."""
    facts: dict[str, Any] = field(default_factory=dict)

    def pieces(self, normalization: NormalizationConfig) -> PieceEncoder:
        """The tokenizer behind a recipe.

        Raises:
            ConfigError: The encoder reads words.
        """
        if self.make_pieces is None:
            raise ConfigError(
                "this encoder reads words; ner and question_answering need one trained with units: pieces"
            )
        return self.make_pieces(normalization)

    def ids(self, pieces: Sequence[int]) -> NDArray[np.int64]:
        """The encoder's ids of the tokenizer's pieces."""
        array = np.asarray(pieces, dtype=np.int64)
        return array if self.piece_ids is None else self.piece_ids[array]


# --- word vectors ----------------------------------------------------------------------------------------------------


def load_vector_encoder(folder: Path) -> LoadedEncoder:
    """Fixed vectors of pieces, one a piece; a piece without a vector, and padding, is all zeros.

    Raises:
        ConfigError: The vectors are of words.
    """
    vectors = load_word_vectors(folder)
    if vectors.units != "pieces":
        raise ConfigError(
            f"{folder} holds vectors of words; ner and question_answering need word vectors with units: pieces"
        )
    from components.encoders.pieces import PieceEncoder
    from components.encoders.wordpiece import load_wordpiece

    tokenizer = load_wordpiece(folder)
    module = WordVectorEncoder(vectors.table(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))))
    return LoadedEncoder(
        module=module,
        states=vector_states,
        encode=lambda texts: tokenizer(list(texts), add_special_tokens=False)["input_ids"],
        report=WeightReport(("vectors",)),
        hidden_size=vectors.vector_size,
        pad_id=tokenizer.pad_token_id,
        make_pieces=lambda normalization: PieceEncoder(tokenizer, normalization),
        make_context=WindowContext.make,
        empty=(tokenizer.unk_token_id,),
    )


def vector_states(
    module: nn.Module, input_ids_BL: Tensor, lengths_B: Tensor, token_type_ids_BL: Tensor | None
) -> States:
    """The vector of every piece."""
    hidden_BLH = module(input_ids_BL)
    return States(hidden_BLH, hidden_BLH[:, 0])


# --- recurrent -------------------------------------------------------------------------------------------------------


def load_recurrent_encoder(folder: Path) -> LoadedEncoder:
    """A recurrent encoder; a text without words is read as one unknown word."""
    encoder = load_recurrent(folder)
    with safe_open(folder / "model.safetensors", framework="pt") as stored:
        saved, wanted = set(stored.keys()), set(encoder.state_dict())
    report = WeightReport(
        tuple(sorted(saved & wanted)), tuple(sorted(wanted - saved)), tuple(sorted(saved - wanted))
    )  # fmt: skip
    splitter: Any = encoder.segmenter
    by_pieces = encoder.units == "pieces"
    return LoadedEncoder(
        module=encoder,
        states=recurrent_states,
        encode=lambda texts: [encoder.encode(text) for text in texts],
        report=report,
        hidden_size=encoder.output_size,
        pad_id=PAD_ID,
        make_pieces=splitter.encoder if by_pieces else None,
        make_context=lambda size: RecurrentContext.make(encoder.settings, size),
        piece_ids=np.array([encoder.vocabulary.id_of(piece) for piece in splitter.pieces]) if by_pieces else None,
        empty=(UNK_ID,),
    )


def recurrent_states(
    module: nn.Module, input_ids_BL: Tensor, lengths_B: Tensor, token_type_ids_BL: Tensor | None
) -> States:
    """States of every word, and the last state of each direction."""
    output = module(input_ids_BL, lengths_B)
    return States(output.hidden_BLH, output.last_BH)


# --- BERT ------------------------------------------------------------------------------------------------------------


def load_bert_encoder(folder: Path) -> LoadedEncoder:
    """A BERT encoder with its WordPiece tokenizer; special-token strings in a text are read as plain text."""
    # Imported here: transformers costs a second that the other families need not pay.
    from components.encoders.pieces import PieceEncoder
    from components.encoders.transformer import load_transformer

    loaded = load_transformer(folder)
    tokenizer = loaded.tokenizer

    def encode(texts: Sequence[str]) -> list[list[int]]:
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        ids: list[list[int]] = tokenizer(list(texts), return_attention_mask=False, **options)["input_ids"]
        return ids

    return LoadedEncoder(
        module=loaded.model,
        states=bert_states,
        encode=encode,
        report=WeightReport(*map(tuple, (loaded.report.loaded, loaded.report.missing, loaded.report.unexpected))),
        hidden_size=loaded.model.config.hidden_size,
        pad_id=tokenizer.pad_token_id,
        make_pieces=lambda normalization: PieceEncoder(tokenizer, normalization),
        make_context=WindowContext.make,
        prefix=(tokenizer.cls_token_id,),
        suffix=(tokenizer.sep_token_id,),
        max_length=loaded.model.config.max_position_embeddings,
        joint=True,
    )


def bert_states(module: nn.Module, input_ids_BL: Tensor, lengths_B: Tensor, token_type_ids_BL: Tensor | None) -> States:
    """Last hidden states, and the pooled [CLS] (dense layer and tanh, trained by next-sentence prediction)."""
    positions = torch.arange(input_ids_BL.shape[1], device=input_ids_BL.device)
    mask_BL = (positions < lengths_B[:, None]).long()
    output = module(input_ids=input_ids_BL, attention_mask=mask_BL, token_type_ids=token_type_ids_BL)
    return States(output.last_hidden_state, output.pooler_output)
