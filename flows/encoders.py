"""From a rung to its encoder: one function per kind of encoder, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from components.artifacts import Artifact
from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.contract import StageConfig
from components.examples import TaskName
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows import stages
from flows.rungs import Rung
from flows.settings import overridden, with_fields
from flows.tracking import Ladder

Units = Literal["words", "pieces"]


@dataclass(frozen=True)
class EncoderSettings:
    """The sections of a ladder that encoders are trained from."""

    segmenter: SegmenterConfig
    tokenizer: TokenizerConfig
    bag_of_words: BagOfWordsConfig
    word2vec: Word2VecConfig
    recurrent: RecurrentConfig
    pretraining: PretrainingConfig
    warm_start: bool


@dataclass(frozen=True)
class Reading:
    """What a task asks of an encoder."""

    task: TaskName
    units: Units
    num_train_examples: int | None
    labels: int | None = None
    """The same number at a point of the label curve."""


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
    """Trains the encoders of one ladder for one task."""

    ladder: Ladder
    settings: EncoderSettings
    rungs: tuple[Rung, ...]
    corpus: Artifact
    dataset: Artifact
    reading: Reading

    def train(self, rung: Rung, seed: int) -> Encoder:
        """The encoder of a rung for one seed. Pretrained encoders are trained once and serve every seed."""
        return _TRAINERS[rung.encoder](self, rung, seed)

    @property
    def segmented(self) -> Artifact:
        """The corpus as words."""
        return stages.segment_corpus(self.ladder, self.settings.segmenter, corpus=self.corpus)

    @property
    def tokenizer(self) -> Artifact:
        """The WordPiece vocabulary of the corpus."""
        return stages.train_tokenizer(self.ladder, self.settings.tokenizer, corpus=self.corpus)

    def units_of(self, *names: str) -> dict[str, Artifact | None]:
        """The inputs that a stage reads its units from: ``names`` for words, the tokenizer for pieces."""
        if self.reading.units == "pieces":
            return {"tokenizer": self.tokenizer}
        return {name: getattr(self, name) for name in names}

    def tags(self, rung: Rung, **more: str) -> dict[str, str]:
        """What tells an encoder of this rung from its siblings."""
        units = {} if self.reading.units == "words" else {"units": self.reading.units}
        return {"rung": rung.name, **units, **more}


def check_encoders(settings: EncoderSettings, rungs: list[Rung], seeds: list[int], readings: list[Reading]) -> None:
    """Build every encoder's configuration once, so that a wrong combination is refused before any training.

    Raises:
        ConfigError: Settings and rungs contradict each other, or a combination is impossible.
    """
    for rung in rungs:
        for seed in seeds:
            for reading in readings:
                _CONFIGS[rung.encoder](settings, rung, seed, reading)


def _given(rung: Rung, **names: str) -> dict[str, Any]:
    """The rung's own values for fields of a section: section field -> rung field, left out where the rung is silent."""
    values = {field: getattr(rung, name) for field, name in names.items()}
    return {field: value for field, value in values.items() if value is not None}


def _bag_of_words_config(settings: EncoderSettings, rung: Rung, seed: int, reading: Reading) -> BagOfWordsConfig:
    config = overridden(settings.bag_of_words, _given(rung, analyzer="analyzer"))
    if reading.units == "pieces":
        # Pieces have no words to analyse: the analyzer and its n-grams belong to the classification of texts.
        fields = {"max_features", "min_count"} & config.model_fields_set
        config = BagOfWordsConfig(**{name: getattr(config, name) for name in fields})
    decided = {"weighting": rung.encoder, "seed": seed, "num_train_examples": reading.num_train_examples}
    return with_fields(config, "bag_of_words", segmenter=settings.segmenter, units=reading.units, **decided)


def _bag_of_words(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _bag_of_words_config(trainer.settings, rung, seed, trainer.reading)
    tags = {"task": trainer.reading.task, "rung": rung.name, "seed": str(seed)}
    if trainer.reading.labels is not None:
        tags["labels"] = str(trainer.reading.labels)
    inputs = {"dataset": trainer.dataset, **trainer.units_of()}
    return _alone(stages.fit_bag_of_words(trainer.ladder, config, tags=tags, **inputs))


def _word2vec_config(settings: EncoderSettings, rung: Rung, seed: int, reading: Reading) -> Word2VecConfig:
    config = overridden(settings.word2vec, _given(rung, sg="sg", epochs="epochs"))
    if reading.units == "pieces":
        # Every piece of the tokenizer needs a vector, however rare.
        return overridden(config, {"units": "pieces", "min_count": 1})
    return with_fields(config, "word2vec", units="words")


def _word2vec(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _word2vec_config(trainer.settings, rung, seed, trainer.reading)
    inputs = trainer.units_of("segmented")
    if trainer.reading.units == "pieces":
        inputs["corpus"] = trainer.corpus
    return _alone(stages.train_word2vec(trainer.ladder, config, tags=trainer.tags(rung), **inputs))


def _recurrent_config(settings: EncoderSettings, rung: Rung, seed: int, reading: Reading) -> RecurrentConfig:
    own = _given(rung, cell="cell", bidirectional="bidirectional", objective="objective")
    config = with_fields(overridden(settings.recurrent, own), "recurrent", units=reading.units)
    if rung.embeddings is not None:
        config = with_fields(config, "recurrent", embedding_size=settings.word2vec.vector_size)
    # Without pretraining the encoder is its random initial weights, which belong to the seed.
    return with_fields(config, "recurrent", seed=seed) if config.objective == "none" else config


def _recurrent(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config = _recurrent_config(trainer.settings, rung, seed, trainer.reading)
    tags = trainer.tags(rung, **({"seed": str(seed)} if config.objective == "none" else {}))
    inputs = trainer.units_of("segmented")
    if trainer.reading.units == "pieces" and config.objective != "none":
        inputs["corpus"] = trainer.corpus
    vectors: Encoder | None = None
    if rung.embeddings is not None:
        vectors = trainer.train(next(other for other in trainer.rungs if other.name == rung.embeddings), seed)
        inputs["embeddings"] = vectors.artifact
    artifact = stages.train_recurrent(trainer.ladder, config, tags=tags, **inputs)
    return Encoder(artifact, (*(vectors.trained if vectors else ()), artifact))


def _bert_config(settings: EncoderSettings, rung: Rung, seed: int, reading: Reading) -> PretrainingConfig:
    fields = {"size": "size", "nsp": "nsp", "num_train_steps": "num_train_steps", "init_from": "checkpoint"}
    config = overridden(settings.pretraining, _given(rung, **fields))
    if rung.pretrained:
        return config
    control = {"num_train_steps": 0, "max_minutes": None, "seed": seed}
    return overridden(config, control)


def _bert(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    config, ladder = _bert_config(trainer.settings, rung, seed, trainer.reading), trainer.ladder
    tags = {"rung": rung.name, **({} if rung.pretrained else {"seed": str(seed)})}
    tokenizer = trainer.tokenizer
    inputs: dict[str, Artifact | None] = {"corpus": trainer.corpus, "tokenizer": tokenizer}
    trained = [tokenizer]
    # A checkpoint brings its own tokenizer and embeddings.
    if rung.pretrained and trainer.settings.warm_start and rung.checkpoint is None:
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


_CONFIGS: dict[str, Callable[[EncoderSettings, Rung, int, Reading], StageConfig]] = {
    "one_hot": _bag_of_words_config,
    "tfidf": _bag_of_words_config,
    "word2vec": _word2vec_config,
    "recurrent": _recurrent_config,
    "bert": _bert_config,
}
