"""Train a WordPiece tokenizer on a corpus."""

from __future__ import annotations

from pathlib import Path

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.wordpiece import SPECIAL_TOKENS, load_wordpiece
from components.errors import ConfigError, InputError
from components.tokenizer.config import TokenizerConfig
from components.tokenizer.data import CorpusScan, read_sentences, scan_corpus, training_batches
from components.tokenizer.model import (
    Coverage,
    blank_tokenizer,
    keep_alphabet,
    measure_coverage,
    save_tokenizer,
    train_vocabulary,
)


def train_tokenizer(
    config: TokenizerConfig, *, corpus: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Train, save, reload and measure a WordPiece vocabulary.

    Three passes over the corpus, each with one batch of sentences in memory: count the alphabet, merge pieces,
    encode the text with the reloaded result.

    Args:
        config: Vocabulary size and text switches.
        corpus: Corpus artifact.
        out_dir: Receives the Hugging Face tokenizer folder and ``vocab.txt``.
        log_metrics: Receives ``progress``.

    Returns:
        Vocabulary sizes, fertility (pieces per character and per word), ``unk_rate`` and what was counted on the way.

    Raises:
        InputError: Empty or binary text, a vocabulary below ``min_vocab_size``, or too many [UNK].
        ConfigError: ``vocab_size`` is smaller than the alphabet needs.
    """
    switches = {
        "lowercase": config.lowercase,
        "strip_accents": config.strip_accents,
        "handle_chinese_chars": config.handle_chinese_chars,
    }
    tokenizer = blank_tokenizer(**switches)
    scan = scan_corpus(
        corpus,
        normalize=tokenizer.normalizer.normalize_str,
        split_words=lambda text: [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)],
        max_control_rate=config.max_control_rate,
    )
    log_metrics({"progress": 0.3})
    alphabet = keep_alphabet(scan.characters, config.limit_alphabet)
    continuations = sorted(scan.continuations.intersection(alphabet))
    _check_room(config.vocab_size, len(alphabet), len(continuations))
    pieces = train_vocabulary(
        tokenizer,
        training_batches(corpus),
        alphabet=alphabet,
        continuations=continuations,
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
    )
    log_metrics({"progress": 0.6})
    if len(pieces) < config.min_vocab_size:
        raise InputError(
            f"the corpus supports {len(pieces)} pieces of the {config.vocab_size} asked for, "
            f"min_vocab_size is {config.min_vocab_size}",
            file=corpus,
            remedy="add text, or lower min_frequency or min_vocab_size",
        )
    save_tokenizer(pieces, out_dir, **switches)
    coverage = measure_coverage(load_wordpiece(out_dir), (sentence for _, sentence in read_sentences(corpus)))
    _check_unk_rate(coverage, config.max_unk_rate)
    log_metrics({"progress": 1.0})
    return _metrics(config, scan, alphabet, pieces, coverage)


def _check_room(vocab_size: int, alphabet_size: int, num_continuations: int) -> None:
    minimum = len(SPECIAL_TOKENS) + alphabet_size + num_continuations
    if vocab_size < minimum:
        raise ConfigError(
            f"vocab_size {vocab_size} is below the minimum {minimum} of this corpus "
            f"({len(SPECIAL_TOKENS)} special tokens, "
            f"{alphabet_size} characters, {num_continuations} of them also inside words). "
            f"Remedy: set vocab_size to {minimum} or more, or limit_alphabet to keep fewer characters."
        )


def _check_unk_rate(coverage: Coverage, max_unk_rate: float) -> None:
    if coverage.unk_rate > max_unk_rate:
        examples = ", ".join(f"{text!r} x{count}" for text, count in coverage.lost.most_common(8))
        raise InputError(
            f"{coverage.num_unk} of {coverage.num_pieces} pieces of the training text are [UNK] "
            f"({coverage.unk_rate:.2%}, limit {max_unk_rate:.2%}); most frequent: {examples}",
            remedy="raise limit_alphabet or leave it empty, or raise max_unk_rate",
        )


def _metrics(
    config: TokenizerConfig, scan: CorpusScan, alphabet: list[str], pieces: list[str], coverage: Coverage
) -> Metrics:
    return {
        "vocab_size": float(len(pieces)),
        "requested_vocab_size": float(config.vocab_size),
        "alphabet_size": float(len(alphabet)),
        "num_lost_characters": float(len(scan.characters) - len(alphabet)),
        "unk_rate": coverage.unk_rate,
        "pieces_per_char": coverage.num_pieces / max(coverage.num_chars, 1),
        "pieces_per_word": coverage.num_pieces / max(coverage.num_words, 1),
        "num_sentences": float(scan.num_sentences),
        "num_chars": float(coverage.num_chars),
        "num_pieces": float(coverage.num_pieces),
        "num_special_strings": float(scan.num_special_strings),
        "num_control_chars": float(scan.num_control_chars),
    }
