"""Atomic file writes, and large values stored as files beside the database."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from planwave.errors import StoreError
from planwave.events import Event
from planwave.events.unreadable import unreadable_error
from planwave.ids import UUID_PATTERN
from planwave.jsonio import dumps_exact

ARTIFACT_DIR: Final = "artifacts"
MIGRATION_BACKUP_DIR: Final = "backups"
"""Where a database is copied to before its schema is changed."""
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

Artifact = tuple[str, bytes]
"""sha256 of a large value's JSON, and the JSON."""


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


def offload_artifacts(event: Event, limit: int) -> tuple[Event, list[Artifact]]:
    """Replace an event's output values of more than ``limit`` bytes of JSON by their hashes."""
    outputs: Any = event.data.get("outputs")
    if not isinstance(outputs, dict):
        return event, []
    smaller: dict[str, Any] = {}
    artifacts: list[Artifact] = []
    for handle, output in outputs.items():  # pyright: ignore[reportUnknownVariableType]
        smaller[handle] = output
        content = dumps_exact(output.get("value")).encode() if isinstance(output, dict) else b""  # pyright: ignore[reportUnknownMemberType]
        if len(content) > limit:
            digest = hashlib.sha256(content).hexdigest()
            artifacts.append((digest, content))
            smaller[handle] = {"type": output["type"], "artifact": digest, "bytes": len(content)}
    if not artifacts:
        return event, []
    return event._replace(data={**event.data, "outputs": smaller}), artifacts


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


def load_artifacts(event: Event, directory: Path) -> Event:
    """Replace the hashes in a stored event by their large values.

    Raises:
        Conflict: A value is missing or was changed; see ``unreadable_error``.
        StoreError: ``store-unreadable``.
    """
    outputs: Any = event.data.get("outputs")
    if not isinstance(outputs, dict):
        return event
    whole: dict[str, Any] = {}
    for handle, output in outputs.items():  # pyright: ignore[reportUnknownVariableType]
        if _is_offloaded(output):
            value = _read_artifact(directory, event.execution_id, output["artifact"])  # pyright: ignore[reportUnknownArgumentType]
            whole[handle] = {"type": output.get("type"), "value": value}  # pyright: ignore[reportUnknownMemberType]
        else:
            whole[handle] = output
    return event._replace(data={**event.data, "outputs": whole})


def artifact_digests(batch: str) -> set[str]:
    """Return the hashes of the large values in a stored batch of events."""
    digests: set[str] = set()
    for _, _, data, *_ in json.loads(batch):
        outputs: Any = data.get("outputs")
        if isinstance(outputs, dict):
            values: list[Any] = list(outputs.values())  # pyright: ignore[reportUnknownArgumentType]
            digests.update(str(value["artifact"]) for value in values if _is_offloaded(value))
    return digests


def _is_offloaded(output: Any) -> bool:
    return isinstance(output, dict) and "artifact" in output and "value" not in output


def _read_artifact(directory: Path, execution_id: str, digest: Any) -> Any:
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise unreadable_error(execution_id, "the reference to a large result is invalid")
    path = directory / ARTIFACT_DIR / f"{digest}.json"
    try:
        if path.is_fifo():  # to open it would wait for its other end
            raise unreadable_error(execution_id, f"its large result {digest} was changed")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise unreadable_error(execution_id, f"its large result {digest} is missing") from error
    except OSError as error:
        raise StoreError(
            f"the large result {digest} cannot be read: {error.strerror}",
            code="store-unreadable",
            hint="check the disk and the owner of the storage directory, then try again",
        ) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise unreadable_error(execution_id, f"its large result {digest} was changed")
    return json.loads(content)
