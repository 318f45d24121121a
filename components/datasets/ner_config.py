"""Settings of the stage that prepares named-entity data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig, Strings
from components.datasets.packages import package_files
from components.text.conversion import ScriptConversion
from components.text.normalization import NormalizationConfig
from components.text.sentences import Language

TokenUnit = Literal["characters", "words"]


class NerDatasetConfig(StageConfig):
    """Where tagged texts come from, how they are read, and how they become train, validation and test."""

    source: Literal["package", "files", "hub"] = "package"
    """package: data shipped by an installed package; files: your own; hub: a data set id or folder for `datasets`."""
    package: Literal["people_daily"] = "people_daily"
    """Package data to use when source is package."""
    language: Language = "zh"
    """Language of the texts; decides the tokens: characters for Chinese, words for English."""
    token_unit: TokenUnit | None = None
    """Tokens of texts whose entities are given as spans, and how columns are joined to a text: characters (joined
    without, words with a space); absent, what the language says."""

    train: str | None = None
    """Training file when source is files: columns (.txt, .conll, .bmes, .bio, .tsv ...) or .jsonl; each may be .gz."""
    validation: str | None = None
    """Validation file; absent, validation rows are split off the training file."""
    test: str | None = None
    """Test file; absent, test rows are split off the training file."""
    format: Literal["auto", "conll", "jsonl"] = "auto"
    """Format of the files; auto goes by the ending."""
    encoding: str = "utf-8"
    """Character encoding of the files; decoded strictly."""
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

    hub_id: str | None = None
    """Data set id on the hub, or a local folder, when source is hub."""
    hub_config: str | None = None
    """Configuration (subset) of the hub data set."""
    revision: str | None = None
    """Commit or tag of the hub data set; required for an id, so that the same settings mean the same data."""
    train_split: str = "train"
    """Name of the hub split to train on."""
    validation_split: str | None = None
    """Name of the hub split for validation; absent, validation rows are split off the training split."""
    test_split: str | None = None
    """Name of the hub split for testing; absent, test rows are split off the training split."""
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
    test_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of documents (or texts) that go to test where no test data is given."""
    validation_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of documents (or texts) that go to validation where no validation data is given."""
    num_validation_examples: int | None = Field(default=None, ge=1)
    """At most this many validation examples, chosen by hash; the rest is dropped and counted."""
    num_test_examples: int | None = Field(default=None, ge=1)
    """At most this many test examples, chosen by hash; the rest is dropped and counted."""
    seed: int = Field(default=0, ge=0)
    """Seed of the splits."""
    normalization: NormalizationConfig = NormalizationConfig()
    """Recipe that encoders apply; the texts here stay as they are, so that offsets mean the original."""

    @property
    def unit(self) -> TokenUnit:
        """The token unit that is in force."""
        return self.token_unit or ("characters" if self.language == "zh" else "words")

    @model_validator(mode="after")
    def _check_source(self) -> NerDatasetConfig:
        if self.source == "files" and self.train is None:
            raise ValueError("source 'files' needs train: the path of the training file")
        if self.source == "hub" and self.hub_id is None:
            raise ValueError("source 'hub' needs hub_id: a data set id or a local folder")
        if self.test_fraction + self.validation_fraction >= 1.0:
            raise ValueError(
                f"test_fraction {self.test_fraction} + validation_fraction {self.validation_fraction} "
                "leave nothing for train; their sum must be below 1"
            )
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or not self.labels):
            raise ValueError(f"labels {list(self.labels)} must be different names, at least one")
        return self

    def external_files(self) -> list[Path]:
        """Every file the stage reads, so that a changed file is another cache key."""
        if self.source == "package":
            return package_files(self.package)
        if self.source == "files":
            return [Path(path) for path in (self.train, self.validation, self.test) if path is not None]
        folder = Path(self.hub_id or "")
        paths = sorted(folder.rglob("*")) if folder.is_dir() else []
        hidden = {path for path in paths if any(part.startswith(".") for part in path.relative_to(folder).parts)}
        return [path for path in paths if path.is_file() and path not in hidden]
