"""Named-entity recognition: examples, serving inputs, decoding and validation scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from components.errors import InputError
from components.examples import OUTSIDE, TaggedText, parse_example, tag_names
from components.finetuning.config import NerConfig
from components.finetuning.data import TaskData, check_fields, read_budget, read_names, read_normalization, read_rows
from components.finetuning.inputs import check_text, fields_of
from components.finetuning.outputs import TokenScores
from components.finetuning.viterbi import best_tags
from components.formats import read_json
from components.predictions import Entity, TagPrediction
from components.scoring.entities import entities_of, entity_f1
from components.text.normalization import NormalizationConfig

TokenUnit = Literal["characters", "words"]
_WORD = re.compile(r"[@#]?\w+(?:[-'’.]\w+)*|[^\w\s]")


def read_ner(dataset: Path, config: NerConfig) -> TaskData[TaggedText]:
    """Draw the labelled budget from train and check it, and all of the other splits.

    Args:
        dataset: Dataset artifact; ``labels.json`` names the entity types.
        config: Settings.

    Raises:
        InputError: Naming file, line and value: tokens outside the text, a tag for another number of tokens, a tag
            outside ``labels.json``, I- after anything but its own type, a repeated id, an empty split, no entity in
            the training examples, or a budget that train cannot pay.
    """
    tags, normalization = tag_names(read_names(dataset, 1)), read_normalization(dataset)
    parse = partial(_parse, frozenset(tags))
    chosen = read_budget(dataset, parse, config.num_train_examples, config.seed)
    validation, test = read_rows(dataset, "validation", parse), read_rows(dataset, "test", parse)
    if all(tag == OUTSIDE for example in chosen for tag in example.tags):
        raise InputError(
            f"none of the {len(chosen)} training examples holds an entity",
            file=dataset / "train.jsonl",
            remedy="raise num_train_examples, change seed or add examples with entities",
        )
    return TaskData(tags, chosen, validation, test, normalization, {"token_unit": _token_unit(dataset, chosen)})


def _parse(tags: frozenset[str], path: Path, line: int, row: dict[str, Any]) -> TaggedText:
    check_fields(path, line, row, ("id", "text"))
    try:
        example = parse_example("ner", row)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a row needs the fields id, text, tokens and tags: {error}", file=path, line=line) from error
    assert isinstance(example, TaggedText)
    if problem := find_problem(example, tags):
        raise InputError(f"{example.id}: {problem}", file=path, line=line)
    return example


def find_problem(example: TaggedText, tags: frozenset[str]) -> str:
    """What is wrong with an example's tokens or tags; "" when nothing is."""
    if problem := _token_problem(example.text, example.tokens):
        return problem
    if len(example.tags) != len(example.tokens):
        return f"{len(example.tags)} tags for {len(example.tokens)} tokens"
    before = OUTSIDE
    for position, tag in enumerate(example.tags):
        if tag not in tags:
            return f"tag {tag!r} of token {position} is not one of {', '.join(sorted(tags))}"
        if tag.startswith("I-") and before[2:] != tag[2:]:
            return f"tag {tag!r} of token {position} follows {before!r}: an entity begins with B-"
        before = tag
    return ""


def _token_problem(text: str, tokens: Sequence[tuple[int, int]]) -> str:
    reached = 0
    for position, (start, end) in enumerate(tokens):
        if not reached <= start < end <= len(text):
            return f"token {position} is {start}:{end} after {reached} in a text of {len(text)} characters"
        reached = end
    return ""


def _token_unit(dataset: Path, train: Sequence[TaggedText]) -> TokenUnit:
    path = dataset / "dataset.json"
    card = read_json(path) if path.is_file() else {}
    if (unit := card.get("token_unit")) in ("characters", "words"):
        return unit  # type: ignore[no-any-return]
    lengths = [end - start for example in train for start, end in example.tokens]
    return "words" if sum(length > 1 for length in lengths) * 2 > len(lengths) else "characters"


def split_tokens(text: str, unit: TokenUnit) -> tuple[tuple[int, int], ...]:
    """Start and end of every token: each character that is no white space, or each word and punctuation mark."""
    if unit == "characters":
        return tuple((index, index + 1) for index, character in enumerate(text) if not character.isspace())
    return tuple(match.span() for match in _WORD.finditer(text))


def parse_tagged(position: int, value: Any, facts: Mapping[str, Any], normalization: NormalizationConfig) -> TaggedText:
    """A serving input: a text, or ``{"text", "tokens"}`` with start and end of every token; without tags.

    Raises:
        InputError: Naming the position.
    """
    tokens: tuple[tuple[int, int], ...]
    if not isinstance(value, Mapping):
        text = check_text(position, value)
        tokens = split_tokens(text, facts["token_unit"])
    else:
        rest = {name: item for name, item in value.items() if name != "tokens"}
        text = fields_of(position, rest, required=("text",))["text"]
        try:
            tokens = tuple((int(start), int(end)) for start, end in value["tokens"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"input {position} needs tokens, a list of start and end: {error}") from error
        if problem := _token_problem(text, tokens):
            raise InputError(f"input {position}: {problem}")
    return TaggedText(str(position), text, tokens, ())


def decode_tags(
    examples: Sequence[TaggedText], outputs: Sequence[TokenScores], facts: Mapping[str, Any]
) -> list[TagPrediction]:
    """The best legal tags of every text and the entities they make up.

    Args:
        examples: N texts with their tokens; their tags are not read.
        outputs: Scores of every token.
        facts: ``labels``, the tags in the order of the scores' columns.
    """
    names = facts["labels"]
    for example, output in zip(examples, outputs, strict=True):
        assert len(output.scores_TK) == len(example.tokens), "scored tokens are the gold tokens"
    predictions = []
    for example, path in zip(examples, best_tags(outputs, names), strict=True):
        tags = tuple(names[index] for index in path)
        predictions.append(TagPrediction(example.id, tags, _entities(example, tags)))
    return predictions


def _entities(example: TaggedText, tags: Sequence[str]) -> tuple[Entity, ...]:
    spans = [(example.tokens[first][0], example.tokens[end - 1][1], name) for name, first, end in sorted_entities(tags)]
    return tuple(Entity(start, end, name, example.text[start:end]) for start, end, name in spans)


def sorted_entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, first token and end token of every entity, in the order of the text."""
    return sorted(entities_of(tags), key=lambda entity: entity[1:])


def score_tags(
    examples: Sequence[TaggedText], predictions: Sequence[TagPrediction], facts: Mapping[str, Any]
) -> dict[str, float]:
    """Micro-averaged strict entity F1: a boundary and type that are both right, nothing less."""
    return {"entity_f1": float(entity_f1([example.tags for example in examples], [item.tags for item in predictions]))}
