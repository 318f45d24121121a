"""What the settings of every data set stage share: where data comes from, and how it is split."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from components.contract import StageConfig
from components.datasets.packages import package_files
from components.formats import Split


class SourceConfig(StageConfig):
    """Files or hub data by split; what is missing is split off the training data."""

    source: Literal["package", "files", "hub"] = "package"
    """package: data shipped by an installed package; files: your own; hub: a data set id or folder for `datasets`."""

    train: str | None = None
    """Training file when source is files."""
    validation: str | None = None
    """Validation file; absent, validation data is split off the training file."""
    test: str | None = None
    """Test file; absent, test data is split off the training file."""
    encoding: str = "utf-8"
    """Character encoding of text files; decoded strictly."""

    hub_id: str | None = None
    """Data set id on the hub, or a local folder, when source is hub."""
    hub_config: str | None = None
    """Configuration (subset) of the hub data set."""
    revision: str | None = None
    """Commit or tag of the hub data set; required for an id, so that the same settings mean the same data."""
    train_split: str = "train"
    """Name of the hub split to train on."""
    validation_split: str | None = None
    """Name of the hub split for validation; absent, validation data is split off the training split."""
    test_split: str | None = None
    """Name of the hub split for testing; absent, test data is split off the training split."""

    test_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of distinct texts, documents or articles that go to test where no test data is given."""
    validation_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of distinct texts, documents or articles that go to validation where no validation data is given."""
    num_validation_examples: int | None = Field(default=None, ge=1)
    """At most this many validation examples, chosen by hash; the rest is dropped and counted."""
    num_test_examples: int | None = Field(default=None, ge=1)
    """At most this many test examples, chosen by hash; the rest is dropped and counted."""
    seed: int = Field(default=0, ge=0)
    """Seed of the splits."""

    @property
    def package_data(self) -> str:
        """Name of the packaged files that are read when source is package."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check_source(self) -> SourceConfig:
        if self.source == "files" and self.train is None:
            raise ValueError("source 'files' needs train: the path of the training file")
        if self.source == "hub" and self.hub_id is None:
            raise ValueError("source 'hub' needs hub_id: a data set id or a local folder")
        if self.test_fraction + self.validation_fraction >= 1.0:
            raise ValueError(
                f"test_fraction {self.test_fraction} + validation_fraction {self.validation_fraction} "
                "leave nothing for train; their sum must be below 1"
            )
        return self

    def split_files(self) -> dict[Split, Path]:
        """The given files by split."""
        given: dict[Split, str | None] = {"train": self.train, "validation": self.validation, "test": self.test}
        return {split: Path(path) for split, path in given.items() if path is not None}

    @property
    def limits(self) -> dict[Split, int | None]:
        """At most how many examples the splits hold that are not trained on."""
        return {"validation": self.num_validation_examples, "test": self.num_test_examples}

    def fractions(self, given: Collection[Split]) -> dict[str, float]:
        """``test_fraction`` and ``validation_fraction`` in force: 0 for splits that have data of their own."""
        return {
            "test_fraction": 0.0 if "test" in given else self.test_fraction,
            "validation_fraction": 0.0 if "validation" in given else self.validation_fraction,
        }

    def external_files(self) -> list[Path]:
        """Every file the stage reads, so that a changed file is another cache key."""
        if self.source == "package":
            return package_files(self.package_data)
        if self.source == "files":
            return list(self.split_files().values())
        folder = Path(self.hub_id or "")
        paths = sorted(folder.rglob("*")) if folder.is_dir() else []
        return [path for path in paths if path.is_file() and not _is_hidden(path.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
