"""Settings of the probes of structure: distance, word order, prediction in context, gates and attention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.errors import ConfigError
from components.text.sentences import Language

RecallModelName = Literal["rnn", "lstm", "bilstm", "bert"]
RECALL_MODELS: tuple[RecallModelName, ...] = ("rnn", "lstm", "bilstm", "bert")


class RecallProbeConfig(StageConfig):
    """How far back a network remembers: models of one size, trained from scratch to recall a token k back."""

    language: Language = "zh"
    """Language of the picture's text."""
    distances: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, min_length=2)] = (
        5, 10, 20, 50, 100, 200, 400,
    )  # fmt: skip
    """Positions between the deciding token and the place where the answer is read, rising."""
    models: Annotated[tuple[RecallModelName, ...], Field(strict=False, min_length=1)] = RECALL_MODELS
    """Which networks to compare."""
    num_parameters: int = Field(30_000, ge=2_000)
    """Learned numbers of every model, embeddings included; sizes are chosen to come as near as they can."""
    num_values: int = Field(16, ge=2, le=100)
    """Different deciding tokens; chance is one in so many."""
    num_fillers: int = Field(16, ge=1, le=1000)
    """Different tokens that fill the distance, drawn at random."""
    max_lead: int = Field(8, ge=0, le=1000)
    """Most fillers before the deciding token; their number is drawn anew for every batch."""
    num_seeds: int = Field(2, ge=1, le=20)
    """Times that every model is trained, from other weights and on other sequences."""
    num_train_steps: int = Field(400, ge=1)
    """Optimiser steps of a training; each step draws one of the distances."""
    batch_size: int = Field(32, ge=1)
    """Sequences of a step."""
    learning_rate: float = Field(3e-3, gt=0, le=1)
    """Peak learning rate of every model."""
    num_test_sequences: int = Field(100, ge=10)
    """Fresh sequences per distance and seed on which accuracy is measured."""
    num_resamples: int = Field(1000, ge=100)
    """Bootstrap resamples behind every interval."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of weights, sequences and resamples."""

    @model_validator(mode="after")
    def _distances_rise(self) -> RecallProbeConfig:
        if list(self.distances) != sorted(set(self.distances)):
            raise ConfigError(f"distances {list(self.distances)} must rise. Remedy: sort them, each once.")
        if len(set(self.models)) != len(self.models):
            raise ConfigError(f"models {list(self.models)} name one twice. Remedy: name each once.")
        return self


class WordOrderProbeConfig(StageConfig):
    """Whether an encoder sees the order of words: who bit whom."""

    language: Language = "zh"
    """Language of the sentences, and of the picture's text."""
    order_file: str | None = None
    """JSON file {"first": [...], "second": [...], "templates": ["{a}咬了{b}。", ...]} instead of the list that ships;
    a template has each of {a} and {b} once."""
    test_share: float = Field(0.25, gt=0, lt=1)
    """Share of the pairs of words that are tested; they never occur together in training."""
    num_train_steps: int = Field(200, ge=1)
    """Optimiser steps in which a copy of the encoder learns the task."""
    batch_size: int = Field(32, ge=1)
    """Sentences of a step."""
    learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate; empty means 5e-3 for recurrent encoders, 2e-5 · (768 / hidden_size)² up to 1e-3 for BERT."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Chooses the tested pairs, the head's initial weights and the batches."""

    def external_files(self) -> list[Path]:
        """The user's list, if any."""
        return [] if self.order_file is None else [Path(self.order_file)]


class ClozeProbeConfig(StageConfig):
    """What a pretrained BERT predicts: hidden pieces, the next sentence, and which of two sentences is well formed."""

    language: Language = "zh"
    """Language of the minimal pairs that ship, and of the picture's text."""
    num_cloze: int = Field(500, ge=10)
    """Pieces of held-out documents to predict, each hidden alone."""
    num_sentence_pairs: int = Field(400, ge=10)
    """Pairs of passages from held-out documents, half of them consecutive."""
    num_baseline_documents: int = Field(2000, ge=1)
    """Training documents from which the frequencies of pieces are counted for the baseline."""
    max_seq_length: int = Field(128, ge=8, le=4096)
    """Longest row in pieces, special tokens included; an encoder with fewer positions takes its own limit."""
    minimal_pairs_file: str | None = None
    """JSON lines {"sentence_good", "sentence_bad", "phenomenon"} instead of the list that ships, such as BLiMP or
    SLING."""
    max_pairs_per_phenomenon: int = Field(50, ge=1)
    """Minimal pairs of a phenomenon beyond this number are left out, chosen by the seed."""
    num_resamples: int = Field(1000, ge=100)
    """Bootstrap resamples behind the intervals over documents."""
    batch_size: int = Field(128, ge=1)
    """Rows at a time; no result depends on it."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Chooses the hidden pieces, the pairs of passages and the resamples."""

    def external_files(self) -> list[Path]:
        """The user's minimal pairs, if any."""
        return [] if self.minimal_pairs_file is None else [Path(self.minimal_pairs_file)]


class LookSentence(StageConfig):
    """A sentence to look at, and the word in it from which attention is drawn."""

    text: str = Field(min_length=1)
    """The sentence."""
    word: str = Field(min_length=1)
    """A word of the sentence; its first occurrence counts."""

    @model_validator(mode="after")
    def _word_occurs(self) -> LookSentence:
        if self.word not in self.text:
            raise ConfigError(f"word {self.word!r} does not occur in {self.text!r}. Remedy: name a word of the text.")
        return self


class LookProbeConfig(StageConfig):
    """Pictures of what happens inside: gates of a recurrent encoder over time, attention heads of BERT."""

    language: Language = "zh"
    """Language of the sentences that ship, and of the picture's text."""
    sentences: Annotated[tuple[LookSentence, ...], Field(strict=False)] = ()
    """Sentences to look at; empty takes those that ship for the language."""
    max_seq_length: int = Field(64, ge=4, le=512)
    """Tokens of a sentence that are drawn; longer ones are refused, as nobody could read the picture."""
