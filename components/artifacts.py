"""Artifacts: folders that are complete, described by a manifest, and never change once published.

A stage writes into a scratch folder; ``publish`` hashes every file, writes ``manifest.json`` and renames the folder
into the store in one step. A reader therefore sees a whole artifact or none, whatever was killed meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import ArtifactError

MANIFEST = "manifest.json"


def digest_bytes(data: bytes) -> str:
    """SHA-256 of ``data`` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's content, read in blocks so that memory does not grow with the file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_json(value: Any) -> str:
    """SHA-256 of a JSON value in one canonical spelling (sorted keys, no white space)."""
    return digest_bytes(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that ``path`` holds the old or the new content, never a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush every file below ``folder``, and the folders themselves, to the disk."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def hash_folder(folder: Path) -> dict[str, dict[str, Any]]:
    """SHA-256 and size of every file below ``folder`` except the manifest, by relative POSIX path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {
        path.relative_to(folder).as_posix(): {"sha256": digest_file(path), "size": path.stat().st_size}
        for path in paths
    }


@dataclass(frozen=True)
class Artifact:
    """A published result of a stage."""

    path: Path
    stage: str
    key: str
    """Identifies the computation: stage, source, configuration, inputs and library versions."""
    digest: str
    """Identifies the content: SHA-256 over the names and hashes of all files."""
    metrics: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    """What else the manifest says: config, input digests, source digest, versions, seconds, tracking run id."""

    @property
    def size_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(entry["size"] for entry in self.details["files"].values())


def publish(
    scratch: Path, final: Path, *, stage: str, key: str, metrics: Mapping[str, float], details: Mapping[str, Any]
) -> Artifact:
    """Turn a scratch folder into the artifact ``final``: hash, describe, flush, rename.

    Args:
        scratch: Folder on the same file system as ``final``; gone afterwards.
        final: Where the artifact lives from now on. An artifact already there wins, as it has the same key.
        stage: Name of the stage function.
        key: Cache key, 64 hexadecimal digits.
        metrics: Final metrics.
        details: Further JSON values for the manifest.

    Raises:
        ArtifactError: ``scratch`` holds no file.
    """
    files = hash_folder(scratch)
    if not files:
        raise ArtifactError(f"stage {stage} wrote no file into {scratch}")
    digest = digest_json({name: entry["sha256"] for name, entry in files.items()})
    manifest = {**details, "stage": stage, "key": key, "digest": digest, "metrics": dict(metrics), "files": files}
    write_atomic(scratch / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode())
    sync_folder(scratch)
    final.parent.mkdir(parents=True, exist_ok=True)
    if not final.exists():
        scratch.replace(final)
    else:
        shutil.rmtree(scratch)
    return open_artifact(final, verify=False)


def open_artifact(path: Path, *, verify: bool = True) -> Artifact:
    """Read an artifact's manifest and, unless told otherwise, check every file against it.

    Raises:
        ArtifactError: No manifest, a missing or additional file, or content that differs from its hash.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: no readable {MANIFEST} ({error})") from error
    if verify and (found := hash_folder(path)) != manifest["files"]:
        names = sorted(name for name in {*found, *manifest["files"]} if found.get(name) != manifest["files"].get(name))
        raise ArtifactError(f"{path}: damaged, {', '.join(names[:5])} differ from the manifest")
    details = {name: value for name, value in manifest.items() if name not in {"stage", "key", "digest", "metrics"}}
    return Artifact(path, manifest["stage"], manifest["key"], manifest["digest"], manifest["metrics"], details)


@dataclass(frozen=True)
class Store:
    """The artifact store: ``artifacts/<stage>/<key>`` plus scratch, checkpoints and locks below one root."""

    root: Path

    def artifact_path(self, stage: str, key: str) -> Path:
        """Where the artifact with this key is or will be."""
        return self.root / "artifacts" / stage / key[:32]

    def checkpoint_dir(self, stage: str, key: str) -> Path:
        """Folder for a stage's training checkpoints; kept across kills, dropped when the artifact is published."""
        return self.root / "checkpoints" / stage / key[:32]

    def drop_checkpoints(self, stage: str, key: str) -> None:
        """Remove the checkpoints of a stage whose artifact is published."""
        shutil.rmtree(self.checkpoint_dir(stage, key), ignore_errors=True)

    def find(self, stage: str, key: str) -> Artifact | None:
        """The verified artifact with this key, or None.

        Raises:
            ArtifactError: The artifact is there but damaged.
        """
        path = self.artifact_path(stage, key)
        if not path.exists():
            return None
        artifact = open_artifact(path)
        if artifact.key != key:
            raise ArtifactError(f"{path}: manifest carries another key than its folder")
        return artifact

    def set_aside(self, stage: str, key: str) -> Path:
        """Move a damaged artifact out of the way, keeping it for inspection."""
        damaged = Path(tempfile.mkdtemp(dir=self._folder("damaged"), prefix=f"{stage}-{key[:12]}-"))
        self.artifact_path(stage, key).replace(damaged / "artifact")
        return damaged

    @contextlib.contextmanager
    def scratch(self, stage: str) -> Iterator[Path]:
        """A fresh empty folder on the store's file system, removed on exit if still there."""
        folder = Path(tempfile.mkdtemp(dir=self._folder("scratch"), prefix=f"{os.getpid()}-{stage}-"))
        # mkdtemp makes it private; a published artifact follows the user's umask like any other folder.
        folder.chmod(0o777 & ~_umask())
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def remove_stale_scratch(self) -> list[Path]:
        """Remove scratch folders of processes that no longer run (killed before they could clean up)."""
        stale = [path for path in self._folder("scratch").iterdir() if not _is_running(int(path.name.split("-", 1)[0]))]
        for path in stale:
            shutil.rmtree(path, ignore_errors=True)
        return stale

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock across processes and threads; the kernel releases it when its holder dies."""
        with (self._folder("locks") / f"{name}.lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(stream, fcntl.LOCK_UN)

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
