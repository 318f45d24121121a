"""The labelled texts that a vocabulary may be learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import InputError
from components.examples import AnyExample, Example, Question, TaggedText, read_any_examples, select_examples
from components.formats import read_json
from components.text.normalization import NormalizationConfig, normalize

if TYPE_CHECKING:
    # Not imported at run time: transformers costs a second that features of words need not pay.
    from components.encoders.pieces import PieceEncoder


def read_training_examples(dataset: Path, num_train_examples: int | None, seed: int) -> list[AnyExample]:
    """The labelled budget of this run, drawn from the training split only: no feature comes from unseen texts.

    Raises:
        ArtifactError: The folder is no data set artifact.
        InputError: The training split is missing or empty.
    """
    path = dataset / "train.jsonl"
    examples = read_any_examples(dataset, "train") if path.is_file() else []
    if not examples:
        raise InputError(
            "no labelled training text", file=path, remedy="prepare a dataset whose training split has examples"
        )
    return select_examples(examples, num_train_examples, seed)  # type: ignore[type-var]


def read_recipe(dataset: Path) -> NormalizationConfig:
    """The recipe that the data set's texts go through before an encoder reads them.

    Raises:
        InputError: ``normalization.json`` holds no recipe.
    """
    path = dataset / "normalization.json"
    if not path.is_file():
        return NormalizationConfig()
    try:
        return NormalizationConfig(**read_json(path))
    except (TypeError, ValueError) as error:
        raise InputError(f"no normalisation recipe: {error}", file=path) from error


def texts_of(examples: Sequence[AnyExample], recipe: NormalizationConfig) -> list[str]:
    """The texts to count words in, normalised: both texts of a pair, and every distinct passage of questions once.

    Args:
        examples: Labelled examples of one task.
        recipe: For the tasks that keep the original text; texts of classification are normalised already.
    """
    passages = dict.fromkeys(example.text for example in examples if isinstance(example, Question))
    texts = [normalize(passage, recipe).text for passage in passages]
    for example in examples:
        if isinstance(example, Example):
            texts.extend(text for text in (example.text, example.text_pair) if text is not None)
        else:
            text = example.question if isinstance(example, Question) else example.text
            texts.append(normalize(text, recipe).text)
    return texts


def piece_texts_of(examples: Sequence[AnyExample], encoder: PieceEncoder) -> list[str]:
    """The texts of ``texts_of`` as pieces, joined by spaces, which no piece holds.

    A tagged text is cut into pieces token by token, as taggers read it: pieces over the border of two tokens, such as
    those of a number whose digits are tagged one by one, would be features that no tagger meets.
    """
    tagged = [example.words() for example in examples if isinstance(example, TaggedText)]
    others = [example for example in examples if not isinstance(example, TaggedText)]
    passages = dict.fromkeys(example.text for example in others if isinstance(example, Question))
    texts = [*passages, *(text for example in others for text in _own_texts(example))]
    rows = [pieces.ids for pieces in encoder.encode_token_lists(tagged)]
    rows += [pieces.ids for pieces in encoder.encode_texts(texts)]
    return [" ".join(encoder.tokenizer.convert_ids_to_tokens(ids)) for ids in rows]


def _own_texts(example: AnyExample) -> list[str]:
    if isinstance(example, Question):
        return [example.question]
    assert isinstance(example, Example)
    return [example.text] if example.text_pair is None else [example.text, example.text_pair]


def count_documents(texts: Iterable[str], analyze: Callable[[str], list[str]]) -> Counter[str]:
    """For every feature, the number of texts it occurs in."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(analyze(text)))
    return counts
