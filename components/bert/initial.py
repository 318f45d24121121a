"""Initial weights of BERT: random, from a checkpoint, or with token embeddings warm-started from word vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining

from components.encoders.transformer import LoadReport, load_pretraining_model
from components.errors import ConfigError, InputError
from components.vectors import read_vectors

BERT_BASE_STD, BERT_BASE_WIDTH = 0.02, 768


def build_model(
    *,
    vocab_size: int,
    max_seq_length: int,
    pad_token_id: int,
    position_embeddings: str,
    hidden_dropout_prob: float,
    attention_probs_dropout_prob: float,
    sizes: dict[str, int],
    seed: int,
) -> BertForPreTraining:
    """A BERT with random weights and learned positions that start as sinusoids.

    Random weights are normal. Their standard deviation is BERT's 0.02 at hidden size 768 and grows as 1 / sqrt(width)
    below it, so that small models start with activations of the same size. Learned positions that start as sinusoids
    (Vaswani et al. 2017, section 3.5) know from the first step which pieces are neighbours; starting at random, a small
    model spends half of a short run at the unigram plateau before it attends to anything.

    Args:
        vocab_size: Pieces of the tokenizer.
        max_seq_length: Number of positions.
        pad_token_id: Id of [PAD].
        position_embeddings: "learned", or "none" for positions that are zero and stay so.
        hidden_dropout_prob: Dropout on hidden states.
        attention_probs_dropout_prob: Dropout on attention weights.
        sizes: Layer, width and head counts, under the names of ``transformers.BertConfig``.
        seed: Seed of the weights.
    """
    torch.manual_seed(seed)
    initializer_range = BERT_BASE_STD * (BERT_BASE_WIDTH / sizes["hidden_size"]) ** 0.5
    model = BertForPreTraining(
        BertConfig(
            vocab_size=vocab_size,
            max_position_embeddings=max_seq_length,
            pad_token_id=pad_token_id,
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            initializer_range=initializer_range,
            **sizes,
        )
    )
    positions = model.bert.embeddings.position_embeddings.weight
    with torch.no_grad():
        positions.copy_(initializer_range * sinusoids(*positions.shape))
    if position_embeddings == "none":
        nn.init.zeros_(positions)
        positions.requires_grad_(False)
    return model


def sinusoids(num_positions: int, hidden_size: int) -> Tensor:
    """Sine and cosine position codes, centred over the positions and scaled to standard deviation 1.

    Returns:
        Shape [num_positions, hidden_size].
    """
    angles = torch.arange(num_positions)[:, None] * 10_000.0 ** (-torch.arange(0, hidden_size, 2) / hidden_size)
    codes = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :hidden_size]
    centred = codes - codes.mean(dim=0)
    return centred / centred.std()


def load_initial(
    source: str,
    *,
    vocab_size: int,
    max_seq_length: int,
    hidden_dropout_prob: float,
    attention_probs_dropout_prob: float,
    seed: int,
) -> tuple[BertForPreTraining, LoadReport]:
    """Continue from a checkpoint; heads that it lacks start at random, encoder weights must all be there.

    Raises:
        TrainingError: Encoder weights are missing.
        ConfigError: The checkpoint has another vocabulary or too few positions.
    """
    torch.manual_seed(seed)
    model, report = load_pretraining_model(
        source,
        hidden_dropout_prob=hidden_dropout_prob,
        attention_probs_dropout_prob=attention_probs_dropout_prob,
    )
    if model.config.vocab_size != vocab_size:
        raise ConfigError(
            f"init_from {source} has {model.config.vocab_size} pieces, the tokenizer {vocab_size}. "
            "Remedy: use the tokenizer of the checkpoint."
        )
    if model.config.max_position_embeddings < max_seq_length:
        raise ConfigError(
            f"{source} has {model.config.max_position_embeddings} positions, max_seq_length is {max_seq_length}. "
            "Remedy: lower max_seq_length."
        )
    return model, report


def warm_start(model: BertForPreTraining, pieces: dict[str, int], vectors_file: Path, embedding_std: float) -> float:
    """Set the token embeddings to word vectors of the same pieces, centred and scaled.

    Centring removes the direction all word vectors share (Mu and Viswanath 2018). Positions are scaled to the same
    standard deviation, which keeps their sum with the tokens in balance. Pieces without a vector keep their random row.

    Args:
        model: Changed in place; the tied decoder changes with it.
        pieces: Id of each piece.
        vectors_file: Word2vec text format; words are pieces.
        embedding_std: Standard deviation of the copied numbers afterwards.

    Returns:
        Share of the vocabulary that was set.

    Raises:
        ConfigError: The vectors have another size than the model.
        InputError: A damaged file, or no piece has a vector.
    """
    words, vectors = read_vectors(vectors_file)
    hidden_size = model.config.hidden_size
    if vectors.shape[1] != hidden_size:
        raise ConfigError(
            f"{vectors_file}: vectors of size {vectors.shape[1]}, hidden_size is {hidden_size}. "
            f"Remedy: train vectors with vector_size {hidden_size}."
        )
    rows = [number for number, word in enumerate(words) if word in pieces]
    if not rows:
        raise InputError(
            f"none of the {len(words)} words is a piece of the tokenizer",
            file=vectors_file,
            remedy="train the vectors on pieces of this tokenizer (units: pieces)",
        )
    found = vectors[rows] - vectors[rows].mean(axis=0)
    found *= embedding_std / max(float(found.std()), 1e-12)
    with torch.no_grad():
        ids = torch.tensor([pieces[words[number]] for number in rows])
        model.get_input_embeddings().weight[ids] = torch.from_numpy(np.ascontiguousarray(found))
        positions = model.bert.embeddings.position_embeddings.weight
        positions.mul_(embedding_std / positions.std().clamp_min(1e-12))
    return len(rows) / len(pieces)
