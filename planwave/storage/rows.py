"""How events and records become text, the same for every store."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from planwave.errors import LateWriter, NotFound, StoreError
from planwave.events import TRANSIENT, Event


def encoder_of(make: Callable[..., Any] | None) -> Callable[[Any], str]:
    """Give an encoder to compact JSON, with ``json``'s own in C where ``make`` makes one.

    ``JSONEncoder.encode`` makes one anew for each text, which costs more than most texts.
    """
    plain = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    if make is None:
        return plain.encode
    as_ascii = json.encoder.encode_basestring_ascii
    pieces = make(None, plain.default, as_ascii, None, ":", ",", False, False, False)
    return lambda value: "".join(pieces(value, 0))


encode: Final = encoder_of(getattr(json.encoder, "c_make_encoder", None))
"""JSON as plain ASCII: whatever a text holds (NUL, lone surrogates), it comes back the same."""

STATUS_OF: Final = {
    "execution.created": "starting",
    "execution.started": "executing",
    "execution.paused": "paused",
    "execution.resumed": "executing",
    "execution.completed": "completed",
    "execution.failed": "failed",
    "execution.cancelled": "cancelled",
}
"""The status of an execution after an event; other events leave it as it is."""

SETTLED: Final = ("paused", "completed", "failed", "cancelled")
"""Statuses in which a document on disk should show the last event."""

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})

EventRow = tuple[int, str, str, str | None, int | None, str]
"""``seq, at, type, path, attempt, data`` with ``data`` as JSON text."""


class Progress(NamedTuple):
    """What a batch changes about its execution; None leaves a field as it is."""

    status: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


UNCHANGED: Final = Progress()


class EventRows(NamedTuple):
    """A batch ready to be kept: rows with ``seq`` ``first..last`` without a gap."""

    rows: list[EventRow]
    first: int
    last: int
    progress: Progress
    longest: int
    """Characters of the longest ``data`` text."""


def event_rows(execution_id: str, events: Sequence[Event]) -> EventRows | None:
    """Turn a batch into rows, without transient events; None if nothing is left.

    Raises:
        StoreError: An event cannot be stored as JSON, is of another execution, or its ``seq`` does
            not follow.
    """
    rows: list[EventRow] = []
    progress = UNCHANGED
    first = last = longest = 0
    for owner, seq, at, kind, path, attempt, data in events:
        if kind in TRANSIENT:
            continue
        if owner != execution_id:
            raise StoreError(
                f"event {seq} of {owner!r} was appended to {execution_id!r}",
                code="wrong-execution",
            )
        if not rows:
            first = seq
        elif seq != last + 1:
            raise wrong_seq(execution_id, seq, last)
        last = seq
        try:
            text = encode(data)
        except (TypeError, ValueError, RecursionError) as error:
            raise StoreError(
                f"event {seq} ({kind}) of {execution_id!r} is not JSON: {error}", code="not-json"
            ) from error
        longest = max(longest, len(text))
        rows.append((seq, at, kind, path, attempt, text))
        if kind in STATUS_OF:
            progress = _progress(progress, STATUS_OF[kind], at, kind)
    return EventRows(rows, first, last, progress, longest) if rows else None


def wrong_seq(execution_id: str, seq: int, last: int) -> StoreError:
    """Give the error for a ``seq`` that does not follow ``last``."""
    if seq <= last:
        return StoreError(
            f"event {seq} of {execution_id!r} is already stored (last is {last})",
            code="duplicate-seq",
        )
    return StoreError(f"event {seq} of {execution_id!r} leaves a gap after {last}", code="seq-gap")


def unknown_execution(execution_id: str) -> StoreError:
    """Give the error for an append to an execution that was never created."""
    return StoreError(
        f"no execution {execution_id!r} is stored, so it cannot take events",
        code="unknown-execution",
    )


def late_writer(execution_id: str, epoch: int, owner: int) -> LateWriter:
    """Give the error for an append by an owner whose epoch is over."""
    return LateWriter(
        f"execution {execution_id!r} belongs to epoch {owner}; epoch {epoch} may not write any more"
    )


def no_execution(execution_id: str) -> NotFound:
    """Give the error for an execution that was never created."""
    return NotFound(f"no execution {execution_id!r} is stored")


def no_page(before: str) -> NotFound:
    """Give the error for a page that starts after an id nobody has."""
    return NotFound(f"nothing with id {before!r} is stored, so no page can follow it")


def closed() -> StoreError:
    """Give the error for a write after ``close``."""
    return StoreError("the store was closed", code="store-closed")


def encode_json(value: dict[str, Any], what: str) -> str:
    """Give JSON text of a document.

    Raises:
        StoreError: It is not JSON.
    """
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} is not JSON: {error}", code="not-json") from error


def _progress(before: Progress, status: str, at: str, kind: str) -> Progress:
    return Progress(
        status,
        before.started_at or (at if kind == "execution.started" else None),
        at if status in _ENDED else None,
    )


def event_of(execution_id: str, row: Iterable[Any]) -> Event:
    """Give the event of a row."""
    seq, at, kind, path, attempt, data = row
    return Event(execution_id, seq, at, kind, path, attempt, json.loads(data))


def storable(text: str) -> str:
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
    return storable(f"{title}\n{user_prompt}").casefold()
