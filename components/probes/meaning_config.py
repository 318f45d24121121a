"""Settings of the probes of meaning: similarity of words, and one word with two senses."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from components.contract import StageConfig, Strings
from components.text.sentences import Language


class SimilarityProbeConfig(StageConfig):
    """Which words are compared; the lists that ship are small and own-written, public sets are given by path."""

    language: Language = "zh"
    """Language of the lists that ship, and of the text in tables and pictures."""
    shipped_lists: bool = True
    """Use the lists that ship, besides the files named below."""
    word_pairs: Strings = ()
    """Files of word pairs with a similarity judged by people: word, word, score a line, separated by tabs."""
    analogies: Strings = ()
    """Files of analogies in word2vec's format: ': section' lines, else four words a line, a is to b as c to d."""
    triples: Strings = ()
    """Files of triples: anchor, nearer word, farther word a line, separated by tabs."""
    neighbour_words: Strings = ()
    """Words whose nearest neighbours are shown; none: the first anchors of the triples."""
    num_neighbours: int = Field(8, ge=1, le=100)
    """Neighbours shown per word."""
    layer: int = Field(0, ge=-100, le=100)
    """The layer behind the headline numbers, named beforehand so that the best one is not picked afterwards: 0 is the
    word's own vector before any context, -1 the last."""
    batch_size: int = Field(64, ge=1, le=4096)
    """Texts a forward pass."""

    def external_files(self) -> list[Path]:
        """The word lists given by path."""
        return [Path(name) for name in (*self.word_pairs, *self.analogies, *self.triples)]


class SenseProbeConfig(StageConfig):
    """Which ambiguous words in context are told apart."""

    language: Language = "zh"
    """Language of the list that ships and of the text in tables and pictures; English tokens are joined by spaces."""
    shipped_lists: bool = True
    """Use the list that ships, besides the files named below."""
    contexts: Strings = ()
    """Files of words in context: JSON lines {"word", "sense", "tokens", "index"}, or a table with the columns word,
    sense, text and, where the word is not in the text exactly once, index (which token of the text)."""
    max_contexts: int = Field(200, ge=3, le=100_000)
    """Most contexts per word and sense; further ones in the order of the file are left out and counted."""
    layer: int = Field(-1, ge=-100, le=100)
    """The layer behind the headline numbers, named beforehand so that the best one is not picked afterwards: 0 is the
    word's own vector before any context, -1 the last."""
    picture_words: Strings = ()
    """Words whose contexts are drawn; none: the first four."""
    num_resamples: int = Field(2000, ge=100, le=1_000_000)
    """Bootstrap resamples behind each interval."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of the resampling."""
    batch_size: int = Field(64, ge=1, le=4096)
    """Texts a forward pass."""

    def external_files(self) -> list[Path]:
        """The contexts given by path."""
        return [Path(name) for name in self.contexts]
