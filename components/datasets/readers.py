"""Readers of local files: CSV, TSV, JSON lines and Parquet, with the line of everything they refuse."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.datasets.encodings import read_text
from components.datasets.rows import Columns, Row, Rows, check_length, require_columns
from components.errors import InputError


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file of labelled text; see ``DatasetConfig`` for the fields."""

    columns: Columns
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    quoted_tsv: bool = False
    max_text_chars: int = 1_000_000


def read_rows(path: Path, options: ReadOptions) -> Rows:
    """Read a file by the format its name ends in.

    Raises:
        InputError: An unknown format, or content that the format does not allow; with the line.
    """
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if suffix == ".parquet" and path.suffix != ".gz":
        return read_parquet(path, options.columns)
    readers = {".csv": read_csv, ".tsv": read_tsv, ".jsonl": read_json_lines, ".ndjson": read_json_lines}
    if suffix not in readers:
        raise InputError(
            f"unknown format {path.suffix!r}",
            file=path,
            remedy="use .csv, .tsv, .jsonl (each may be .gz) or .parquet",
        )
    return readers[suffix](path, options)


def split_lines(text: str) -> list[str]:
    """Lines of a text, split at line feeds only: other break characters occur inside records."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


# --- CSV and TSV -----------------------------------------------------------------------------------------------------


def read_csv(path: Path, options: ReadOptions) -> Rows:
    """Read comma-separated values as RFC 4180 describes them; a field in quotes may span lines."""
    return _read_table(path, options, delimiter=",", quoted=True)


def read_tsv(path: Path, options: ReadOptions) -> Rows:
    """Read tab-separated values: one record a line, and quotes are ordinary characters unless ``quoted_tsv``."""
    return _read_table(path, options, delimiter="\t", quoted=options.quoted_tsv)


def _read_table(path: Path, options: ReadOptions, *, delimiter: str, quoted: bool) -> Rows:
    decoded = read_text(path, options.encoding)
    lines = split_lines(decoded.text)
    _refuse_nul(lines, path)
    records = _quoted_records(lines, delimiter, path) if quoted else _plain_records(lines, delimiter)
    header = list(options.header) if options.header is not None else None
    rows: list[Row] = []
    blank_lines: list[int] = []
    for line, fields in records:
        if not any(field.strip() for field in fields):
            blank_lines.append(line)
        elif header is None:
            header = [field.strip() for field in fields]
            require_columns(options.columns.names(), header, path, line)
        else:
            rows.append(_table_row(fields, header, options, path, line))
    if header is None:
        raise InputError("no header line: the file is empty", file=path, remedy="add data, or name another file")
    require_columns(options.columns.names(), header, path, None)
    return Rows(str(path), rows, decoded.num_boms, tuple(blank_lines))


def _refuse_nul(lines: list[str], path: Path) -> None:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise InputError(
                f"NUL character at column {line.index(chr(0)) + 1}",
                file=path,
                line=number,
                remedy="the file is binary or damaged (UTF-16? then set encoding: utf-16); remove the NUL",
            )


def _plain_records(lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        yield number, line.removesuffix("\r").split(delimiter)


def _quoted_records(lines: list[str], delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    # The csv module's limit is one number per process and its error names no line; lengths are checked below instead.
    csv.field_size_limit(max(csv.field_size_limit(), sum(map(len, lines)) + len(lines)))
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = f", read up to line {reader.line_num}" if reader.line_num > start else ""
            raise InputError(
                f"record that starts here is not valid CSV ({error}{last})",
                file=path,
                line=start,
                remedy='balance the quotes; a quote inside a quoted field is written ""',
            ) from error
        yield start, fields


def _table_row(fields: list[str], header: list[str], options: ReadOptions, path: Path, line: int) -> Row:
    for field in fields:
        check_length(field, options.max_text_chars, path, line)
    if len(fields) != len(header):
        raise InputError(
            f"{len(fields)} fields, the header has {len(header)}",
            file=path,
            line=line,
            remedy="quote fields that hold the delimiter, or fix the line",
        )
    return options.columns.row(dict(zip(header, fields, strict=True)), path, line)


# --- JSON lines ------------------------------------------------------------------------------------------------------


def read_json_lines(path: Path, options: ReadOptions) -> Rows:
    """Read one JSON object a line."""
    decoded = read_text(path, options.encoding)
    rows: list[Row] = []
    blank_lines: list[int] = []
    for number, line in enumerate(split_lines(decoded.text), 1):
        if not line.strip():
            blank_lines.append(number)
            continue
        record = json_object(line, path, number)
        require_columns(options.columns.names(), list(record), path, number)
        row = options.columns.row(record, path, number)
        for text in (row.text, row.text_pair):
            if isinstance(text, str):
                check_length(text, options.max_text_chars, path, number)
        rows.append(row)
    return Rows(str(path), rows, decoded.num_boms, tuple(blank_lines))


def json_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """The JSON object in one line; a repeated key, NaN and Infinity are refused.

    Raises:
        InputError: Anything else than one JSON object.
    """
    try:
        record = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"not a JSON object ({error})", file=path, line=number, remedy="write one complete JSON object a line"
        ) from error
    if not isinstance(record, dict):
        raise InputError(
            f"a JSON {type(record).__name__}, expected an object", file=path, line=number, remedy='write {"text": ...}'
        )
    return record


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return record


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# --- Parquet ---------------------------------------------------------------------------------------------------------


def read_parquet(path: Path, columns: Columns) -> Rows:
    """Read a Parquet file; ``line`` is the 1-based row.

    Raises:
        InputError: Not a Parquet file, or a column is missing.
    """
    import pyarrow
    import pyarrow.parquet

    if not path.is_file():
        raise InputError("no such file", file=path, remedy="check the path; it is relative to where you start")
    try:
        with pyarrow.parquet.ParquetFile(path) as table_file:
            require_columns(columns.names(), list(table_file.schema_arrow.names), path, None)
            table = table_file.read(columns=columns.names())
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"not a readable Parquet file ({error})", file=path, remedy="write it again") from error
    records = table.to_pylist()
    return Rows(str(path), [columns.row(record, path, number) for number, record in enumerate(records, 1)])
