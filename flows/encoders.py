"""From a rung to its encoder: one function per kind of encoder, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.artifacts import Artifact
from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.contract import StageConfig
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows import stages
from flows.rungs import Rung
from flows.settings import overridden, with_fields
from flows.tracking import Ladder


@dataclass(frozen=True)
class EncoderSettings:
    """The sections of a ladder that encoders are trained from."""

    segmenter: SegmenterConfig
    tokenizer: TokenizerConfig
    bag_of_words: BagOfWordsConfig
    word2vec: Word2VecConfig
    recurrent: RecurrentConfig
    pretraining: PretrainingConfig
    num_train_examples: int | None
    warm_start: bool


@dataclass(frozen=True)
class Encoder:
    """A trained encoder and everything that was trained to get it, for the bill."""

    artifact: Artifact
    trained: tuple[Artifact, ...]

    @property
    def train_seconds(self) -> float:
        """Seconds of all stages that this encoder is the result of; shared data preparation is not among them."""
        return float(sum(artifact.details["seconds"] for artifact in self.trained))


@dataclass(frozen=True)
class EncoderTrainer:
    """Trains the encoders of one ladder."""

    ladder: Ladder
    settings: EncoderSettings
    rungs: tuple[Rung, ...]
    corpus: Artifact
    dataset: Artifact

    def train(self, rung: Rung, seed: int) -> Encoder:
        """The encoder of a rung for one seed. Pretrained encoders are trained once and serve every seed."""
        return _TRAINERS[rung.encoder](self, rung, seed)

    @property
    def segmented(self) -> Artifact:
        """The corpus as words."""
        return stages.segment_corpus(self.ladder, self.settings.segmenter, corpus=self.corpus)


def check_encoders(settings: EncoderSettings, rungs: list[Rung], seeds: list[int]) -> None:
    """Build every encoder's configuration once, so that a wrong combination is refused before any training.

    Raises:
        ConfigError: Settings and rungs contradict each other, or a combination is impossible.
    """
    for rung in rungs:
        for seed in seeds:
            _CONFIGS[rung.encoder](settings, rung, seed)


def _given(rung: Rung, **names: str) -> dict[str, Any]:
    """The rung's own values for fields of a section: section field -> rung field, left out where the rung is silent."""
    values = {field: getattr(rung, name) for field, name in names.items()}
    return {field: value for field, value in values.items() if value is not None}


def _bag_of_words_config(settings: EncoderSettings, rung: Rung, seed: int) -> BagOfWordsConfig:
    decided = {"weighting": rung.encoder, "seed": seed, "num_train_examples": settings.num_train_examples}
    config = overridden(settings.bag_of_words, _given(rung, analyzer="analyzer"))
    return with_fields(config, "bag_of_words", segmenter=settings.segmenter, **decided)


def _bag_of_words(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _bag_of_words_config(trainer.settings, rung, seed)
    tags = {"rung": rung.name, "seed": str(seed)}
    return _alone(stages.fit_bag_of_words(trainer.ladder, config, tags=tags, dataset=trainer.dataset))


def _word2vec_config(settings: EncoderSettings, rung: Rung, seed: int) -> Word2VecConfig:
    config = overridden(settings.word2vec, _given(rung, sg="sg", epochs="epochs"))
    return with_fields(config, "word2vec", units="words")


def _word2vec(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _word2vec_config(trainer.settings, rung, seed)
    tags = {"rung": rung.name}
    return _alone(stages.train_word2vec(trainer.ladder, config, tags=tags, segmented=trainer.segmented))


def _recurrent_config(settings: EncoderSettings, rung: Rung, seed: int) -> RecurrentConfig:
    own = _given(rung, cell="cell", bidirectional="bidirectional", objective="objective")
    config = overridden(settings.recurrent, own)
    if rung.embeddings is not None:
        config = with_fields(config, "recurrent", embedding_size=settings.word2vec.vector_size)
    # Without pretraining the encoder is its random initial weights, which belong to the seed.
    return with_fields(config, "recurrent", seed=seed) if config.objective == "none" else config


def _recurrent(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _recurrent_config(trainer.settings, rung, seed)
    tags = {"rung": rung.name, **({"seed": str(seed)} if config.objective == "none" else {})}
    vectors: Encoder | None = None
    if rung.embeddings is not None:
        vectors = trainer.train(next(other for other in trainer.rungs if other.name == rung.embeddings), seed)
    inputs = {"segmented": trainer.segmented, "embeddings": vectors.artifact if vectors else None}
    artifact = stages.train_recurrent(trainer.ladder, config, tags=tags, **inputs)
    return Encoder(artifact, (*(vectors.trained if vectors else ()), artifact))


def _bert_config(settings: EncoderSettings, rung: Rung, seed: int) -> PretrainingConfig:
    config = overridden(settings.pretraining, _given(rung, size="size", nsp="nsp", init_from="checkpoint"))
    if rung.pretrained:
        return config
    control = {"num_train_steps": 0, "max_minutes": None, "seed": seed}
    return overridden(config, control)


def _bert(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config, ladder = _bert_config(trainer.settings, rung, seed), trainer.ladder
    tags = {"rung": rung.name, **({} if rung.pretrained else {"seed": str(seed)})}
    tokenizer = stages.train_tokenizer(ladder, trainer.settings.tokenizer, corpus=trainer.corpus)
    inputs: dict[str, Artifact | None] = {"corpus": trainer.corpus, "tokenizer": tokenizer}
    trained = [tokenizer]
    if rung.pretrained and trainer.settings.warm_start:
        vectors = _piece_vectors(trainer, tokenizer, config.model_sizes()["hidden_size"])
        inputs["embeddings"] = vectors
        trained.append(vectors)
    if rung.pretrained and config.masking == "whole_word":
        inputs["segmented"] = trainer.segmented
    artifact = stages.pretrain_bert(ladder, config, tags=tags, **inputs)
    return Encoder(artifact, (*trained, artifact))


def _piece_vectors(trainer: EncoderTrainer, tokenizer: Artifact, hidden_size: int) -> Artifact:
    decided = {"units": "pieces", "sg": 1, "vector_size": hidden_size, "min_count": 1}
    config = overridden(trainer.settings.word2vec, decided)
    tags = {"units": "pieces"}
    return stages.train_word2vec(trainer.ladder, config, tags=tags, corpus=trainer.corpus, tokenizer=tokenizer)


def _alone(artifact: Artifact) -> Encoder:
    return Encoder(artifact, (artifact,))


_TRAINERS: dict[str, Callable[[EncoderTrainer, Rung, int], Encoder]] = {
    "one_hot": _bag_of_words,
    "tfidf": _bag_of_words,
    "word2vec": _word2vec,
    "recurrent": _recurrent,
    "bert": _bert,
}


_CONFIGS: dict[str, Callable[[EncoderSettings, Rung, int], StageConfig]] = {
    "one_hot": _bag_of_words_config,
    "tfidf": _bag_of_words_config,
    "word2vec": _word2vec_config,
    "recurrent": _recurrent_config,
    "bert": _bert_config,
}
