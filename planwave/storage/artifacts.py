"""Large values, which are stored apart from the events that have them, under the hash of their JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final

from planwave.events import Event
from planwave.events.unreadable import unreadable_error
from planwave.jsonio import dumps_exact

_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

_FIELDS: Final = ("outputs", "streamed")
"""The fields of an event whose values may be stored apart: ``{name: {"type", "value"}}``."""

Artifact = tuple[str, bytes]
"""sha256 of a large value's JSON, and the JSON."""

ReadArtifact = Callable[[str], bytes | None]
"""Returns the JSON under a hash, None where it is missing; raises ``StoreError`` if it cannot be read."""


def offload_artifacts(event: Event, limit: int) -> tuple[Event, list[Artifact]]:
    """Replace an event's output values, and streamed texts, of more than ``limit`` bytes of JSON by their hashes."""
    artifacts: list[Artifact] = []
    for field in _FIELDS:
        event, offloaded = _offload(event, field, limit)
        artifacts += offloaded
    return event, artifacts


def _offload(event: Event, field: str, limit: int) -> tuple[Event, list[Artifact]]:
    outputs: Any = event.data.get(field)
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
    return event._replace(data={**event.data, field: smaller}), artifacts


def load_artifacts(event: Event, read: ReadArtifact) -> Event:
    """Replace the hashes in a stored event by their large values.

    Raises:
        Conflict: A value is missing or was changed; see ``unreadable_error``.
        StoreError: ``store-unreadable``.
    """
    for field in _FIELDS:
        event = _load(event, field, read)
    return event


def _load(event: Event, field: str, read: ReadArtifact) -> Event:
    outputs: Any = event.data.get(field)
    if not isinstance(outputs, dict):
        return event
    whole: dict[str, Any] = {}
    for handle, output in outputs.items():  # pyright: ignore[reportUnknownVariableType]
        if _is_offloaded(output):
            value = _read_value(read, event.execution_id, output["artifact"])  # pyright: ignore[reportUnknownArgumentType]
            whole[handle] = {"type": output.get("type"), "value": value}  # pyright: ignore[reportUnknownMemberType]
        else:
            whole[handle] = output
    return event._replace(data={**event.data, field: whole})


def _is_offloaded(output: Any) -> bool:
    return isinstance(output, dict) and "artifact" in output and "value" not in output


def _read_value(read: ReadArtifact, execution_id: str, digest: Any) -> Any:
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise unreadable_error(execution_id, "the reference to a large result is invalid")
    content = read(digest)
    if content is None:
        raise unreadable_error(execution_id, f"its large result {digest} is missing")
    if hashlib.sha256(content).hexdigest() != digest:
        raise unreadable_error(execution_id, f"its large result {digest} was changed")
    return json.loads(content)
