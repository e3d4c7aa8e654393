"""Encoding of events and records as stored text, the same for every store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_args

from pydantic import TypeAdapter, ValidationError

from planwave.errors import StoreError
from planwave.events import TRANSIENT, Event
from planwave.events.request_text import is_timer
from planwave.events.types import TypedEvent, UsageData, engine_type
from planwave.events.unreadable import unreadable_error
from planwave.jsonio import dumps_exact
from planwave.storage.artifacts import ReadArtifact, load_artifacts
from planwave.storage.errors import unexpected_seq

if TYPE_CHECKING:
    from planwave.shapes.common import ExecutionStatus

STATUS_AFTER: Final[Mapping[str, ExecutionStatus]] = {
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

OPEN_STATUSES: Final = ("starting", "executing", "paused")
"""Statuses of executions that have not ended."""
ACTIVE_STATUSES: Final = ("executing", "paused")
"""Statuses in which an execution has begun and not ended."""

ENDED_STATUSES: Final = ("completed", "failed", "cancelled")
"""Statuses that never change again."""

WAITING_NOTICE: Final = "execution.waiting"
"""An execution, or a node of it, asks a person."""

NOTICES: Final = (
    "execution.completed", "execution.failed", "execution.cancelled", WAITING_NOTICE,
)  # fmt: skip
"""What people outside planwave can be notified of."""

_NOTICED: Final = frozenset({*NOTICES, "execution.paused", "node.waiting"})
"""Events that may be one of these."""

_REQUEST_ID: Final = re.compile("r([0-9]{1,18})", re.ASCII)
_ANSWERS: Final = ("node.answered", "execution.resumed")
"""Events that may have the answer to a request; its id is ``r`` and the ``seq`` that asked it."""


class StatusChange(NamedTuple):
    """The fields of an execution that a batch changes; None leaves a field unchanged."""

    status: ExecutionStatus | None = None
    started_at: str | None = None
    completed_at: str | None = None


NO_CHANGE: Final = StatusChange()


class BatchAnswer(NamedTuple):
    """An answer among events: the ``seq`` of the request, that of the answer, and its time."""

    request: int
    answer: int
    at: str


class BatchNotice(NamedTuple):
    """An event that people may be notified of: its ``seq``, what it tells (``NOTICES``), its time."""

    seq: int
    event: str
    at: str


class EncodedBatch(NamedTuple):
    """Events to store: ``seq`` ``first..last`` without a gap."""

    first: int
    last: int
    text: str
    """JSON: ``[[at, type, data, path?, attempt?], …]``, one for each ``seq`` from ``first``."""
    status_change: StatusChange
    answers: tuple[BatchAnswer, ...] = ()
    notices: tuple[BatchNotice, ...] = ()


def encode_batch(execution_id: str, events: Sequence[Event]) -> EncodedBatch | None:
    """Encode events as one row, without transient events; None if there are no others.

    Raises:
        StoreError: An event is not JSON, belongs to another execution, or its ``seq`` does not
            follow.
    """
    rows: list[tuple[Any, ...]] = []
    change = NO_CHANGE
    first = last = 0
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
            raise unexpected_seq(execution_id, seq, last)
        last = seq
        if attempt is not None:
            rows.append((at, kind, data, path, attempt))
        else:
            rows.append((at, kind, data) if path is None else (at, kind, data, path))
        if kind in STATUS_AFTER:
            change = _status_change(change, STATUS_AFTER[kind], at, kind)
    if not rows:
        return None
    try:
        text = dumps_exact(rows)
        return EncodedBatch(
            first, last, text, change, answers_of(rows, first), _notices_of(rows, first)
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json_error(execution_id, events, error) from error


def _notices_of(rows: Iterable[Any], first: int) -> tuple[BatchNotice, ...]:
    """Return what people may be notified of among rows ``(at, type, data, …)`` of events."""
    return tuple(
        BatchNotice(seq, event, at)
        for seq, (at, kind, data, *_) in enumerate(rows, first)
        if kind in _NOTICED and (event := _notice_of(kind, data)) is not None
    )


def _notice_of(kind: str, data: Any) -> str | None:
    """Return what an event tells people, among ``NOTICES``; None where it tells them nothing."""
    if kind in NOTICES:
        return kind
    match data:
        case {"request_id": str(), **rest} if not is_timer(rest.get("request")):
            return WAITING_NOTICE
        case _:
            return None


def answers_of(rows: Iterable[Any], first: int) -> tuple[BatchAnswer, ...]:
    """Return the answers among rows ``(at, type, data, …)`` of events, ``seq`` from ``first``."""
    answers: list[BatchAnswer] = []
    for seq, row in enumerate(rows, first):
        match row:
            case (str(at), kind, {"request_id": str(request_id)}, *_) if kind in _ANSWERS:
                if name := _REQUEST_ID.fullmatch(request_id):
                    answers.append(BatchAnswer(int(name[1]), seq, at))
            case _:
                continue
    return tuple(answers)


def asks_person(text: str, first: int, seq: int) -> bool:
    """Return whether the event ``seq``, in the text of a batch, is a request to a person."""
    match stored_rows(text)[seq - first : seq - first + 1]:
        case [[_, _, {"request_id": request_id, **data}, *_]]:
            return request_id == f"r{seq}" and not is_timer(data.get("request"))
        case _:
            return False


def stored_rows(text: str) -> list[Any]:
    """Return the rows of a batch; none where they are unreadable, which reading the events tells."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return cast("list[Any]", rows) if isinstance(rows, list) else []


def _not_json_error(execution_id: str, events: Sequence[Event], cause: Exception) -> StoreError:
    """Return the error for a batch that is not JSON; it names the first invalid event."""
    for event in events:
        try:
            dumps_exact(event)
        except (TypeError, ValueError, RecursionError) as error:
            return StoreError(
                f"event {event.seq} ({event.type}) of {execution_id!r} is not JSON: {error}",
                code="not-json",
            )
    return StoreError(f"events of {execution_id!r} are not JSON: {cause}", code="not-json")


def encode_document(value: dict[str, Any], what: str, *, plain: bool = False) -> str:
    """Encode a document as JSON; see ``dumps_exact``.

    Raises:
        StoreError: The document is not JSON.
    """
    try:
        return dumps_exact(value, plain=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} is not JSON: {error}", code="not-json") from error


def _status_change(
    before: StatusChange, status: ExecutionStatus, at: str, kind: str
) -> StatusChange:
    return StatusChange(
        status,
        before.started_at or (at if kind == "execution.started" else None),
        at if status in ENDED_STATUSES else None,
    )


def decode_events(
    execution_id: str,
    rows: Iterable[tuple[int, str]],
    after: int,
    limit: int | None,
    read_artifact: ReadArtifact | None = None,
) -> list[Event]:
    """Decode and validate rows ``(first, text)`` of events.

    Args:
        execution_id: The execution that they belong to.
        rows: The rows in order.
        after: Events up to this ``seq`` are left out.
        limit: The most events to return; None for all.
        read_artifact: Reads a large value; None for rows with all values.

    Raises:
        Conflict: ``unreadable``: planwave did not store the rows in this form.
        StoreError: ``store-unreadable``.
    """
    events: list[Event] = []
    for first, text in rows:
        if limit is not None and len(events) >= limit:
            break
        batch = [
            _decode_event(execution_id, seq, *row)
            for seq, row in enumerate(_decode_row(execution_id, text), first)
            if seq > after
        ]
        # A cheap look first: hardly any event has values stored elsewhere.
        if read_artifact is not None and '"artifact":' in text:
            batch = [load_artifacts(event, read_artifact) for event in batch]
        events += batch
    events = events if limit is None else events[: max(limit, 0)]
    validate_payloads(events)
    return events


def _decode_row(execution_id: str, text: str) -> list[Any]:
    try:
        row = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise unreadable_error(execution_id, f"its events are not JSON: {error}") from error
    if not isinstance(row, list):
        raise unreadable_error(execution_id, "a row of its events is not a list")
    return cast("list[Any]", row)


def _decode_event(
    execution_id: str,
    seq: int,
    at: Any = None,
    kind: Any = None,
    data: Any = None,
    path: Any = None,
    attempt: Any = None,
    *rest: Any,
) -> Event:
    if (
        type(at) is type(kind) is str
        and type(data) is dict
        and (path is None or type(path) is str)
        and (attempt is None or type(attempt) is int)
        and not rest
    ):
        return Event(execution_id, seq, at, kind, path, attempt, data)
    raise unreadable_error(execution_id, f"event {seq} has an invalid form")


def storable_text(text: str) -> str:
    """Return text that every database can hold.

    Surrogate pairs become one character; lone ones, and NUL, which PostgreSQL does not store, U+FFFD.

    For the searched columns; events and documents store the exact text, as JSON.
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def search_key(title: str, user_prompt: str) -> str:
    """Return the text that a case-insensitive substring search matches."""
    return storable_text(f"{title}\n{user_prompt}").casefold()


_PAYLOADS: Final[Mapping[str, Any]] = {
    get_args(type_name)[0]: payload for type_name, payload in map(get_args, get_args(TypedEvent))
}
"""The payload types by event type."""


def validate_payloads(events: Iterable[Event]) -> None:
    """Check that each payload has the form of its type.

    Raises:
        Conflict: ``unreadable``.
    """
    for event in events:
        _, _, _, event_type, _, _, data = event
        if event_type == "node.event" and (own_type := engine_type(data)) is not None:
            event_type, data = own_type, data.get("data")
        adapter = _adapter(event_type)
        if adapter is not None and not adapter.validator.isinstance_python(data, strict=True):
            raise unreadable_error(event.execution_id, _error_text(event, adapter, data))


@cache
def _adapter(event_type: str) -> TypeAdapter[Any] | None:
    """Return the validation of a type's payload, None where it may be any object."""
    payload = _PAYLOADS.get(event_type, UsageData)
    return None if payload is UsageData else TypeAdapter(payload)


def _error_text(event: Event, adapter: TypeAdapter[Any], data: Any) -> str:
    try:
        adapter.validate_python(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, ("data", *first["loc"])))
        return f"{field} of event {event.seq} ({event.type}): {first['msg']}"
    return f"the data of event {event.seq} ({event.type}) are invalid"
