"""Bag-of-words features: a text is the set of its words, each a dimension of its own.

One-hot presence is the textbook start: any two words are orthogonal, so nothing is similar to anything. TF-IDF weighs
a word by how often the text uses it and how few texts do (Spärck Jones 1972; Manning et al. 2008, section 6.2).
scikit-learn computes both; this module only writes its state as JSON and npz, without pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from components.errors import ArtifactError
from components.formats import read_encoder_card, read_json, write_encoder_card, write_json
from components.text.segmentation import load_segmenter

Weighting = Literal["one_hot", "tfidf"]
Analyzer = Literal["word", "char", "char_wb", "word_char"]
Units = Literal["words", "pieces"]


class Splitter(Protocol):
    """Whatever splits a text into the units that features are made of."""

    def segment(self, text: str) -> list[str]:
        """The units of a text, in order."""


class SavedSplitter(Splitter, Protocol):
    """A splitter that an artifact can carry: a ``Segmenter`` for words, a ``PieceSplitter`` for pieces."""

    def save(self, folder: Path) -> None:
        """Write the files from which it can be loaded again."""


class PieceSplitter:
    """Splits a normalised text into the pieces of a WordPiece tokenizer, special tokens left out."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        """A ``BertTokenizerFast``."""

    def segment(self, text: str) -> list[str]:
        """Pieces of a text, in order."""
        return list(self.tokenizer.tokenize(text))

    def save(self, folder: Path) -> None:
        """Write the tokenizer as a Hugging Face folder."""
        from components.encoders.wordpiece import save_wordpiece

        save_wordpiece(self.tokenizer, folder)


def load_piece_splitter(folder: Path) -> PieceSplitter:
    """The splitter of a tokenizer folder.

    Raises:
        InputError: The folder holds no usable tokenizer.
    """
    # Imported here: transformers costs a second that features of words need not pay.
    from components.encoders.wordpiece import load_wordpiece

    return PieceSplitter(load_wordpiece(folder))


@dataclass(frozen=True)
class FeatureSettings:
    """How a text becomes features; scikit-learn's own names where it has one."""

    weighting: Weighting
    analyzer: Analyzer
    ngram_range: tuple[int, int]
    char_ngram_range: tuple[int, int]
    sublinear_tf: bool
    lowercase: bool
    units: Units = "words"
    """What the analyzer "word" counts: words of a segmenter, or pieces of a tokenizer."""


def make_vectorizer(settings: FeatureSettings, segmenter: Splitter, **options: Any) -> TfidfVectorizer:
    """A scikit-learn vectorizer with these settings; the segmenter is its tokenizer for words, or pieces.

    scikit-learn's own token pattern drops words of one character and takes a Chinese clause for one word, hence an
    explicit tokenizer.

    Args:
        settings: How a text becomes features.
        segmenter: Splits a text into words or pieces.
        **options: Further arguments of ``TfidfVectorizer``: ``min_df``, ``max_features`` or ``vocabulary``.
    """
    weights: dict[str, Any] = {"sublinear_tf": settings.sublinear_tf}
    if settings.weighting == "one_hot":
        weights = {"binary": True, "use_idf": False, "norm": None}
    common = {"lowercase": settings.lowercase, "dtype": np.float32, **weights, **options}
    if settings.analyzer == "word_char":
        return TfidfVectorizer(analyzer=_word_char_analyzer(settings, segmenter), **common)
    if settings.analyzer == "word":
        words = {"tokenizer": segmenter.segment, "token_pattern": None, "ngram_range": settings.ngram_range}
        return TfidfVectorizer(analyzer="word", **words, **common)
    return TfidfVectorizer(analyzer=settings.analyzer, ngram_range=settings.char_ngram_range, **common)


def _word_char_analyzer(settings: FeatureSettings, segmenter: Splitter) -> Callable[[str], list[str]]:
    words = make_vectorizer(replace(settings, analyzer="word"), segmenter).build_analyzer()
    characters = make_vectorizer(replace(settings, analyzer="char"), segmenter).build_analyzer()

    def analyze(text: str) -> list[str]:
        return [*(f"word:{word}" for word in words(text)), *(f"char:{gram}" for gram in characters(text))]

    return analyze


@dataclass(frozen=True)
class BagOfWords:
    """A fitted vocabulary with its weights."""

    features: tuple[str, ...]
    """The F features; a feature's position is its column."""
    idf: NDArray[np.float32] | None
    """Inverse document frequencies, shape [F]; None for one-hot."""
    settings: FeatureSettings
    segmenter: SavedSplitter

    @property
    def num_parameters(self) -> int:
        """Learned numbers: the inverse document frequencies."""
        return 0 if self.idf is None else int(self.idf.size)

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """Features of N texts; a text without any known feature is a row of zeros.

        Returns:
            Sparse matrix of shape [N, F], float32.
        """
        columns = {feature: column for column, feature in enumerate(self.features)}
        vectorizer = make_vectorizer(self.settings, self.segmenter, vocabulary=columns)
        # scikit-learn wants a fit before it transforms; with a given vocabulary that learns only an idf, replaced here.
        vectorizer.fit([""])
        if self.idf is not None:
            vectorizer.idf_ = self.idf
        return csr_matrix(vectorizer.transform(texts), dtype=np.float32)


def save_bag_of_words(bag: BagOfWords, folder: Path) -> None:
    """Write ``vocabulary.json`` (features in column order), ``weights.npz`` (idf), the splitter and the card."""
    write_json(folder / "vocabulary.json", list(bag.features))
    if bag.idf is not None:
        np.savez(folder / "weights.npz", idf=bag.idf)
    bag.segmenter.save(folder)
    write_encoder_card(folder, "bag_of_words", num_features=len(bag.features), **asdict(bag.settings))


def load_bag_of_words(folder: Path) -> BagOfWords:
    """Read what ``save_bag_of_words`` wrote.

    Raises:
        ArtifactError: The folder holds another kind of encoder, or its parts do not fit together.
    """
    card = read_encoder_card(folder)
    if card["family"] != "bag_of_words":
        raise ArtifactError(f"{folder} holds a {card['family']} encoder, not bag_of_words")
    ranges = {name: tuple(card[name]) for name in ("ngram_range", "char_ngram_range")}
    known = {name: card[name] for name in FeatureSettings.__dataclass_fields__ if name in card}
    settings = FeatureSettings(**(known | ranges))
    features = tuple(read_json(folder / "vocabulary.json"))
    idf = _read_idf(folder / "weights.npz") if settings.weighting == "tfidf" else None
    if len(features) != card["num_features"] or (idf is not None and idf.shape != (len(features),)):
        raise ArtifactError(
            f"{folder}: {len(features)} features, weights of shape {None if idf is None else idf.shape}, "
            f"but {card['num_features']} in the card: damaged"
        )
    load_splitter = load_piece_splitter if settings.units == "pieces" else load_segmenter
    return BagOfWords(features, idf, settings, load_splitter(folder))


def _read_idf(path: Path) -> NDArray[np.float32]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays["idf"], dtype=np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(f"{path}: no readable weights ({error})") from error
