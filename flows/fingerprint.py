"""What identifies a stage's result, and why a stored one does not fit.

The identity of a computation is its configuration, the content of its inputs and external files, the code it can
reach and the versions of the libraries that code imports. Comments, docstrings and formatting do not count.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import components
from components.artifacts import Artifact, digest_bytes, digest_file, digest_json
from components.contract import StageConfig
from components.errors import InputError

Identity = dict[str, Any]

# Import name -> distribution name, for the libraries whose version can change a result.
_DISTRIBUTIONS = {
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "gensim": "gensim",
    "sklearn": "scikit-learn",
    "scipy": "scipy",
    "numpy": "numpy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "datasets": "datasets",
    "datasketch": "datasketch",
    "rjieba": "rjieba",
    "jieba": "jieba",
    "snownlp": "snownlp",
    "matplotlib": "matplotlib",
}


def identity_of(stage: str, module: str, config: StageConfig, inputs: Mapping[str, tuple[Artifact, ...]]) -> Identity:
    """Everything that determines a stage's result, as JSON; its digest is the cache key.

    Args:
        stage: Name of the stage function.
        module: Module that defines it, such as ``components.bert.stage``.
        config: Its configuration.
        inputs: Input artifacts by argument name.

    Raises:
        InputError: A file named by the configuration does not exist.
    """
    sources, libraries = reachable_code(module)
    return {
        "stage": stage,
        "config": json.loads(config.model_dump_json()),
        "files": {str(path): _digest_external(path) for path in config.external_files()},
        "inputs": {name: [artifact.digest for artifact in artifacts] for name, artifacts in inputs.items()},
        "source": dict(sources),
        "versions": {name: importlib.metadata.version(name) for name in libraries},
    }


def key_of(identity: Identity) -> str:
    """The cache key: SHA-256 of the identity. Where external files lie does not count; order and content do."""
    return digest_json({**identity, "files": list(identity["files"].values())})


def _digest_external(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", file=path, remedy="correct the path in pipelines.yaml"
        ) from error


_reading = threading.RLock()
"""Threads that ask for the same code wait for one of them; and Python 3.11 fails at random when two threads parse at
once (CPython issue 106905)."""


def reachable_code(module: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The modules of ``components`` that ``module`` can reach, with digests, and the libraries they import."""
    with _reading:
        return _reachable_code(module)


@cache
def _reachable_code(module: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    pending, digests, libraries = [module], {}, set()
    while pending:
        name = pending.pop()
        if name in digests or (path := _module_file(name)) is None:
            continue
        digests[name], imported = _digest_and_imports(path)
        libraries |= {_DISTRIBUTIONS[root] for item in imported if (root := item.split(".")[0]) in _DISTRIBUTIONS}
        pending += [item for item in imported if item.startswith("components.")]
    return tuple(sorted(digests.items())), tuple(sorted(libraries))


@cache
def _digest_and_imports(path: Path) -> tuple[str, frozenset[str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = frozenset(_imported_modules(tree))
    return digest_bytes(ast.dump(_without_docstrings(tree)).encode())[:16], imported


def forget_code() -> None:
    """Read the code again when it is asked for next."""
    for function in (_reachable_code, _digest_and_imports, _stage_inputs):
        function.cache_clear()


def _module_file(name: str) -> Path | None:
    """The file of a module of ``components``, found without importing anything (which would load torch)."""
    parts = name.split(".")[1:]
    for root in components.__path__:
        stem = Path(root, *parts)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None


def _imported_modules(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # "from components.bert import masking" may import a module or a name: try both.
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [item for item in body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def stage_inputs(module: str, function: str) -> dict[str, bool]:
    """Names of a stage function's keyword-only arguments, True where required; read without importing the module."""
    with _reading:
        return _stage_inputs(module, function)


@cache
def _stage_inputs(module: str, function: str) -> dict[str, bool]:
    path = _module_file(module)
    assert path is not None, f"no module {module}"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            return {argument.arg: default is None for argument, default in pairs}
    raise AssertionError(f"{module} defines no function {function}")


def differences(stored: Identity, wanted: Identity) -> list[str]:
    """Where two identities differ, a line each, such as ``config.mlm_probability 0.15 → 0.2``."""
    old, new = _flatten(stored), _flatten(wanted)
    return [
        _describe(name, old.get(name), new.get(name)) for name in sorted({*old, *new}) if old.get(name) != new.get(name)
    ]


def _describe(name: str, old: Any, new: Any) -> str:
    section = name.split(".")[0]
    if section in {"inputs", "source", "files"}:
        what = {"inputs": "input", "source": "code", "files": "file"}[section]
        state = "added" if old is None else "gone" if new is None else "changed"
        return f"{what} {name.split('.', 1)[1]} {state}"
    return f"{name} {'unset' if old is None else old} → {'unset' if new is None else new}"


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {name: leaf for key, item in value.items() for name, leaf in _flatten(item, f"{prefix}{key}.").items()}
    return {prefix.rstrip("."): value}


def why_not_reused(manifests: list[dict[str, Any]], wanted: Identity) -> list[str]:
    """Differences to the most similar stored result; empty when the stage never ran here."""
    reports = [differences(manifest["identity"], wanted) for manifest in manifests if "identity" in manifest]
    return min(reports, key=len, default=[])
