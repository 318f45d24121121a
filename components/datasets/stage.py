"""The data set stages: ``prepare_dataset`` and ``audit_leaks``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.datasets.audit import audit_splits
from components.datasets.audit_views import learned_names
from components.datasets.config import AuditConfig, DatasetConfig
from components.datasets.labels import label_name, label_set
from components.datasets.rows import LabelledText, Row, Rows, file_digests, refuse_repeated_ids, text_value
from components.datasets.sources import SourceRows, read_source
from components.datasets.splits import Dropped, limit_texts, refuse_empty, remove_duplicates, split_texts
from components.errors import ArtifactError, InputError
from components.examples import (
    SOURCE_SENTENCES,
    SPLITS,
    AnyExample,
    Example,
    TaskName,
    parse_example,
    read_labels,
    read_task,
    write_examples,
    write_labels,
    write_task,
)
from components.formats import Split, read_jsonl, write_json, write_jsonl
from components.text.normalization import normalize


@dataclass
class _Findings:
    """What preparing has counted and dropped so far."""

    counts: Counter[str] = field(default_factory=Counter)
    dropped: list[Dropped] = field(default_factory=list)

    def drop(self, rows: Sequence[Dropped]) -> None:
        self.dropped += rows
        for row in rows:
            self.counts[f"num_rows_{row.reason}"] += 1


def prepare_dataset(config: DatasetConfig, *, out_dir: Path, log_metrics: LogMetrics = ignore_metrics) -> Metrics:
    """Read labelled texts, check every row, normalise, split, and write one JSON-lines file per split.

    All checks are done before the first file is written. ``num_rows`` equals the examples of all splits plus the rows
    dropped for each reason; ``dropped.jsonl`` names every dropped row.

    Args:
        config: Source, columns, label rules, splits and normalisation.
        out_dir: Receives ``task.json``, ``train.jsonl``, ``validation.jsonl``, ``test.jsonl``, ``labels.json``,
            ``dropped.jsonl``, ``normalization.json`` (the recipe) and ``dataset.json`` (labels per split, digests).
        log_metrics: Receives the counts.

    Returns:
        Counts of rows, dropped rows per reason, examples per split, labels and changes by normalisation.

    Raises:
        InputError: Input that cannot be used; with file, line, value and remedy.
    """
    started = time.perf_counter()
    findings = _Findings(Counter(dict.fromkeys(_ALWAYS_COUNTED, 0)))
    source = read_source(config)
    texts = {split: _check_rows(parts, source, config, findings) for split, parts in source.parts.items()}
    refuse_repeated_ids((text.id, text.place) for part in texts.values() for text in part)
    splits = _make_splits(texts, config, findings)
    labels, findings.counts["num_rows_unseen_label"] = label_set(
        splits, config.labels, stop_on_unseen=config.unseen_label == "stop"
    )
    _write_dataset(out_dir, splits, labels, config, findings)
    metrics = {name: float(count) for name, count in sorted(findings.counts.items())}
    metrics["dataset_seconds"] = time.perf_counter() - started
    log_metrics(metrics)
    return metrics


_ALWAYS_COUNTED = (
    "num_boms_removed",
    "num_rows_contradictory_label",
    "num_rows_duplicate",
    "num_rows_empty_text",
    "num_rows_over_limit",
    "num_texts_contradictory",
)


def _check_rows(
    parts: Sequence[Rows], source: SourceRows, config: DatasetConfig, findings: _Findings
) -> list[LabelledText]:
    texts: list[LabelledText] = []
    for part in parts:
        name = source.names[part.file]
        findings.counts["num_rows"] += len(part.rows) + len(part.blank_lines)
        findings.counts["num_boms_removed"] += part.num_boms
        findings.drop([Dropped(f"{name}:{line}", "empty_text") for line in part.blank_lines])
        for row in part.rows:
            text = _check_row(row, name, config, findings)
            if text.text:
                texts.append(text)
            else:
                findings.drop([Dropped(text.id, "empty_text")])
    if not texts:
        raise InputError(
            f"no row with a text among {sum(len(part.rows) for part in parts)}",
            file=parts[0].file,
            remedy="check text_column and the file",
        )
    return texts


def _check_row(row: Row, name: str, config: DatasetConfig, findings: _Findings) -> LabelledText:
    text = _normalize(row.text, row, config, findings)
    pair = None if config.text_pair_column is None else _normalize(row.text_pair, row, config, findings)
    identifier = row.id if row.id is not None else f"{name}:{row.line}"
    if not text or pair == "":
        return LabelledText(identifier, "", "", f"{row.file}:{row.line}")
    label = label_name(row.label, float_labels=config.float_labels, allowed=config.labels, file=row.file, line=row.line)
    return LabelledText(identifier, text, label, f"{row.file}:{row.line}", pair)


def _normalize(value: Any, row: Row, config: DatasetConfig, findings: _Findings) -> str:
    """The normalised text; empty when nothing but white space is left."""
    normalized = normalize(text_value(value, row.file, row.line), config.normalization, file=row.file, line=row.line)
    for rule, number in normalized.counts.items():
        findings.counts[f"num_{rule}"] += number
    return normalized.text if normalized.text.strip() else ""


def _make_splits(
    texts: dict[Split, list[LabelledText]], config: DatasetConfig, findings: _Findings
) -> dict[Split, list[LabelledText]]:
    """Split what is missing off the training rows, then apply the limits."""
    fractions = config.fractions(texts)
    train = texts["train"]
    if any(fractions.values()):
        train, dropped, findings.counts["num_texts_contradictory"] = remove_duplicates(train)
        findings.drop(dropped)
    splits = split_texts(train, **fractions, seed=config.seed)
    splits.update({split: rows for split, rows in texts.items() if split != "train"})
    for split, limit in config.limits.items():
        splits[split], dropped = limit_texts(splits[split], limit, config.seed)
        findings.drop(dropped)
    refuse_empty(splits, len(texts["train"]))
    return splits


def _write_dataset(
    out_dir: Path,
    splits: Mapping[Split, Sequence[LabelledText]],
    labels: Sequence[str],
    config: DatasetConfig,
    findings: _Findings,
) -> None:
    for split in SPLITS:
        examples = (Example(text.id, text.text, text.label, text_pair=text.text_pair) for text in splits[split])
        findings.counts[f"num_{split}"] = write_examples(out_dir, split, examples)
    findings.counts["num_labels"] = len(labels)
    write_task(out_dir, "classification")
    write_labels(out_dir, labels)
    write_json(out_dir / "normalization.json", config.normalization.model_dump(mode="json"))
    write_jsonl(out_dir / "dropped.jsonl", map(asdict, findings.dropped))
    card: dict[str, Any] = {
        "counts": findings.counts,
        "labels": {split: Counter(text.label for text in splits[split]) for split in SPLITS},
        "files": file_digests(config),
        "source": config.source,
    }
    write_json(out_dir / "dataset.json", card)


def audit_leaks(
    config: AuditConfig, *, dataset: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Find exact and near duplicates and contradictions inside and across splits, and write a cleaned data set.

    The data set may be of any task. What contradicts is the label, the tags, or the set of answers of one text; a
    question also counts as leaked when its passage is, whatever else is asked there.

    Test rows are never removed: a test row with a copy in train or validation is marked ``leaked``, so that scores can
    be shown on all rows and on clean ones. What is removed is listed in ``dropped.jsonl`` with its reason.

    Args:
        config: Similarity settings and what to remove.
        dataset: Folder written by ``prepare_dataset``, ``prepare_ner`` or ``prepare_question_answering``.
        out_dir: Receives the same layout plus ``audit.json``.
        log_metrics: Receives progress and the counts.

    Returns:
        Every count of the report, the share of leaked test rows, and seconds.

    Raises:
        ArtifactError: ``dataset`` lacks a file.
        InputError: Removing duplicates empties a split or leaves one label to train on.
    """
    started = time.perf_counter()
    task, examples = _read_dataset(dataset)
    result = audit_splits(examples, config, on_progress=lambda share: log_metrics({"progress": share}))
    _refuse_emptied(examples, result.examples)
    for split in SPLITS:
        write_examples(out_dir, split, result.examples[split])
    write_task(out_dir, task)
    _carry_over(dataset, out_dir)
    write_jsonl(out_dir / "dropped.jsonl", map(asdict, result.removed))
    write_json(out_dir / "audit.json", {"counts": result.counts, "config": config.model_dump(), "pairs": result.pairs})
    metrics = {name: float(count) for name, count in sorted(result.counts.items())}
    metrics["share_test_leaked"] = result.counts["num_test_leaked"] / len(result.examples["test"])
    metrics["audit_seconds"] = time.perf_counter() - started
    log_metrics(metrics)
    return metrics


def _read_dataset(dataset: Path) -> tuple[TaskName, dict[Split, list[AnyExample]]]:
    try:
        # A data set without the file is from before there were other tasks.
        task: TaskName = read_task(dataset) if (dataset / "task.json").is_file() else "classification"
        paths = {split: dataset / f"{split}.jsonl" for split in SPLITS}
        return task, {split: [parse_example(task, row) for row in read_jsonl(path)] for split, path in paths.items()}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ArtifactError(f"{dataset} is no data set artifact: {error}") from error


def _carry_over(dataset: Path, out_dir: Path) -> None:
    """Copy what the audit does not change: labels, where the task has any, the recipe, source sentences."""
    if (dataset / "labels.json").is_file():
        write_labels(out_dir, read_labels(dataset))
    for name in ("normalization.json", SOURCE_SENTENCES):
        if (dataset / name).is_file():
            (out_dir / name).write_bytes((dataset / name).read_bytes())


_KEEP_REMEDY = "use other data, or set the audit's policies from remove to keep"


def _refuse_emptied(before: Mapping[Split, Sequence[AnyExample]], after: Mapping[Split, Sequence[AnyExample]]) -> None:
    for split in SPLITS:
        if before[split] and not after[split]:
            raise InputError(
                f"all {len(before[split])} {split} rows duplicate rows of other splits",
                remedy=_KEEP_REMEDY,
            )
    taught = [
        {name for example in rows for name in learned_names(example)} for rows in (before["train"], after["train"])
    ]
    if lost := taught[0] - taught[1]:
        raise InputError(
            f"removing duplicates leaves no training row for label(s) {', '.join(map(repr, sorted(lost)))}",
            remedy=_KEEP_REMEDY,
        )


def _taught(examples: Sequence[AnyExample]) -> set[str]:
    return {name for example in examples for name in learned_names(example)}
