"""The families of encoders that can be fine-tuned, in one table.

Everything that differs between families is in their records; the stage and the prediction code never ask which family
they hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from components.artifacts import MANIFEST
from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.recurrent import load_recurrent, save_recurrent
from components.encoders.static import load_word_vectors
from components.finetuning.fitting import Family, FittingInputs, WeightReport
from components.finetuning.linear import LinearFamily, fit_linear, restore_linear
from components.finetuning.model import States, TaskModel
from components.finetuning.neural import LoadedEncoder, NeuralFamily, fit_neural, restore_neural
from components.formats import EncoderFamily
from components.text.vocabulary import PAD_ID, UNK_ID

RECURRENT_LEARNING_RATE = 2e-3
BERT_LEARNING_RATE = 2e-5
"""At width 768; Devlin et al. (2019, appendix A.3) search 2e-5 to 5e-5."""
MAX_BERT_LEARNING_RATE = 3e-4
"""The largest that Turc et al. (2019) use to fine-tune the small BERT models."""


# --- linear families -------------------------------------------------------------------------------------------------


def load_bag_features(folder: Path) -> tuple[Callable[[Sequence[str]], Any], int]:
    """Transform and number of parameters of a bag of words."""
    bag = load_bag_of_words(folder)
    return bag.transform, bag.num_parameters


def load_vector_features(folder: Path) -> tuple[Callable[[Sequence[str]], Any], int]:
    """Transform (mean of a text's word vectors) and number of parameters of word vectors."""
    vectors = load_word_vectors(folder)
    return vectors.transform, vectors.num_parameters


# --- recurrent -------------------------------------------------------------------------------------------------------


def load_recurrent_encoder(folder: Path) -> LoadedEncoder:
    """A recurrent encoder; a text without words is read as one unknown word."""
    encoder = load_recurrent(folder)
    with safe_open(folder / "model.safetensors", framework="pt") as stored:
        saved, wanted = set(stored.keys()), set(encoder.state_dict())
    report = WeightReport(
        tuple(sorted(saved & wanted)), tuple(sorted(wanted - saved)), tuple(sorted(saved - wanted))
    )  # fmt: skip
    return LoadedEncoder(
        module=encoder,
        encode=lambda texts: [encoder.encode(text) for text in texts],
        report=report,
        hidden_size=encoder.output_size,
        pad_id=PAD_ID,
        empty=(UNK_ID,),
    )


def recurrent_states(module: nn.Module, input_ids_BL: Tensor, lengths_B: Tensor) -> States:
    """States of every word, and the last state of each direction."""
    output = module(input_ids_BL, lengths_B)
    return States(output.hidden_BLH, output.last_BH)


def save_recurrent_model(model: TaskModel, inputs: FittingInputs, pooling: str) -> None:
    """Write the fine-tuned recurrent encoder."""
    save_recurrent(model.encoder, inputs.model_dir)  # type: ignore[arg-type]


# --- BERT ------------------------------------------------------------------------------------------------------------


def load_bert_encoder(folder: Path) -> LoadedEncoder:
    """A BERT encoder with its WordPiece tokenizer; special-token strings in a text are read as plain text."""
    # Imported here: transformers costs a second that the other families need not pay.
    from components.encoders.transformer import load_transformer

    loaded = load_transformer(folder)
    tokenizer = loaded.tokenizer

    def encode(texts: Sequence[str]) -> list[list[int]]:
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        ids: list[list[int]] = tokenizer(list(texts), return_attention_mask=False, **options)["input_ids"]
        return ids

    return LoadedEncoder(
        module=loaded.model,
        encode=encode,
        report=WeightReport(*map(tuple, (loaded.report.loaded, loaded.report.missing, loaded.report.unexpected))),
        hidden_size=loaded.model.config.hidden_size,
        pad_id=tokenizer.pad_token_id,
        prefix=(tokenizer.cls_token_id,),
        suffix=(tokenizer.sep_token_id,),
        max_length=loaded.model.config.max_position_embeddings,
    )


def bert_states(module: nn.Module, input_ids_BL: Tensor, lengths_B: Tensor) -> States:
    """Last hidden states, and the pooled [CLS] (dense layer and tanh, trained by next-sentence prediction)."""
    positions = torch.arange(input_ids_BL.shape[1], device=input_ids_BL.device)
    output = module(input_ids=input_ids_BL, attention_mask=(positions < lengths_B[:, None]).long())
    return States(output.last_hidden_state, output.pooler_output)


def save_bert_model(model: TaskModel, inputs: FittingInputs, pooling: str) -> None:
    """Write encoder and tokenizer; with [CLS] pooling as a checkpoint that transformers loads as a classifier.

    ``AutoModelForSequenceClassification.from_pretrained(model_dir)`` then gives the same logits: its ``classifier`` is
    a copy of the head. Other poolings have no counterpart there, so the encoder alone is written.
    """
    from transformers import BertForSequenceClassification

    skipped = shutil.ignore_patterns(MANIFEST, "*.safetensors")
    shutil.copytree(inputs.encoder, inputs.model_dir, dirs_exist_ok=True, ignore=skipped)
    encoder: Any = model.encoder
    if pooling != "cls":
        encoder.save_pretrained(inputs.model_dir)
        return
    names = dict(enumerate(inputs.data.labels))
    config = type(encoder.config).from_dict(
        {**encoder.config.to_dict(), "id2label": names, "label2id": {name: index for index, name in names.items()}}
    )
    classifier = BertForSequenceClassification(config)
    classifier.bert.load_state_dict(encoder.state_dict())
    classifier.classifier.load_state_dict(model.head[-1].state_dict())  # type: ignore[index]
    classifier.save_pretrained(inputs.model_dir)


def bert_learning_rate(hidden_size: int) -> float:
    """Inverse to the squared width, as narrow models need larger steps, up to a limit."""
    return min(MAX_BERT_LEARNING_RATE, BERT_LEARNING_RATE * (768 / hidden_size) ** 2)


# --- the table -------------------------------------------------------------------------------------------------------


def _linear(record: LinearFamily) -> Family:
    return Family(partial(fit_linear, record), partial(restore_linear, record))


def _neural(record: NeuralFamily) -> Family:
    return Family(partial(fit_neural, record), partial(restore_neural, record))


FAMILIES: dict[EncoderFamily, Family] = {
    "bag_of_words": _linear(LinearFamily(load_bag_features, ("vocabulary", "weights"), standardize=False)),
    "word2vec": _linear(LinearFamily(load_vector_features, ("vectors",), standardize=True)),
    "recurrent": _neural(
        NeuralFamily(
            load=load_recurrent_encoder,
            states=recurrent_states,
            save=save_recurrent_model,
            poolings=("max", "last", "mean"),
            learning_rate=lambda hidden_size: RECURRENT_LEARNING_RATE,
            num_epochs=10,
        )
    ),
    "bert": _neural(
        NeuralFamily(
            load=load_bert_encoder,
            states=bert_states,
            save=save_bert_model,
            poolings=("cls", "mean", "max"),
            learning_rate=bert_learning_rate,
            num_epochs=8,
        )
    ),
}
