"""Rungs and the settings that a flow decides for its stages."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.datasets.config import DatasetConfig
from components.datasets.ner_config import NerDatasetConfig
from components.errors import ConfigError
from components.finetuning.config import ClassificationConfig, NerConfig
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows.encoders import _CONFIGS, EncoderSettings, Reading, check_encoders
from flows.rungs import Rung, check_rungs
from flows.settings import with_fields
from flows.tasks import ClassificationSection, NerSection, QuestionAnsweringSection, TaskRun, chosen_tasks


def settings(**changed) -> EncoderSettings:
    sections = {
        "segmenter": SegmenterConfig(),
        "tokenizer": TokenizerConfig(),
        "bag_of_words": BagOfWordsConfig(),
        "word2vec": Word2VecConfig(),
        "recurrent": RecurrentConfig(),
        "pretraining": PretrainingConfig(),
        "warm_start": True,
    }
    return EncoderSettings(**{**sections, **changed})


WORDS = Reading("classification", "words", 500)
PIECES = Reading("ner", "pieces", 300)


def config_of(rung: Rung, seed: int = 0, reading: Reading = WORDS, **changed):
    return _CONFIGS[rung.encoder](settings(**changed), rung, seed, reading)


def test_a_rung_overrides_its_section_and_keeps_the_rest():
    rung = Rung(name="cbow", encoder="word2vec", sg=0, epochs=10)
    config = config_of(rung, word2vec=Word2VecConfig(epochs=5, vector_size=37))
    assert (config.sg, config.epochs, config.vector_size, config.units) == (0, 10, 37, "words")


def test_every_rung_of_a_seed_gets_the_same_budget_and_seed():
    config = config_of(Rung(name="t", encoder="tfidf"), seed=7)
    assert (config.weighting, config.num_train_examples, config.seed) == ("tfidf", 500, 7)


def test_random_encoders_follow_the_seed_and_pretrained_ones_do_not():
    assert config_of(Rung(name="l", encoder="recurrent"), seed=5).seed == 5
    assert config_of(Rung(name="l", encoder="recurrent", objective="language_model"), seed=5).seed == 0
    control = config_of(Rung(name="b", encoder="bert", pretrained=False), seed=5)
    assert (control.seed, control.num_train_steps, control.max_minutes) == (5, 0, None)
    assert config_of(Rung(name="b", encoder="bert"), seed=5).seed == 0


def test_vectors_decide_the_embedding_size():
    rung = Rung(name="l", encoder="recurrent", embeddings="sg")
    assert config_of(rung, word2vec=Word2VecConfig(vector_size=37)).embedding_size == 37
    with pytest.raises(ConfigError, match=r"recurrent\.embedding_size is 50.*37.*remove"):
        config_of(rung, word2vec=Word2VecConfig(vector_size=37), recurrent=RecurrentConfig(embedding_size=50))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoder": "tfidf", "sg": 1}, "sg means nothing for tfidf"),
        ({"encoder": "bert", "cell": "lstm"}, "cell means nothing for bert"),
        ({"encoder": "recurrent", "pretrained": False}, "pretrained means nothing for recurrent"),
        ({"encoder": "transformer"}, "encoder"),
        ({"encoder": "bert", "name": "Bert 1"}, "name"),
    ],
)
def test_a_field_that_means_nothing_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Rung(**{"name": "x", **fields})


@pytest.mark.parametrize(
    ("rungs", "seeds", "message"),
    [
        ([], [0], "rungs is empty"),
        ([Rung(name="a", encoder="tfidf"), Rung(name="a", encoder="one_hot")], [0], "appear twice"),
        ([Rung(name="l", encoder="recurrent", embeddings="nothing")], [0], "no word2vec rung"),
        ([Rung(name="a", encoder="tfidf")], [1, 1], "seeds"),
    ],
)
def test_a_ladder_that_cannot_work_is_refused(rungs, seeds, message):
    with pytest.raises(ConfigError, match=message):
        check_rungs(rungs, seeds)


def test_wrong_sizes_are_found_before_any_stage_runs():
    six_heads = PretrainingConfig(num_attention_heads=6, hidden_size=192)
    check_encoders(settings(pretraining=six_heads), [Rung(name="b", encoder="bert", size="mini")], [0, 1], [WORDS])
    rung = Rung(name="b", encoder="bert", checkpoint="somewhere")
    with pytest.raises(ConfigError, match="init_from"):
        check_encoders(settings(pretraining=six_heads), [rung], [0], [WORDS])


def test_an_off_the_shelf_checkpoint_is_one_more_rung():
    rung = Rung(name="minilm", encoder="bert", checkpoint="some/folder", num_train_steps=0)
    config = config_of(rung, pretraining=PretrainingConfig(size="tiny", num_train_steps=500))
    assert (config.init_from, config.num_train_steps) == ("some/folder", 0)


def test_token_tasks_read_pieces_on_every_rung_and_sentence_tasks_words():
    for rung in (
        Rung(name="t", encoder="tfidf", analyzer="char"),
        Rung(name="w", encoder="word2vec"),
        Rung(name="l", encoder="recurrent"),
    ):
        assert config_of(rung).units == "words"
        assert config_of(rung, reading=PIECES).units == "pieces"
    assert config_of(Rung(name="t", encoder="tfidf"), reading=PIECES).num_train_examples == 300


def test_a_word2vec_rung_on_pieces_shares_the_vectors_that_warm_start_bert():
    skipgram = config_of(
        Rung(name="w", encoder="word2vec", sg=1), reading=PIECES, word2vec=Word2VecConfig(vector_size=128)
    )
    assert (skipgram.units, skipgram.min_count, skipgram.sg, skipgram.vector_size) == ("pieces", 1, 1, 128)


def test_a_task_takes_from_a_rung_only_what_it_understands():
    task = TaskRun("ner", NerDatasetConfig(), NerConfig())
    assert task.finetuning_for(Rung(name="l", encoder="recurrent", crf=True, pooling="mean"), 3).crf
    assert task.finetuning_for(Rung(name="l", encoder="recurrent"), 3).seed == 3
    classification = TaskRun("classification", DatasetConfig(), ClassificationConfig())
    assert (
        classification.finetuning_for(Rung(name="l", encoder="recurrent", crf=True, pooling="mean"), 0).pooling
        == "mean"
    )


def test_tasks_hear_the_language_and_what_their_data_let_pass():
    sections = {
        "classification": ClassificationSection(dataset=DatasetConfig(unseen_label="count_as_wrong")),
        "ner": NerSection(),
        "question_answering": QuestionAnsweringSection(),
    }
    classification, tagger, reader = chosen_tasks(["classification", "ner", "question_answering"], sections, "en")
    assert classification.finetuning.unseen_label == "count_as_wrong"
    assert (tagger.dataset.language, reader.finetuning.language) == ("en", "en")
    with pytest.raises(ConfigError, match="repeat"):
        chosen_tasks(["ner", "ner"], sections, "zh")


def test_with_fields_refuses_a_value_that_would_be_ignored_and_accepts_the_same_one():
    assert with_fields(PretrainingConfig(seed=3), "pretraining", seed=3).seed == 3
    with pytest.raises(ConfigError, match=r"pretraining\.seed is 3"):
        with_fields(PretrainingConfig(seed=3), "pretraining", seed=4)
    assert with_fields(PretrainingConfig(), "pretraining", seed=4).seed == 4
