"""Pretrain a BERT encoder on a corpus."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from transformers import BertForPreTraining, BertTokenizerFast

from components.bert.batches import PackedData
from components.bert.config import PretrainingConfig
from components.bert.data import TokenizedCorpus, tokenize_corpus
from components.bert.held_out import HeldOut, evaluate, make_held_out, unigram_loss
from components.bert.initial import build_model, load_initial, warm_start
from components.bert.model import share_of_loss
from components.bert.sentence_pairs import check_documents, check_pairs
from components.bert.throughput import Throughput, with_throughput
from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.transformer import quiet_transformers
from components.encoders.wordpiece import load_wordpiece, piece_ids, save_wordpiece
from components.errors import ConfigError
from components.formats import IGNORE_INDEX, corpus_shards, write_encoder_card, write_json
from components.training import (
    Precision,
    StepLoss,
    TrainingResult,
    TrainingSettings,
    autocast,
    choose_device,
    choose_precision,
    train,
)


def pretrain_bert(
    config: PretrainingConfig,
    *,
    corpus: Path,
    tokenizer: Path,
    segmented: Path | None = None,
    embeddings: Path | None = None,
    out_dir: Path,
    checkpoint_dir: Path | None = None,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Pretrain with masked language modelling and next sentence prediction (Devlin et al. 2019, section 3.1).

    Args:
        config: Sizes, objective and schedule.
        corpus: Corpus artifact with a training and a validation split.
        tokenizer: Tokenizer artifact; a checkpoint that ``init_from`` names brings its own instead.
        segmented: The corpus as words; needed for whole-word masking only.
        embeddings: Word2vec artifact over the tokenizer's pieces, to start the token embeddings from.
        out_dir: Receives the Hugging Face checkpoint, the tokenizer and ``encoder.json``.
        checkpoint_dir: Training resumes from here after a kill.
        log_metrics: Receives losses, accuracies, tokens per second and ``progress`` while training.

    Returns:
        Training averages, held-out losses and what the data looked like; without steps, no text is read or described.

    Raises:
        InputError: Text that cannot be trained on, found before training.
        ConfigError: Settings that contradict each other or the inputs.
        TrainingError: A loss that is not finite, a full disk, or a checkpoint without encoder weights.
    """
    _check_inputs(config, segmented, embeddings)
    pieces = load_wordpiece(_tokenizer_source(config.init_from, tokenizer))
    model, initial = _initial_model(config, pieces, embeddings, out_dir)
    if config.trains:
        words = segmented if config.masking == "whole_word" else None
        metrics = _pretrain(config, model, pieces, corpus, words, out_dir, checkpoint_dir, log_metrics)
    else:
        metrics = {"num_train_steps": 0.0, "num_parameters": float(model.num_parameters())}
    _save(config, model, pieces, out_dir)
    return {**initial, **metrics}


def _pretrain(
    config: PretrainingConfig,
    model: BertForPreTraining,
    pieces: BertTokenizerFast,
    corpus: Path,
    words: Path | None,
    out_dir: Path,
    checkpoint_dir: Path | None,
    log_metrics: LogMetrics,
) -> Metrics:
    started = time.perf_counter()
    device = choose_device()
    precision = choose_precision(config.precision, device)
    model.to(device)
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".ids-") as scratch:
        train_split, held_out, described = _prepare(config, corpus, pieces, words, Path(scratch))
        data = _packed_data(config, train_split, pieces)
        described |= _describe(config, data, train_split, corpus)
        log_metrics({"padding_share": described["padding_share"]})
        meter = Throughput()
        result = train(
            model,
            _step_losses(config, model, data, device, precision, meter),
            _settings(config, precision),
            checkpoint_dir=checkpoint_dir,
            log_metrics=with_throughput(log_metrics, meter),
        )
        final = evaluate(model, held_out, nsp=config.nsp, device=device, precision=precision)
        plateau = unigram_loss(train_split.ids, held_out.labels, len(pieces))
    final |= {"unigram_mlm_loss": plateau, "nats_below_unigram": plateau - final["val_mlm_loss"]}
    log_metrics({name: final[name] for name in final})
    if result.step_seconds:
        final["train_step_share"] = result.step_seconds / (time.perf_counter() - started)
    return {**described, **_training_metrics(config, model, result, meter, precision), **final}


def _check_inputs(config: PretrainingConfig, segmented: Path | None, embeddings: Path | None) -> None:
    if config.masking == "whole_word" and segmented is None:
        raise ConfigError("masking=whole_word needs the segmented corpus. Remedy: pass it, or masking: character.")
    if config.init_from is not None and embeddings is not None:
        raise ConfigError("init_from and embeddings both set the token embeddings. Remedy: give only one of them.")
    if config.init_from is not None and config.position_embeddings == "none":
        raise ConfigError("init_from brings its own positions. Remedy: position_embeddings: learned.")
    if embeddings is not None and not (embeddings / "vectors.txt").is_file():
        raise ConfigError(f"{embeddings} holds no vectors.txt. Remedy: give a word2vec artifact.")


def _tokenizer_source(init_from: str | None, tokenizer: Path) -> Path | str:
    """Weights fit no vocabulary but their own; a local checkpoint without tokenizer files takes the one given."""
    if init_from is None:
        return tokenizer
    folder = Path(init_from)
    bare = folder.is_dir() and not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt"))
    return tokenizer if bare else init_from


def _initial_model(
    config: PretrainingConfig, tokenizer: BertTokenizerFast, embeddings: Path | None, out_dir: Path
) -> tuple[BertForPreTraining, Metrics]:
    dropout = {
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
    }
    if config.init_from is not None:
        model, report = load_initial(
            config.init_from,
            vocab_size=len(tokenizer),
            max_seq_length=config.max_seq_length,
            seed=config.seed,
            **dropout,
        )
        write_json(out_dir / "load_report.json", report.to_json())
        return model, {"num_loaded": float(len(report.loaded)), "num_missing": float(len(report.missing))}
    model = build_model(
        vocab_size=len(tokenizer),
        max_seq_length=config.max_seq_length,
        pad_token_id=tokenizer.pad_token_id,
        position_embeddings=config.position_embeddings,
        sizes=config.model_sizes(),
        seed=config.seed,
        **dropout,
    )
    if embeddings is None:
        return model, {}
    share = warm_start(model, tokenizer.get_vocab(), embeddings / "vectors.txt", config.embedding_std)
    return model, {"warm_started_share": share}


def _prepare(
    config: PretrainingConfig, corpus: Path, tokenizer: BertTokenizerFast, words: Path | None, scratch: Path
) -> tuple[TokenizedCorpus, HeldOut, Metrics]:
    train_split = tokenize_corpus(corpus, "train", tokenizer, scratch, words)
    validation = tokenize_corpus(corpus, "validation", tokenizer, scratch)
    if config.nsp:
        for split in (train_split, validation):
            check_documents(split, file=_name(corpus, "train" if split is train_split else "validation"))
    held_out = make_held_out(
        validation,
        piece_ids(tokenizer),
        max_seq_length=config.max_seq_length,
        nsp=config.nsp,
        num_eval_rows=config.num_eval_rows,
    )
    counts = {
        "num_documents": float(train_split.num_documents),
        "num_sentences": float(train_split.num_sentences),
        "num_empty_sentences": float(train_split.num_empty_sentences),
        "num_corpus_tokens": float(len(train_split.ids)),
    }
    return train_split, held_out, counts


def _name(corpus: Path, split: str) -> str:
    shards = corpus_shards(corpus, "train" if split == "train" else "validation")
    return str(shards[0]) if shards else f"{corpus} ({split})"


def _packed_data(config: PretrainingConfig, corpus: TokenizedCorpus, tokenizer: BertTokenizerFast) -> PackedData:
    return PackedData(
        corpus,
        piece_ids(tokenizer),
        max_seq_length=config.max_seq_length,
        short_seq_probability=config.short_seq_probability,
        nsp=config.nsp,
        mlm_probability=config.mlm_probability,
        batch_size=config.batch_size,
        seed=config.seed,
    )


def _describe(config: PretrainingConfig, data: PackedData, split: TokenizedCorpus, corpus: Path) -> Metrics:
    pairs = data.epoch.pairs
    check_pairs(pairs, split, max_seq_length=config.max_seq_length, nsp=config.nsp, file=_name(corpus, "train"))
    labelled = pairs.labels[pairs.labels != IGNORE_INDEX]
    metrics = {
        "padding_share": data.epoch.padding_share(config.max_seq_length),
        "num_instances": float(len(pairs)),
        "num_pairs": float(len(labelled)),
        "num_cut_sentences": float(pairs.num_cut_sentences),
        "num_steps_per_epoch": float(data.num_steps_per_epoch),
    }
    return metrics | ({"random_pair_share": float(labelled.mean())} if config.nsp else {})


def _settings(config: PretrainingConfig, precision: Precision) -> TrainingSettings:
    return TrainingSettings(
        num_train_steps=config.num_train_steps,
        learning_rate=config.learning_rate,
        seed=config.seed,
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        max_minutes=config.max_minutes,
        precision=precision,
    )


def _step_losses(
    config: PretrainingConfig,
    model: BertForPreTraining,
    data: PackedData,
    device: torch.device,
    precision: Precision,
    meter: Throughput,
) -> Callable[[int], Iterator[StepLoss]]:
    rows = config.batch_size // config.gradient_accumulation_steps

    def losses_at(step: int) -> Iterator[StepLoss]:
        batch = data.batch_at(step)
        meter.add(batch)
        for start in range(0, config.batch_size, rows):
            part = batch.rows(start, start + rows)
            with autocast(device, precision):
                share = share_of_loss(model, part, whole=batch, nsp=config.nsp, device=device)
            yield share

    return losses_at


def _save(config: PretrainingConfig, model: BertForPreTraining, tokenizer: BertTokenizerFast, out_dir: Path) -> None:
    # Dropout was a setting of pretraining; whoever fine-tunes gets BERT's customary 0.1 unless they choose otherwise.
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.1
    with quiet_transformers():
        model.eval().cpu().save_pretrained(str(out_dir))
    tokenizer.model_max_length = model.config.max_position_embeddings
    save_wordpiece(tokenizer, out_dir)
    write_encoder_card(
        out_dir,
        "bert",
        max_seq_length=config.max_seq_length,
        vocab_size=model.config.vocab_size,
        hidden_size=model.config.hidden_size,
        num_hidden_layers=model.config.num_hidden_layers,
        objective="mlm+nsp" if config.nsp else "mlm",
        masking=config.masking,
    )


def _training_metrics(
    config: PretrainingConfig,
    model: BertForPreTraining,
    result: TrainingResult,
    meter: Throughput,
    precision: Precision,
) -> Metrics:
    metrics = {
        **result.final_metrics,
        "num_train_steps": float(result.num_steps),
        "num_train_tokens": float(meter.num_tokens),
        "num_parameters": float(model.num_parameters()),
        "num_threads": float(torch.get_num_threads()),
        "bfloat16": float(precision == "bfloat16"),
        "train_seconds": result.seconds,
        "resumed_from_step": float(result.resumed_from_step),
        "reproducible": 0.0 if config.max_minutes is not None else 1.0,
    }
    if meter.num_maskable:
        metrics["masked_share"] = meter.masked_share
        metrics["tokens_per_second"] = meter.num_tokens / result.step_seconds
    return metrics
