"""Files that are whole or absent, and large values kept beside the database."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from planwave.errors import StoreError
from planwave.events import Event
from planwave.storage.rows import encode

ARTIFACT_DIR: Final = "artifacts"
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

Artifact = tuple[str, str]
"""sha256 of the text, and the JSON text."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that survives a power cut once this returns; never a half one.

    Raises:
        OSError: Nothing was written under ``path``.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_unfinished(directory: Path) -> None:
    """Remove what writers that were killed half-way left; only the lock's holder may."""
    for folder in (directory, directory / ARTIFACT_DIR):
        for unfinished in folder.glob(".*.tmp"):
            unfinished.unlink(missing_ok=True)


def put_aside(event: Event, limit: int) -> tuple[Event, list[Artifact]]:
    """Replace an event's output values of more than ``limit`` bytes of JSON by their hashes."""
    outputs: Any = event.data.get("outputs")
    if not isinstance(outputs, dict):
        return event, []
    kept: dict[str, Any] = {}
    artifacts: list[Artifact] = []
    for handle, output in outputs.items():  # pyright: ignore[reportUnknownVariableType]
        kept[handle] = output
        text = encode(output.get("value")) if isinstance(output, dict) else ""  # pyright: ignore[reportUnknownMemberType]
        if len(text) > limit:
            digest = hashlib.sha256(text.encode("ascii")).hexdigest()
            artifacts.append((digest, text))
            kept[handle] = {"type": output["type"], "artifact": digest, "bytes": len(text)}
    if not artifacts:
        return event, []
    return event._replace(data={**event.data, "outputs": kept}), artifacts


def write_artifact(directory: Path, artifact: Artifact) -> None:
    """Keep a large value; one that is there already is not written again.

    Raises:
        OSError: It cannot be kept.
    """
    digest, text = artifact
    folder = directory / ARTIFACT_DIR
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_directory(directory)
    path = folder / f"{digest}.json"
    if not path.exists():
        write_whole(path, text.encode("ascii"))


def bring_back(event: Event, directory: Path) -> Event:
    """Put large values back into an event that was stored with their hashes.

    Raises:
        StoreError: A value is gone or is not what was stored.
    """
    outputs: Any = event.data.get("outputs")
    if not isinstance(outputs, dict):
        return event
    whole: dict[str, Any] = {}
    for handle, output in outputs.items():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(output, dict) and "artifact" in output and "value" not in output:
            value = _read_artifact(directory, output["artifact"])  # pyright: ignore[reportUnknownArgumentType]
            whole[handle] = {"type": output["type"], "value": value}
        else:
            whole[handle] = output
    return event._replace(data={**event.data, "outputs": whole})


def _read_artifact(directory: Path, digest: Any) -> Any:
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise StoreError("a stored result names no valid artifact", code="artifact-invalid")
    path = directory / ARTIFACT_DIR / f"{digest}.json"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"the large result {digest} cannot be read: {error}", code="artifact-missing"
        ) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise StoreError(f"the large result {digest} was changed on disk", code="artifact-invalid")
    return json.loads(content)
