"""The WordPiece model: trained deterministically, saved as a Hugging Face folder, measured on its own corpus."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers
from tokenizers.models import WordPiece
from transformers import BertTokenizerFast

from components.encoders.wordpiece import SPECIAL_TOKENS, save_wordpiece


def blank_tokenizer(*, lowercase: bool, strip_accents: bool, handle_chinese_chars: bool) -> Tokenizer:
    """An untrained WordPiece tokenizer with BERT's normaliser and pre-tokeniser, every switch explicit."""
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=handle_chinese_chars, strip_accents=strip_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def keep_alphabet(characters: Counter[str], limit_alphabet: int | None) -> list[str]:
    """The most frequent characters, sorted; ties are broken by code point so that the choice never varies."""
    ordered = sorted(characters, key=lambda character: (-characters[character], character))
    return sorted(ordered[:limit_alphabet])


def train_vocabulary(
    tokenizer: Tokenizer,
    batches: Iterable[list[str]],
    *,
    alphabet: list[str],
    continuations: list[str],
    vocab_size: int,
    min_frequency: int,
) -> list[str]:
    """Learn pieces by merging (Schuster and Nakajima 2012), the same ones in every run.

    The library numbers ``##`` characters in the order of a randomly seeded hash map, and ties between merges follow
    those numbers, so its vocabularies differ between runs. Handing it the ``##`` characters in sorted order fixes both.

    Args:
        tokenizer: Supplies normaliser and pre-tokeniser; its model is overwritten.
        batches: Training text.
        alphabet: Characters to keep, sorted.
        continuations: Characters of the alphabet that occur inside a word, sorted.
        vocab_size: Upper limit; at least special tokens, alphabet and continuations together.
        min_frequency: Least count of a merge.

    Returns:
        The pieces; a piece's position is its id, the five special tokens come first.
    """
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        special_tokens=[*SPECIAL_TOKENS, *(f"##{character}" for character in continuations)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(batches, trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=lambda piece: vocab[piece])


def save_tokenizer(
    pieces: list[str], folder: Path, *, lowercase: bool, strip_accents: bool, handle_chinese_chars: bool
) -> None:
    """Write the Hugging Face folder and ``vocab.txt``; every switch is stored with the vocabulary."""
    tokenizer = BertTokenizerFast(
        vocab={piece: number for number, piece in enumerate(pieces)},
        do_lower_case=lowercase,
        strip_accents=strip_accents,
        tokenize_chinese_chars=handle_chinese_chars,
        split_special_tokens=True,
    )
    save_wordpiece(tokenizer, folder)


@dataclass
class Coverage:
    """How a vocabulary fits a text."""

    num_chars: int = 0
    num_words: int = 0
    num_pieces: int = 0
    num_unk: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Spellings that became [UNK]; bounded, so rare ones may be missing."""

    @property
    def unk_rate(self) -> float:
        """Share of [UNK] among the pieces."""
        return self.num_unk / max(self.num_pieces, 1)


def measure_coverage(tokenizer: BertTokenizerFast, sentences: Iterable[str], batch_sentences: int = 1000) -> Coverage:
    """Encode ``sentences`` and count characters (without white space), words, pieces and [UNK]."""
    coverage = Coverage()
    starts_word = np.array(
        [not piece.startswith("##") for piece in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
    )
    for batch in _batched(sentences, batch_sentences):
        encodings = tokenizer.backend_tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        ids = np.fromiter(itertools.chain.from_iterable(encoding.ids for encoding in encodings), dtype=np.int64)
        coverage.num_chars += sum(len(chunk) for sentence in batch for chunk in sentence.split())
        coverage.num_words += int(starts_word[ids].sum())
        coverage.num_pieces += len(ids)
        unknown = int((ids == tokenizer.unk_token_id).sum())
        if unknown:
            coverage.num_unk += unknown
            _note_lost(coverage.lost, tokenizer, batch)
    return coverage


def _note_lost(lost: Counter[str], tokenizer: BertTokenizerFast, sentences: list[str]) -> None:
    encodings = tokenizer.backend_tokenizer.encode_batch(sentences, add_special_tokens=False)
    for sentence, encoding in zip(sentences, encodings, strict=True):
        for number, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if number == tokenizer.unk_token_id and (sentence[start:end] in lost or len(lost) < 10_000):
                lost[sentence[start:end]] += 1


def _batched(sentences: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(sentences)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
