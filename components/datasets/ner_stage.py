"""The stage that prepares named-entity data: ``prepare_ner``."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_rows import DroppedRow, NerFacts, NerRow
from components.datasets.ner_sources import read_ner_source
from components.datasets.ner_splits import NamedRow, entity_types, make_splits
from components.datasets.rows import file_digests, refuse_repeated_ids
from components.errors import InputError
from components.examples import SPLITS, TaggedText, write_labels, write_task
from components.formats import Split, write_json, write_jsonl
from components.text.conversion import convert_counted
from components.text.normalization import NormalizationConfig, normalize

_ALWAYS_COUNTED = (
    "num_boms_removed",
    "num_characters_converted",
    "num_entities_cutting_words",
    "num_entities_overlapping",
    "num_entities_repeated",
    "num_entities_without_token",
    "num_rows_contradictory_tags",
    "num_rows_duplicate",
    "num_rows_empty_text",
    "num_rows_over_limit",
    "num_rows_span_mismatch",
    "num_tags_repaired",
    "num_tokens_blank",
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def prepare_ner(config: NerDatasetConfig, *, out_dir: Path, log_metrics: LogMetrics = ignore_metrics) -> Metrics:
    """Read tagged texts, check every row, bring every scheme to IOB2, split, and write one JSON-lines file per split.

    All checks are done before the first file is written. Texts and offsets are those of the original, except where
    OpenCC is asked for, which changes no offset. ``num_rows`` equals the examples of all splits plus the rows dropped
    for each reason; ``dropped.jsonl`` names every dropped row.

    Args:
        config: Source, format, scheme, policies and splits.
        out_dir: Receives ``task.json``, ``train.jsonl``, ``validation.jsonl``, ``test.jsonl``, ``labels.json``
            (entity types), ``normalization.json``, ``dropped.jsonl`` and ``dataset.json`` (counts, scheme and separator
            of every file, named places, file digests).
        log_metrics: Receives the counts.

    Returns:
        Counts of rows, dropped rows per reason, examples, entities per type, repairs and changes.

    Raises:
        InputError: Input that cannot be used; with file, line, value and remedy.
    """
    started = time.perf_counter()
    facts = NerFacts(Counter(dict.fromkeys(_ALWAYS_COUNTED, 0)))
    rows, names = read_ner_source(config, facts)
    facts.counts["num_rows"] = len(facts.dropped) + sum(map(len, rows.values()))
    checked = {split: _check_rows(part, names, config, facts) for split, part in rows.items()}
    refuse_repeated_ids((named.id, named.row.place) for part in checked.values() for named in part)
    splits = make_splits(checked, config, facts)
    types, facts.counts["num_entities_unseen_label"] = entity_types(
        splits, config.labels, stop_on_unseen=config.unseen_label == "stop"
    )
    _write_dataset(out_dir, splits, types, config, facts)
    metrics = {name: float(count) for name, count in sorted(facts.counts.items())}
    metrics["dataset_seconds"] = time.perf_counter() - started
    log_metrics(metrics)
    return metrics


# --- checks of a row -------------------------------------------------------------------------------------------------


def _check_rows(
    rows: Sequence[NerRow], names: Mapping[str, str], config: NerDatasetConfig, facts: NerFacts
) -> list[NamedRow]:
    recipe = config.normalization.model_copy(update={"surrogates": "replace"})
    is_visible = lru_cache(maxsize=None)(partial(_is_visible, recipe=recipe))
    kept: list[NamedRow] = []
    for row in rows:
        name = names[row.file]
        identifier = row.id if row.id is not None else f"{name}:{row.line}"
        _check_length(row, config)
        blank = [token for token, (start, end) in enumerate(row.tokens) if not is_visible(row.text[start:end])]
        if len(blank) == len(row.tokens):
            facts.drop([DroppedRow(identifier, "empty_text")])
            continue
        for token in blank:
            _check_blank(row, token, name, config, facts)
        kept.append(NamedRow(identifier, _converted(_without_surrogates(row, config, facts), config, facts)))
    if not kept:
        file = rows[0].file if rows else next(iter(names))
        raise InputError(f"no text among {len(rows)} row(s)", file=file, remedy="check the file and its format")
    return kept


def _check_length(row: NerRow, config: NerDatasetConfig) -> None:
    if len(row.text) > config.max_text_chars:
        raise InputError(
            f"text of {len(row.text):,} characters, the limit is {config.max_text_chars:,}",
            file=row.file,
            line=row.line,
            remedy="look for missing empty lines between sentences, or raise max_text_chars",
        )


def _is_visible(word: str, recipe: NormalizationConfig) -> bool:
    """Whether anything of a token is left by normalisation, so that an encoder can see it."""
    return bool(word.strip()) and bool(normalize(word, recipe).text.strip())


def _check_blank(row: NerRow, token: int, name: str, config: NerDatasetConfig, facts: NerFacts) -> None:
    start, end = row.tokens[token]
    shown = " ".join(f"U+{ord(character):04X}" for character in row.text[start:end])
    if config.blank_tokens == "refuse":
        raise InputError(
            f"token {token + 1} has no visible character ({shown})",
            file=row.file,
            line=row.token_line(token),
            remedy="remove the token, check separator, or set blank_tokens: keep",
        )
    facts.note("tokens_blank", f"{name}:{row.token_line(token)} {shown}")


def _without_surrogates(row: NerRow, config: NerDatasetConfig, facts: NerFacts) -> NerRow:
    found = _SURROGATE.search(row.text)
    if found is None:
        return row
    if config.normalization.surrogates == "refuse":
        raise InputError(
            f"lone surrogate U+{ord(found.group()):04X} at character {found.start() + 1}",
            file=row.file,
            line=row.line,
            remedy="repair the text (half a character), or set normalization.surrogates: replace",
        )
    text, number = _SURROGATE.subn("\ufffd", row.text)
    facts.counts["num_surrogates"] += number
    return replace(row, text=text)


def _converted(row: NerRow, config: NerDatasetConfig, facts: NerFacts) -> NerRow:
    converted = convert_counted(row.text, config.opencc)
    facts.counts["num_characters_converted"] += converted.num_changed
    facts.counts["num_texts_converted_by_character"] += converted.by_character
    return replace(row, text=converted.text)


# --- files -----------------------------------------------------------------------------------------------------------


def _write_dataset(
    out_dir: Path,
    splits: Mapping[Split, Sequence[NamedRow]],
    types: Sequence[str],
    config: NerDatasetConfig,
    facts: NerFacts,
) -> None:
    write_task(out_dir, "ner")
    for split in SPLITS:
        rows = (_example(named) for named in splits[split])
        facts.counts[f"num_{split}"] = write_jsonl(out_dir / f"{split}.jsonl", rows)
        facts.counts[f"num_tokens_{split}"] = sum(len(named.row.tokens) for named in splits[split])
        facts.counts[f"num_entities_{split}"] = sum(len(named.row.entities) for named in splits[split])
    facts.counts["num_labels"] = len(types)
    write_labels(out_dir, types)
    write_json(out_dir / "normalization.json", config.normalization.model_dump())
    write_jsonl(out_dir / "dropped.jsonl", map(asdict, facts.dropped))
    card: dict[str, Any] = {
        "counts": facts.counts,
        "entities": {split: _count_types(splits[split]) for split in SPLITS},
        "forms": facts.forms,
        "places": facts.places,
        "files": file_digests(config),
        "source": config.source,
        "language": config.language,
        "token_unit": config.unit,
        "scheme": "iob2",
    }
    write_json(out_dir / "dataset.json", card)


def _example(named: NamedRow) -> dict[str, Any]:
    """The row of a ``TaggedText``, built flat: ``dataclasses.asdict`` copies every token and is many times slower."""
    row = named.row
    example = TaggedText(named.id, row.text, row.tokens, tuple(row.tags()))
    return vars(example)


def _count_types(rows: Iterable[NamedRow]) -> dict[str, int]:
    return Counter(entity.type for named in rows for entity in named.row.entities)
