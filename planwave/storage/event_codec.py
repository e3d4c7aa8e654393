"""How events and records become stored text and are read back, the same for every store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from planwave.errors import StoreError
from planwave.events import TRANSIENT, Event
from planwave.jsonio import dumps_exact
from planwave.storage.errors import unexpected_seq

STATUS_AFTER: Final = {
    "execution.created": "starting",
    "execution.started": "executing",
    "execution.paused": "paused",
    "execution.resumed": "executing",
    "execution.completed": "completed",
    "execution.failed": "failed",
    "execution.cancelled": "cancelled",
}
"""The status of an execution after an event; other events leave it as it is."""

SETTLED_STATUSES: Final = ("paused", "completed", "failed", "cancelled")
"""Statuses in which a document on disk should show the last event."""

ACTIVE_STATUSES: Final = ("executing", "paused")
"""Statuses in which an execution has begun and not ended."""

ENDED_STATUSES: Final = ("completed", "failed", "cancelled")
"""Statuses that never change again."""


class StatusChange(NamedTuple):
    """What a batch changes about its execution; None leaves a field as it is."""

    status: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


NO_CHANGE: Final = StatusChange()


class EncodedBatch(NamedTuple):
    """Events ready to be kept: ``seq`` ``first..last`` without a gap."""

    first: int
    last: int
    text: str
    """JSON: ``[[at, type, data, path?, attempt?], …]``, one for each ``seq`` from ``first``."""
    status_change: StatusChange


def encode_batch(execution_id: str, events: Sequence[Event]) -> EncodedBatch | None:
    """Turn events into one row, without transient events; None if nothing is left.

    Raises:
        StoreError: An event cannot be stored as JSON, is of another execution, or its ``seq`` does
            not follow.
    """
    kept: list[tuple[Any, ...]] = []
    progress = NO_CHANGE
    first = last = 0
    for owner, seq, at, kind, path, attempt, data in events:
        if kind in TRANSIENT:
            continue
        if owner != execution_id:
            raise StoreError(
                f"event {seq} of {owner!r} was appended to {execution_id!r}",
                code="wrong-execution",
            )
        if not kept:
            first = seq
        elif seq != last + 1:
            raise unexpected_seq(execution_id, seq, last)
        last = seq
        if attempt is not None:
            kept.append((at, kind, data, path, attempt))
        else:
            kept.append((at, kind, data) if path is None else (at, kind, data, path))
        if kind in STATUS_AFTER:
            progress = _status_change(progress, STATUS_AFTER[kind], at, kind)
    if not kept:
        return None
    try:
        return EncodedBatch(first, last, dumps_exact(kept), progress)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json_error(execution_id, events, error) from error


def _not_json_error(execution_id: str, events: Sequence[Event], found: Exception) -> StoreError:
    """Give the error for a batch that is not JSON, naming the first event that is not."""
    for event in events:
        try:
            dumps_exact(event)
        except (TypeError, ValueError, RecursionError) as error:
            return StoreError(
                f"event {event.seq} ({event.type}) of {execution_id!r} is not JSON: {error}",
                code="not-json",
            )
    return StoreError(f"events of {execution_id!r} are not JSON: {found}", code="not-json")


def encode_document(value: dict[str, Any], what: str, *, plain: bool = False) -> str:
    """Give JSON text of a document; see :func:`dumps_exact`.

    Raises:
        StoreError: It is not JSON.
    """
    try:
        return dumps_exact(value, plain=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} is not JSON: {error}", code="not-json") from error


def _status_change(before: StatusChange, status: str, at: str, kind: str) -> StatusChange:
    return StatusChange(
        status,
        before.started_at or (at if kind == "execution.started" else None),
        at if status in ENDED_STATUSES else None,
    )


def decode_events(
    execution_id: str, rows: Iterable[tuple[int, str]], after: int, limit: int | None
) -> list[Event]:
    """Give the events of rows ``(first, text)`` in order, from ``after`` on, at most ``limit``."""
    found: list[Event] = []
    for first, text in rows:
        if limit is not None and len(found) >= limit:
            break
        for seq, row in enumerate(json.loads(text), first):
            if seq > after:
                found.append(_decode_event(execution_id, seq, *row))
    return found if limit is None else found[: max(limit, 0)]


def _decode_event(
    execution_id: str,
    seq: int,
    at: str,
    kind: str,
    data: dict[str, Any],
    path: str | None = None,
    attempt: int | None = None,
) -> Event:
    return Event(execution_id, seq, at, kind, path, attempt, data)


def storable_text(text: str) -> str:
    """Give text that UTF-8 can hold: surrogate pairs become one character, lone ones U+FFFD.

    For the columns people search by; events and documents keep the text exactly, as JSON.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def search_key(title: str, user_prompt: str) -> str:
    """Give the text that a case-insensitive substring search looks through."""
    return storable_text(f"{title}\n{user_prompt}").casefold()
