"""Atomic file writes, and large values stored as files beside the database."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from planwave.errors import StoreError
from planwave.ids import UUID_PATTERN
from planwave.storage.artifacts import Artifact

ARTIFACT_DIR: Final = "artifacts"
MIGRATION_BACKUP_DIR: Final = "backups"
"""Where a database is copied to before its schema is changed."""


def require_directory(directory: Path) -> None:
    """Check that a storage directory exists, or that it can be created.

    Raises:
        StoreError: ``store-unusable``.
    """
    try:
        existing = next(
            each for each in (directory, *directory.absolute().parents) if each.exists()
        )
        if "\0" in str(directory):
            reason = "a path has no NUL character"
        elif not existing.is_dir():
            reason = f"{str(existing)!r} is not a directory"
        else:
            if existing != directory or not any(directory.iterdir()):
                # Only a trial says it: root may write in /proc, by its permissions.
                tempfile.TemporaryDirectory(dir=existing).cleanup()
            return
    except OSError as error:
        reason = error.strerror or str(error)
    raise StoreError(
        f"the storage directory {str(directory)!r} cannot be used: {reason}",
        code="store-unusable",
        hint="check its owner and permissions, or choose another directory",
    )


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically; durable when this returns.

    Raises:
        OSError: Nothing was written under ``path``.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except BaseException:
        remove_files([Path(name)])
        raise
    replace_durably(Path(name), path)
    sync_directory(path.parent)


async def write_temporary(path: Path, content: bytes) -> Path:
    """Write a temporary file beside a path, without blocking the event loop; return where it is.

    Raises:
        OSError: It cannot be written; nothing is left of it.
    """
    # Lazy: test_help_loads_no_heavy_library
    from aiofiles.tempfile import NamedTemporaryFile

    async with NamedTemporaryFile(
        "wb", prefix=f".{path.name}.", suffix=".tmp", dir=path.parent, delete=False
    ) as file:
        temporary = Path(str(file.name))
        try:
            await file.write(content)
            await file.flush()
        except BaseException:
            remove_files([temporary])
            raise
    return temporary


def replace_durably(temporary: Path, path: Path) -> None:
    """Sync a temporary file and rename it; the name is durable after ``sync_directory``.

    Raises:
        OSError: What was under ``path`` before is still there; the temporary file is removed.
    """
    try:
        handle = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        temporary.replace(path)
    except BaseException:
        remove_files([temporary])
        raise


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files; one that cannot be removed only takes up space."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporary_files(directory: Path) -> None:
    """Remove the temporary files of killed writers; only the owner of the lock may."""
    for folder in (directory, directory / ARTIFACT_DIR, directory / MIGRATION_BACKUP_DIR):
        for unfinished in folder.glob(".*.tmp"):
            unfinished.unlink(missing_ok=True)


def free_bytes(directory: Path) -> int:
    """Return the free bytes of the disk of a directory."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


CHECK_INTERVAL_S = 0.02
"""The interval of checks that the files still exist. A check with each commit would slow small writes
down by a tenth, and writes acknowledged just before are lost with the files anyway."""


class FileIdentity:
    """The identity of files that must not be deleted, moved or replaced while they are written.

    A process with an open file does not notice these changes, and its writes would be lost.

    Raises:
        OSError: A file does not exist.
    """

    def __init__(self, *paths: Path) -> None:
        self._files = [(str(path), _identity(str(path))) for path in paths]
        self._checked_at = 0.0

    def check(self) -> None:
        """Check that all files are the same, unless checked just before; some microseconds.

        Raises:
            OSError: A file is missing or was replaced.
        """
        now = monotonic()
        if now - self._checked_at < CHECK_INTERVAL_S:
            return
        self._checked_at = now
        for path, identity in self._files:
            try:
                is_same = _identity(path) == identity
            except FileNotFoundError:
                is_same = False
            if not is_same:
                raise OSError(errno.ENOENT, "it was deleted, moved or replaced while in use", path)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)  # twice as fast as Path.stat
    return status.st_dev, status.st_ino


def write_artifact(directory: Path, artifact: Artifact) -> None:
    """Write a large value, unless it exists.

    Raises:
        OSError: The file cannot be written.
    """
    digest, content = artifact
    folder = directory / ARTIFACT_DIR
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory)
    path = folder / f"{digest}.json"
    if not path.exists():
        write_atomically(path, content)


def delete_artifact(directory: Path, digest: str) -> None:
    """Remove a large value; if that fails, its file only takes up space."""
    with suppress(OSError):
        (directory / ARTIFACT_DIR / f"{digest}.json").unlink(missing_ok=True)


def delete_document(directory: Path, execution_id: str) -> None:
    """Remove the JSON document of an execution, if it exists."""
    if UUID_PATTERN.fullmatch(execution_id):
        with suppress(OSError):
            (directory / f"{execution_id}.json").unlink(missing_ok=True)


def read_artifact(directory: Path, digest: str) -> bytes | None:
    """Return a large value; None if its file is missing, or no file.

    Raises:
        StoreError: ``store-unreadable``.
    """
    path = directory / ARTIFACT_DIR / f"{digest}.json"
    try:
        return None if path.is_fifo() else path.read_bytes()  # to open a pipe would wait
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"the large result {digest} cannot be read: {error.strerror}",
            code="store-unreadable",
            hint="check the disk and the owner of the storage directory, then try again",
        ) from error
