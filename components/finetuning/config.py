"""Settings of fine-tuning, one class a task over what all tasks share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.errors import ConfigError
from components.examples import TaskName

Pooling = Literal["auto", "cls", "mean", "last", "max"]
SPECIAL_TOKENS_OF_A_TEXT = 2
"""[CLS] text [SEP]."""
SPECIAL_TOKENS_OF_A_PAIR = 3
"""[CLS] question [SEP] passage [SEP]."""


class FinetuningConfig(StageConfig):
    """What every task shares: how a head, and the encoder under it, are fitted to labelled examples.

    Fields that a family of encoders has no use for are left alone by it: the linear families (bag of words, word
    vectors on classification) read ``seed``, ``num_train_examples``, ``C`` and ``best_epoch_metric``.
    """

    task: TaskName = "classification"
    """Task to fine-tune for; must be the data set's."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Chooses the labelled subset, the initial head, dropout and the order of the batches."""
    num_train_examples: int | None = Field(None, ge=2)
    """Labelled budget: the same examples for every rung with the same seed; empty means all of train."""
    max_seq_length: int = Field(128, ge=8, le=8192)
    """Longest row in the encoder's own tokens, special tokens included. Longer texts are cut and counted in
    classification, and read in overlapping windows in ner and question_answering."""
    num_epochs: int | None = Field(None, ge=1)
    """Passes over the labelled examples, of which the best by validation is kept; empty means the family's."""
    batch_size: int = Field(16, ge=1)
    """Rows per training step: texts, or windows of texts."""
    learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate; empty means the family's: 5e-3 for recurrent encoders and readers over word vectors; for BERT
    2e-5 · (768 / hidden_size)² up to 1e-3, and four times that for the head."""
    encoder_learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate of the encoder below the head; empty means ``learning_rate`` where that is given, else the
    family's."""
    weight_decay: float = Field(0.01, ge=0, le=1)
    """Decoupled weight decay on matrices."""
    warmup_ratio: float = Field(0.1, ge=0, lt=1)
    """Share of all steps in which the learning rate rises to its peak."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout before the head and on the encoder's hidden states (attention weights are left whole)."""
    freeze: Literal["none", "embeddings", "encoder"] = "none"
    """Part of the encoder that keeps its pretrained weights."""
    C: float | None = Field(None, gt=0)
    """Inverse regularisation of the logistic regression on the linear families; empty tries 0.01 to 100 (10 on ner and
    question_answering)."""
    best_epoch_metric: str = "accuracy"
    """Validation metric that decides which epoch, or which C, is kept; the earlier or smaller one wins a tie."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of the training steps; predictions are always made in float32."""


class ClassificationConfig(FinetuningConfig):
    """A label for a text, or for a pair of texts."""

    task: Literal["classification"] = "classification"
    """Task to fine-tune for."""
    pooling: Pooling = "auto"
    """How token states become one vector: cls (BERT), last (recurrent), mean or max; auto is cls or max."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target probability spread over all labels."""
    unseen_label: Literal["stop", "count_as_wrong"] = "stop"
    """What to do with a validation or test label outside ``labels.json``: refuse, or keep the row, which no model can
    get right."""
    best_epoch_metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """Validation metric that decides which epoch, or which C, is kept; the earlier or smaller one wins a tie."""


class NerConfig(FinetuningConfig):
    """A tag for every token of a text."""

    task: Literal["ner"] = "ner"
    """Task to fine-tune for."""
    crf: bool = False
    """Learn how tags follow one another (linear-chain CRF; Lafferty et al. 2001, Huang et al. 2015); recurrent only."""
    window_overlap: int | None = Field(None, ge=0)
    """Pieces that neighbouring windows of a long text share; a token is tagged in the window that shows most around
    it. Empty means a quarter of ``max_seq_length``."""
    best_epoch_metric: Literal["entity_f1"] = "entity_f1"
    """Validation metric that decides which epoch, or which C, is kept; the earlier or smaller one wins a tie."""

    @property
    def overlap(self) -> int:
        """``window_overlap``, or what it is when empty."""
        return self.max_seq_length // 4 if self.window_overlap is None else self.window_overlap

    @model_validator(mode="after")
    def _windows_advance(self) -> NerConfig:
        room = self.max_seq_length - SPECIAL_TOKENS_OF_A_TEXT
        if self.overlap >= room:
            raise ConfigError(
                f"window_overlap is {self.overlap}, but a window of max_seq_length={self.max_seq_length} has room "
                f"for {room} pieces: lower window_overlap or raise max_seq_length"
            )
        return self


class QuestionAnsweringConfig(FinetuningConfig):
    """A span of a passage that answers a question."""

    task: Literal["question_answering"] = "question_answering"
    """Task to fine-tune for."""
    language: Literal["zh", "en"] = "zh"
    """Rules of exact match and F1 on validation."""
    doc_stride: int | None = Field(None, ge=0)
    """Pieces that neighbouring windows of a long passage share; empty means a quarter of ``max_seq_length``."""
    max_question_length: int | None = Field(None, ge=1)
    """Longest question in pieces; longer ones are refused before training, by id. Empty means half of
    ``max_seq_length``."""
    max_answer_length: int = Field(30, ge=1)
    """Longest predicted answer in pieces."""
    num_candidates: int = Field(5, ge=1, le=100)
    """Spans kept per question, best first, none overlapping another."""
    best_epoch_metric: Literal["f1", "exact_match"] = "f1"
    """Validation metric that decides which epoch, or which C, is kept; the earlier or smaller one wins a tie."""

    @property
    def overlap(self) -> int:
        """``doc_stride``, or what it is when empty."""
        return self.max_seq_length // 4 if self.doc_stride is None else self.doc_stride

    @property
    def question_limit(self) -> int:
        """``max_question_length``, or what it is when empty."""
        return self.max_seq_length // 2 if self.max_question_length is None else self.max_question_length

    @model_validator(mode="after")
    def _windows_advance(self) -> QuestionAnsweringConfig:
        room = self.max_seq_length - SPECIAL_TOKENS_OF_A_PAIR - self.question_limit
        if self.overlap >= room:
            raise ConfigError(
                f"doc_stride is {self.overlap}, but max_seq_length={self.max_seq_length} less a question of "
                f"max_question_length={self.question_limit} and {SPECIAL_TOKENS_OF_A_PAIR} special tokens leaves "
                f"room for {room} pieces: lower doc_stride or max_question_length, or raise max_seq_length"
            )
        return self


AnyFinetuningConfig: TypeAlias = Annotated[
    ClassificationConfig | NerConfig | QuestionAnsweringConfig, Field(discriminator="task")
]
"""The settings of any task, told apart by ``task``."""
