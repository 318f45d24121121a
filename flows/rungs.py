"""A rung: one way to represent text, as one line of ``pipelines.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.errors import ConfigError

_FIELDS_OF = {
    "one_hot": {"analyzer"},
    "tfidf": {"analyzer"},
    "word2vec": {"sg", "epochs"},
    "recurrent": {"cell", "bidirectional", "embeddings", "objective", "pooling", "crf"},
    "bert": {"pretrained", "nsp", "size", "checkpoint", "num_train_steps", "pooling"},
}


class Rung(StageConfig):
    """A rung of the ladder. Fields left out keep the value of the encoder's own section."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Name in leaderboard, MLflow and predictions."""
    encoder: Literal["one_hot", "tfidf", "word2vec", "recurrent", "bert"]
    """Which kind of encoder represents the text."""
    analyzer: Literal["word", "char", "char_wb", "word_char"] | None = None
    """One-hot and TF-IDF only: words, character n-grams, or both as features."""
    sg: Literal[0, 1] | None = None
    """Word2Vec only: 0 for CBOW, 1 for skip-gram."""
    epochs: int | None = Field(default=None, ge=1)
    """Word2Vec only: passes over the corpus."""
    cell: Literal["rnn", "lstm", "gru"] | None = None
    """Recurrent only: the kind of cell."""
    bidirectional: bool | None = None
    """Recurrent only: read the text in both directions."""
    embeddings: str | None = None
    """Recurrent only: name of the word2vec rung whose vectors the embedding layer starts from."""
    objective: Literal["none", "language_model"] | None = None
    """Recurrent only: language_model pretrains the encoder on the corpus."""
    crf: bool | None = None
    """Recurrent only: a conditional random field over the tags of NER."""
    pretrained: bool = True
    """BERT only: false keeps the random initial weights, the control for what pretraining adds."""
    nsp: bool | None = None
    """BERT only: whether next-sentence prediction is part of pretraining."""
    size: Literal["tiny", "mini", "small", "base", "large"] | None = None
    """BERT only: size preset, in place of the one in the pretraining section."""
    checkpoint: str | None = None
    """BERT only: continue from a local folder or a hub model instead of from scratch."""
    num_train_steps: int | None = Field(default=None, ge=0)
    """BERT only: pretraining steps, in place of the pretraining section's; 0 takes a checkpoint as it is."""
    pooling: Literal["auto", "cls", "mean", "last", "max"] | None = None
    """Recurrent and BERT: how token states become one vector for classification, in place of its section's."""

    @model_validator(mode="after")
    def _fields_fit_encoder(self) -> Rung:
        optional = set().union(*_FIELDS_OF.values())
        wrong = sorted((self.model_fields_set & optional) - _FIELDS_OF[self.encoder])
        if wrong:
            allowed = sorted(_FIELDS_OF[self.encoder]) or "none"
            raise ValueError(
                f"rung {self.name}: {', '.join(wrong)} means nothing for {self.encoder}; it takes {allowed}"
            )
        return self


def check_rungs(rungs: list[Rung], seeds: list[int]) -> None:
    """Refuse a ladder whose rungs repeat a name or refer to vectors that no rung trains, or whose seeds repeat.

    Raises:
        ConfigError: With the name and what would fit.
    """
    names = [rung.name for rung in rungs]
    if not names:
        raise ConfigError("rungs is empty: name at least one")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"rung names {repeated} appear twice: every rung needs its own")
    if len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds {seeds} repeat: a repeated seed adds no evidence")
    vectors = [rung.name for rung in rungs if rung.encoder == "word2vec"]
    for rung in rungs:
        if rung.embeddings is not None and rung.embeddings not in vectors:
            raise ConfigError(
                f"rung {rung.name}: embeddings {rung.embeddings!r} is no word2vec rung here; there are {vectors}"
            )
