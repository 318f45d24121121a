"""From a rung to its encoder: one function per kind of encoder, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from components.artifacts import Artifact
from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows import stages
from flows.rungs import Rung
from flows.settings import with_fields
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


def _bag_of_words(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    settings = trainer.settings
    config = with_fields(
        settings.bag_of_words,
        "bag_of_words",
        weighting=rung.encoder,
        segmenter=settings.segmenter,
        num_train_examples=settings.num_train_examples,
        seed=seed,
    )
    tags = {"rung": rung.name, "seed": str(seed)}
    return _alone(stages.fit_bag_of_words(trainer.ladder, config, tags=tags, dataset=trainer.dataset))


def _word2vec(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    decided = {} if rung.sg is None else {"sg": rung.sg}
    config = with_fields(trainer.settings.word2vec, "word2vec", units="words", **decided)
    tags = {"rung": rung.name}
    return _alone(stages.train_word2vec(trainer.ladder, config, tags=tags, segmented=trainer.segmented))


def _recurrent(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    decided = {
        name: getattr(rung, name) for name in ("cell", "bidirectional", "objective") if getattr(rung, name) is not None
    }
    base = with_fields(trainer.settings.recurrent, "recurrent", **decided)
    tags = {"rung": rung.name}
    if base.objective == "none":
        # Without pretraining the encoder is its random initial weights, which belong to the seed.
        base, tags = with_fields(base, "recurrent", seed=seed), {**tags, "seed": str(seed)}
    vectors = None
    if rung.embeddings is not None:
        source = next(other for other in trainer.rungs if other.name == rung.embeddings)
        vectors = trainer.train(source, seed)
        size = trainer.settings.word2vec.vector_size
        base = with_fields(base, "recurrent", embedding_size=size)
    inputs = {"segmented": trainer.segmented, "embeddings": vectors.artifact if vectors else None}
    artifact = stages.train_recurrent(trainer.ladder, base, tags=tags, **inputs)
    return Encoder(artifact, (*(vectors.trained if vectors else ()), artifact))


def _bert(trainer: EncoderTrainer, rung: Rung, seed: int) -> Encoder:
    ladder, settings, tags = trainer.ladder, trainer.settings, {"rung": rung.name}
    decided = {name: getattr(rung, name) for name in ("size", "nsp") if getattr(rung, name) is not None}
    if rung.checkpoint is not None:
        decided["init_from"] = rung.checkpoint
    config = with_fields(settings.pretraining, "pretraining", **decided)
    tokenizer = stages.train_tokenizer(ladder, settings.tokenizer, corpus=trainer.corpus)
    inputs: dict[str, Artifact | None] = {"corpus": trainer.corpus, "tokenizer": tokenizer}
    trained = [tokenizer]
    if not rung.pretrained:
        config = type(config).model_validate(
            {**config.model_dump(), "num_train_steps": 0, "max_minutes": None, "seed": seed}
        )
        tags["seed"] = str(seed)
    elif settings.warm_start:
        vectors = _piece_vectors(trainer, tokenizer, config.model_sizes()["hidden_size"])
        inputs["embeddings"] = vectors
        trained.append(vectors)
    if config.masking == "whole_word" and rung.pretrained:
        inputs["segmented"] = trainer.segmented
    artifact = stages.pretrain_bert(ladder, config, tags=tags, **inputs)
    return Encoder(artifact, (*trained, artifact))


def _piece_vectors(trainer: EncoderTrainer, tokenizer: Artifact, hidden_size: int) -> Artifact:
    config = trainer.settings.word2vec.model_copy(
        update={"units": "pieces", "sg": 1, "vector_size": hidden_size, "min_count": 1}
    )
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
