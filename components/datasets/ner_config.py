"""Settings of the stage that prepares named-entity data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from components.contract import Strings
from components.datasets.source_config import SourceConfig
from components.text.conversion import ScriptConversion
from components.text.normalization import NormalizationConfig
from components.text.sentences import Language

TokenUnit = Literal["characters", "words"]


class NerDatasetConfig(SourceConfig):
    """Where tagged texts come from, how they are read, and how they become train, validation and test."""

    package: Literal["people_daily"] = "people_daily"
    """Package data to use when source is package."""
    language: Language = "zh"
    """Language of the texts; decides the tokens: characters for Chinese, words for English."""
    token_unit: TokenUnit | None = None
    """Tokens of texts whose entities are given as spans, and how columns are joined to a text: characters (joined
    without, words with a space); absent, what the language says."""

    train: str | None = None
    """Training file when source is files: columns (.txt, .conll, .bmes, .bio, .tsv ...) or .jsonl; each may be .gz."""
    format: Literal["auto", "conll", "jsonl"] = "auto"
    """Format of the files; auto goes by the ending."""
    max_text_chars: int = Field(default=100_000, ge=1)
    """Longest text accepted, in characters; a longer one usually means that the lines between sentences are missing."""

    separator: Literal["auto", "tab", "space"] = "auto"
    """What parts the columns: one tab, or a run of spaces; auto decides by the first token line of each file."""
    token_column: int = 0
    """Column of the token, from 0; negative counts from the last."""
    tag_column: int = -1
    """Column of the tag, from 0; negative counts from the last."""
    scheme: Literal["auto", "iob2", "iob1", "bioes", "bmes", "io"] = "auto"
    """Tag scheme of the files; auto detects it from each whole file and states it in dataset.json."""
    blank_separators: bool = True
    """Whether a line of spaces and tabs only parts sentences as an empty line does."""
    comment_prefix: str | None = Field(default=None, min_length=1)
    """Lines that begin with this are comments; absent, there are none, since # begins many a token of social media."""
    blank_tokens: Literal["keep", "refuse"] = "keep"
    """Whether a token without a visible character (a space, U+3000, zero-width ones) is kept and named, or refused."""

    text_column: str = "text"
    """Field of JSON rows with the text."""
    id_column: str | None = None
    """Field or column with unique ids; absent, the id is FILE:LINE."""
    document_column: str | None = None
    """Field or column that names the document of a row; rows of a document stay in one split."""
    span_mismatch: Literal["stop", "skip"] = "stop"
    """What to do with a row where a span lies outside the text or is not the given surface."""
    overlapping_entities: Literal["stop", "longest"] = "longest"
    """What to do with entities that share characters: tags hold only one; longest keeps the longest and counts."""

    tokens_column: str = "tokens"
    """Column of hub or JSON rows with the list of tokens."""
    tags_column: str = "ner_tags"
    """Column of hub or JSON rows with the list of tags, as names or ClassLabel indices."""

    opencc: ScriptConversion = "none"
    """Conversion of the texts between Traditional and Simplified Chinese: t2s, s2t or none."""
    labels: Strings | None = None
    """Allowed entity types; absent, the types of the training split are the allowed ones."""
    unseen_label: Literal["stop", "count_as_wrong"] = "stop"
    """What to do with a validation or test entity of a type that the training split lacks."""
    normalization: NormalizationConfig = NormalizationConfig()
    """Recipe that encoders apply; the texts here stay as they are, so that offsets mean the original."""

    @property
    def unit(self) -> TokenUnit:
        """The token unit that is in force."""
        return self.token_unit or ("characters" if self.language == "zh" else "words")

    @model_validator(mode="after")
    def _check_own_fields(self) -> NerDatasetConfig:
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or not self.labels):
            raise ValueError(f"labels {list(self.labels)} must be different names, at least one")
        return self

    @property
    def package_data(self) -> str:
        """As in ``SourceConfig``."""
        return self.package
