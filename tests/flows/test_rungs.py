"""Rungs and the settings that a flow decides for its stages."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.errors import ConfigError
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows.encoders import _CONFIGS, EncoderSettings, check_encoders
from flows.rungs import Rung, check_rungs
from flows.settings import with_fields


def settings(**changed) -> EncoderSettings:
    sections = {
        "segmenter": SegmenterConfig(),
        "tokenizer": TokenizerConfig(),
        "bag_of_words": BagOfWordsConfig(),
        "word2vec": Word2VecConfig(),
        "recurrent": RecurrentConfig(),
        "pretraining": PretrainingConfig(),
        "num_train_examples": 500,
        "warm_start": True,
    }
    return EncoderSettings(**{**sections, **changed})


def config_of(rung: Rung, seed: int = 0, **changed):
    return _CONFIGS[rung.encoder](settings(**changed), rung, seed)


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
    check_encoders(settings(pretraining=six_heads), [Rung(name="b", encoder="bert", size="mini")], [0, 1])
    rung = Rung(name="b", encoder="bert", checkpoint="somewhere")
    with pytest.raises(ConfigError, match="init_from"):
        check_encoders(settings(pretraining=six_heads), [rung], [0])


def test_with_fields_refuses_a_value_that_would_be_ignored_and_accepts_the_same_one():
    assert with_fields(PretrainingConfig(seed=3), "pretraining", seed=3).seed == 3
    with pytest.raises(ConfigError, match=r"pretraining\.seed is 3"):
        with_fields(PretrainingConfig(seed=3), "pretraining", seed=4)
    assert with_fields(PretrainingConfig(), "pretraining", seed=4).seed == 4
