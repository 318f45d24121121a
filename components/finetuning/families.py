"""The families of encoders that can be fine-tuned, and what each can learn, in one table.

Everything that differs between families is in their records; the stage and the prediction code never ask which family
they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.static import load_word_vectors
from components.errors import ConfigError
from components.finetuning.config import ClassificationConfig, NerConfig, QuestionAnsweringConfig
from components.finetuning.encoders import load_bert_encoder, load_recurrent_encoder, load_vector_encoder
from components.finetuning.fitting import Family, Learner
from components.finetuning.linear import LinearFamily, fit_linear, restore_linear
from components.finetuning.linear_spans import fit_spans, restore_spans
from components.finetuning.linear_tokens import fit_tokens, restore_tokens
from components.finetuning.neural import NeuralFamily, NeuralLearner, fit_neural, restore_neural
from components.finetuning.saving import (
    copy_encoder,
    save_bert_classifier,
    save_bert_reader,
    save_bert_tagger,
    save_recurrent_model,
)
from components.finetuning.span_reader import make_attentive_reader, make_joint_reader
from components.finetuning.tag_reader import make_tag_reader
from components.finetuning.text_reader import make_text_reader
from components.formats import EncoderFamily

READER_LEARNING_RATE = 5e-3
"""For everything that starts from fresh weights: recurrent encoders and the readers over word vectors."""
BERT_LEARNING_RATE = 2e-5
"""At width 768; Devlin et al. (2019, appendix A.3) search 2e-5 to 5e-5."""
MAX_BERT_LEARNING_RATE = 1e-3
"""Models narrower than those of Turc et al. (2019), whose largest rate is 3e-4, still learn above it."""

HEAD_FACTOR = 4.0
"""Fresh weights may move further than pretrained ones (discriminative rates; Howard & Ruder 2018, section 3.2)."""


def load_bag_features(folder: Path) -> tuple[Callable[[Sequence[str]], Any], int]:
    """Transform and number of parameters of a bag of words."""
    bag = load_bag_of_words(folder)
    return bag.transform, bag.num_parameters


def load_vector_features(folder: Path) -> tuple[Callable[[Sequence[str]], Any], int]:
    """Transform (mean of a text's word vectors) and number of parameters of word vectors."""
    vectors = load_word_vectors(folder)
    return vectors.transform, vectors.num_parameters


def bert_learning_rate(hidden_size: int) -> float:
    """Inverse to the squared width, as narrow models need larger steps, up to a limit."""
    return min(MAX_BERT_LEARNING_RATE, BERT_LEARNING_RATE * (768 / hidden_size) ** 2)


# --- what a reader is rebuilt with -----------------------------------------------------------------------------------


def text_settings(family: NeuralFamily, config: ClassificationConfig) -> dict[str, Any]:
    """Facts of a text reader.

    Raises:
        ConfigError: The family has no such pooling.
    """
    pooling = family.poolings[0] if config.pooling == "auto" else config.pooling
    if pooling not in family.poolings:
        raise ConfigError(f"pooling {pooling!r} is not one of this encoder's: auto, {', '.join(family.poolings)}")
    return {"pooling": pooling, "max_seq_length": config.max_seq_length}


def tag_settings(family: NeuralFamily, config: NerConfig) -> dict[str, Any]:
    """Facts of a reader without a CRF.

    Raises:
        ConfigError: A CRF is asked for.
    """
    if config.crf:
        raise ConfigError("crf: true goes with recurrent encoders only: set crf: false")
    return tag_settings_with_crf(family, config)


def tag_settings_with_crf(family: NeuralFamily, config: NerConfig) -> dict[str, Any]:
    """Facts of a reader that may have a CRF."""
    return {"crf": config.crf, "max_seq_length": config.max_seq_length, "window_overlap": config.overlap}


def span_settings(family: NeuralFamily, config: QuestionAnsweringConfig) -> dict[str, Any]:
    """Facts of a reader of questions and passages."""
    return {
        "max_seq_length": config.max_seq_length,
        "max_question_length": config.question_limit,
        "doc_stride": config.overlap,
    }


# --- the table -------------------------------------------------------------------------------------------------------


def _linear(record: LinearFamily) -> Learner:
    return Learner(partial(fit_linear, record), partial(restore_linear, record))


def _neural(family: NeuralFamily, settings: Any, make_reader: Any, save: Any) -> Learner:
    record = NeuralLearner(family, settings, make_reader, save)
    return Learner(partial(fit_neural, record), partial(restore_neural, record))


VECTORS = NeuralFamily(load_vector_encoder, (), lambda hidden_size: READER_LEARNING_RATE, num_epochs=10)
RECURRENT = NeuralFamily(
    load_recurrent_encoder, ("max", "last", "mean"), lambda hidden_size: READER_LEARNING_RATE, num_epochs=10
)
BERT = NeuralFamily(
    load_bert_encoder, ("cls", "mean", "max"), bert_learning_rate, num_epochs=8, head_factor=HEAD_FACTOR
)

FAMILIES: dict[EncoderFamily, Family] = {
    "bag_of_words": Family(
        {
            "classification": _linear(LinearFamily(load_bag_features, ("vocabulary", "weights"), standardize=False)),
            "ner": Learner(fit_tokens, restore_tokens),
            "question_answering": Learner(fit_spans, restore_spans),
        }
    ),
    "word2vec": Family(
        {
            "classification": _linear(LinearFamily(load_vector_features, ("vectors",), standardize=True)),
            "ner": _neural(VECTORS, tag_settings, make_tag_reader, copy_encoder),
            "question_answering": _neural(VECTORS, span_settings, make_attentive_reader, copy_encoder),
        }
    ),
    "recurrent": Family(
        {
            "classification": _neural(RECURRENT, text_settings, make_text_reader, save_recurrent_model),
            "ner": _neural(RECURRENT, tag_settings_with_crf, make_tag_reader, save_recurrent_model),
            "question_answering": _neural(RECURRENT, span_settings, make_attentive_reader, save_recurrent_model),
        }
    ),
    "bert": Family(
        {
            "classification": _neural(BERT, text_settings, make_text_reader, save_bert_classifier),
            "ner": _neural(BERT, tag_settings, make_tag_reader, save_bert_tagger),
            "question_answering": _neural(BERT, span_settings, make_joint_reader, save_bert_reader),
        }
    ),
}
