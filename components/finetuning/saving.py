"""Writing the encoder of a fitted model into its folder, as files that its own family, or transformers, loads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from torch import nn

from components.artifacts import MANIFEST
from components.encoders.recurrent import save_recurrent
from components.finetuning.fitting import FittingInputs
from components.finetuning.model import TaskModel

Facts = Mapping[str, Any]


def save_recurrent_model(model: TaskModel, inputs: FittingInputs, facts: Facts) -> None:
    """Write the fine-tuned recurrent encoder."""
    save_recurrent(model.encoder, inputs.model_dir)  # type: ignore[arg-type]


def copy_encoder(model: TaskModel, inputs: FittingInputs, facts: Facts) -> None:
    """Copy an encoder whose files training does not change."""
    shutil.copytree(inputs.encoder, inputs.model_dir, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))


def save_bert_classifier(model: TaskModel, inputs: FittingInputs, facts: Facts) -> None:
    """Write encoder and tokenizer; with [CLS] pooling ``AutoModelForSequenceClassification`` gives the same logits.

    Other poolings have no counterpart there, so the encoder alone is written.
    """
    from transformers import BertForSequenceClassification

    if facts["pooling"] == "cls":
        _save_checkpoint(model, inputs, BertForSequenceClassification, "classifier", model.head)
    else:
        _copy_tokenizer(inputs)
        _save(model.encoder, inputs)


def save_bert_tagger(model: TaskModel, inputs: FittingInputs, facts: Facts) -> None:
    """Write encoder and tokenizer; ``AutoModelForTokenClassification`` gives the same logits."""
    from transformers import BertForTokenClassification

    _save_checkpoint(model, inputs, BertForTokenClassification, "classifier", model.head.scorer)  # type: ignore[arg-type]


def save_bert_reader(model: TaskModel, inputs: FittingInputs, facts: Facts) -> None:
    """Write encoder and tokenizer; ``AutoModelForQuestionAnswering`` gives the same logits."""
    from transformers import BertForQuestionAnswering

    _save_checkpoint(model, inputs, BertForQuestionAnswering, "qa_outputs", model.head)


def _save_checkpoint(model: TaskModel, inputs: FittingInputs, kind: type[Any], name: str, head: nn.Module) -> None:
    """The encoder as ``kind``, whose layer ``name`` is a copy of the head's linear layer."""
    _copy_tokenizer(inputs)
    encoder: Any = model.encoder
    names = dict(enumerate(inputs.data.labels))
    labels = {"id2label": names, "label2id": {label: index for index, label in names.items()}} if names else {}
    config = type(encoder.config).from_dict({**encoder.config.to_dict(), **labels})
    checkpoint = kind(config)
    checkpoint.bert.load_state_dict(encoder.state_dict(), strict=checkpoint.bert.pooler is not None)
    getattr(checkpoint, name).load_state_dict(head[-1].state_dict())  # type: ignore[index]
    _save(checkpoint, inputs)


def _save(checkpoint: Any, inputs: FittingInputs) -> None:
    from components.encoders.transformer import quiet_transformers

    with quiet_transformers():
        checkpoint.save_pretrained(inputs.model_dir)


def _copy_tokenizer(inputs: FittingInputs) -> None:
    skipped = shutil.ignore_patterns(MANIFEST, "*.safetensors")
    shutil.copytree(inputs.encoder, inputs.model_dir, dirs_exist_ok=True, ignore=skipped)
