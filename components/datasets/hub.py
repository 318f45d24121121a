"""Data sets of the Hugging Face hub, by id and revision or from a local folder; loading scripts never run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.datasets.source_config import SourceConfig
from components.errors import InputError
from components.formats import Split


@contextmanager
def hub_dataset(hub_id: str, *, hub_config: str | None, revision: str | None) -> Iterator[Any]:
    """The splits of a data set, by name, as the ``datasets`` library loads them.

    Args:
        hub_id: Data set id, or a local folder.
        hub_config: Configuration (subset) of the data set.
        revision: Commit or tag; required for an id, without meaning for a folder.

    Raises:
        InputError: No revision for an id, or a data set that cannot be loaded.
    """
    local = Path(hub_id).is_dir()
    if not local and revision is None:
        raise InputError(
            f"hub_id {hub_id!r} is no local folder and has no revision",
            remedy="set revision to a commit or tag, so that the same settings always mean the same data",
        )
    with tempfile.TemporaryDirectory() as cache:
        # A local folder is converted afresh: the library's own cache would not notice every change of a file.
        yield _load(hub_id, hub_config, {"cache_dir": cache} if local else {"revision": revision}, local)


@contextmanager
def hub_splits(config: SourceConfig) -> Iterator[dict[Split, tuple[str, Any]]]:
    """The hub splits that a configuration names: by our split, their own name and their rows.

    Raises:
        InputError: As in ``hub_dataset``; or a split is used twice, or is not there.
    """
    given: dict[Split, str | None] = {
        "train": config.train_split,
        "validation": config.validation_split,
        "test": config.test_split,
    }
    wanted = {split: name for split, name in given.items() if name is not None}
    if len(set(wanted.values())) != len(wanted):
        raise InputError(f"one hub split is used twice: {wanted}", remedy="give each split its own name")
    assert config.hub_id is not None
    with hub_dataset(config.hub_id, hub_config=config.hub_config, revision=config.revision) as dataset:
        for name in wanted.values():
            if name not in dataset:
                raise InputError(
                    f"no split {name!r}; splits are {', '.join(map(repr, dataset))}",
                    file=config.hub_id,
                    remedy="set train_split, validation_split or test_split",
                )
        yield {split: (name, dataset[name]) for split, name in wanted.items()}


def _load(hub_id: str, hub_config: str | None, arguments: dict[str, Any], local: bool) -> Any:
    import datasets

    datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(hub_id, hub_config, **arguments)
    except Exception as error:
        raise InputError(_first_line(error), file=hub_id, remedy=_hub_remedy(local)) from error


def _first_line(error: Exception) -> str:
    return f"cannot be loaded ({type(error).__name__}: {str(error).split(chr(10), 1)[0][:300]})"


def _hub_remedy(local: bool) -> str:
    if local:
        return "the folder must hold csv, jsonl or parquet files with the same columns; loading scripts never run"
    return (
        "without a network, fetch it elsewhere (hf download ID --repo-type dataset --local-dir FOLDER) and set "
        "hub_id: FOLDER, or use source: files; with one, check the id and the revision"
    )
