"""Sources of tagged text: the packaged People's Daily, local files and the hub, all as rows by split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.datasets.conll import TokenSentence, read_conll, rows_from_sentences
from components.datasets.encodings import read_text
from components.datasets.hub import hub_splits
from components.datasets.ner_config import NerDatasetConfig
from components.datasets.ner_json import identifier, read_json_entities
from components.datasets.ner_rows import CharacterSpan, DroppedRow, NerFacts, NerRow, entities_on_tokens, tokenise
from components.datasets.packages import package_files
from components.datasets.people_daily import name_spans, tagged_words
from components.datasets.readers import split_lines
from components.datasets.rows import source_names
from components.errors import InputError
from components.formats import Split
from components.text.articles import article_openings

COLUMN_ENDINGS = (".txt", ".conll", ".conll03", ".bmes", ".bioes", ".bio", ".iob", ".iob2", ".io", ".tsv", ".tags")
JSON_ENDINGS = (".jsonl", ".ndjson")


def read_ner_source(config: NerDatasetConfig, facts: NerFacts) -> tuple[dict[Split, list[NerRow]], dict[str, str]]:
    """Read everything the configuration names.

    Returns:
        The rows of every split that is given, and the short name of every file as ids use it.

    Raises:
        InputError: A missing, damaged or ill-formed file, or a data set that cannot be loaded.
    """
    if config.source == "package":
        files = package_files(config.package)
        names = source_names(files)
        return {"train": read_people_daily(files[0], names[str(files[0])], config, facts)}, names
    if config.source == "files":
        return _read_files(config, facts)
    return _read_hub(config, facts)


def read_people_daily(path: Path, name: str, config: NerDatasetConfig, facts: NerFacts) -> list[NerRow]:
    """The lines of a ``word/tag`` file with their names; the document of a line is its article.

    Args:
        path: The file.
        name: Its short name.
        config: Token unit.
        facts: Receives the blank lines.
    """
    lines = split_lines(read_text(path, "utf-8").text)
    words = [tagged_words(line) for line in lines]
    texts = ["".join(word for word, _ in line) for line in words]
    rows = []
    article = 1
    for number, (opens, text) in enumerate(zip(article_openings(texts), texts, strict=True), 1):
        article = number if opens else article
        if not text:
            facts.drop([DroppedRow(f"{name}:{number}", "empty_text")])
            continue
        spans = [CharacterSpan(span.start, span.end, span.type) for span in name_spans(words[number - 1])]
        tokens = tokenise(text, config.unit)
        entities = tuple(entities_on_tokens(spans, tokens, facts, f"{name}:{number}"))
        rows.append(NerRow(str(path), number, text, tuple(tokens), entities, document=f"{name}:{article}"))
    facts.counts["num_articles"] = len({row.document for row in rows})
    facts.forms[name] = {"format": "people_daily", "scheme": "word/tag"}
    return rows


# --- files -----------------------------------------------------------------------------------------------------------


def _read_files(config: NerDatasetConfig, facts: NerFacts) -> tuple[dict[Split, list[NerRow]], dict[str, str]]:
    paths = config.split_files()
    names = source_names(list(paths.values()))
    return {split: _read_file(path, config, names[str(path)], facts) for split, path in paths.items()}, names


def _read_file(path: Path, config: NerDatasetConfig, name: str, facts: NerFacts) -> list[NerRow]:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if config.format == "jsonl" or (config.format == "auto" and ending in JSON_ENDINGS):
        return read_json_entities(path, config, name, facts)
    if config.format == "conll" or ending in COLUMN_ENDINGS:
        return read_conll(path, config, name, facts)
    raise InputError(
        f"the ending {ending!r} does not say what the file holds",
        file=path,
        remedy=f"set format: conll or jsonl, or use one of {', '.join((*COLUMN_ENDINGS, *JSON_ENDINGS))} (.gz allowed)",
    )


# --- hub -------------------------------------------------------------------------------------------------------------


def _read_hub(config: NerDatasetConfig, facts: NerFacts) -> tuple[dict[Split, list[NerRow]], dict[str, str]]:
    with hub_splits(config) as splits:
        rows = {split: _hub_rows(found, name, config, facts) for split, (name, found) in splits.items()}
        return rows, {name: name for name, _ in splits.values()}


def _hub_rows(split: Any, name: str, config: NerDatasetConfig, facts: NerFacts) -> list[NerRow]:
    for column in (config.tokens_column, config.tags_column):
        if column not in split.column_names:
            raise InputError(
                f"no column {column!r}; columns are {', '.join(split.column_names)}",
                file=f"{config.hub_id} split {name}",
                remedy="set tokens_column and tags_column",
            )
    names = getattr(getattr(split.features[config.tags_column], "feature", None), "names", None)
    sentences = [_hub_sentence(record, number, name, names, config) for number, record in enumerate(split, 1)]
    facts.forms[name] = {"format": "hub"}
    return rows_from_sentences(sentences, config, name, facts)


def _hub_sentence(
    record: dict[str, Any], number: int, split: str, names: list[str] | None, config: NerDatasetConfig
) -> TokenSentence:
    words, tags = record[config.tokens_column] or [], record[config.tags_column] or []
    if len(words) != len(tags):
        raise InputError(
            f"{len(words)} tokens, {len(tags)} tags", file=split, line=number, remedy="give every token one tag"
        )
    return TokenSentence(
        file=split,
        line=number,
        words=[str(word or " ") for word in words],
        tags=[_tag_name(tag, names, split, number) for tag in tags],
        id=identifier(record, config.id_column, split, number),
        document=identifier(record, config.document_column, split, number),
    )


def _tag_name(tag: Any, names: list[str] | None, split: str, number: int) -> str:
    if isinstance(tag, str):
        return tag
    if names is not None and isinstance(tag, int) and 0 <= tag < len(names):
        return names[tag]
    raise InputError(
        f"tag {tag!r} has no name",
        file=split,
        line=number,
        remedy="the column must hold tag names or a ClassLabel; convert it first",
    )
