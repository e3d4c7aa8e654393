"""Streams of server-sent events of other services, read through the guarded client."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import LimitExceeded, OutboundError, PlanwaveError
from planwave.nodes.secrets import secret_names, with_secrets

if TYPE_CHECKING:
    from planwave.nodes.secrets import Secret
from planwave.outbound.client import OutboundClient

_TYPE: Final = "text/event-stream"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
SILENCE_S: Final = 300.0
"""How long a stream may send nothing, not even a comment, before the connection counts as lost."""


class StreamEvent(NamedTuple):
    """One event.

    Attributes:
        id: The last one that the stream gave, "" for none.
        has_own_id: Whether this event gave it; else an earlier event did.
    """

    event: str
    data: str
    id: str
    has_own_id: bool


class EventStreamEnded(OutboundError):
    """The service says that nothing more comes, and asks not to connect again (204)."""


class StreamParser:
    """A parser of server-sent events (WHATWG HTML, section 9.2).

    Args:
        last_id: The last id before the connection.
        max_bytes: The limit ``fetch_bytes`` for one event.
    """

    def __init__(self, last_id: str, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = b""
        self._is_at_start = True
        self._is_after_return = False
        self._id = last_id
        self._has_own_id = False
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a chunk completes.

        Raises:
            LimitExceeded: An event is larger than ``fetch_bytes``.
        """
        if self._is_after_return:  # the line ended with the chunk before
            chunk = chunk.removeprefix(b"\n")
        self._is_after_return = chunk.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        for line in lines:
            if self._is_at_start:
                self._is_at_start, line = False, line.removeprefix(BOM_UTF8)
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event
            self._check_size(0)
        self._check_size(len(self._rest))

    def _check_size(self, rest: int) -> None:
        """Count what belongs to the event under way; comments and ``retry`` are no part of one."""
        size = rest + len(self._event) + sum(map(len, self._data))
        if size > self._max_bytes:
            raise LimitExceeded("fetch_bytes", self._max_bytes, size, what="an event")

    def _line(self, line: str) -> StreamEvent | None:
        if not line:
            data, self._data = self._data, []
            name, self._event = self._event, ""
            has_own_id, self._has_own_id = self._has_own_id, False
            event = StreamEvent(name or "message", "\n".join(data), self._id, has_own_id)
            return event if data else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id, self._has_own_id = value, True
        return None


async def read_event_stream(
    outbound: OutboundClient,
    url: str,
    headers: Mapping[str, str],
    last_id: str,
    max_bytes: int,
) -> AsyncGenerator[StreamEvent]:
    """Yield the events of a stream after one of them, until the connection ends.

    Raises:
        EventStreamEnded: Nothing more comes.
        OutboundError, LimitExceeded: The stream cannot be read, or the connection broke off.
    """
    own = {**headers, "Accept": _TYPE, "Cache-Control": "no-store"}
    if last_id and last_id.isascii() and last_id.isprintable():
        own["Last-Event-ID"] = last_id
    async with outbound.stream(url, headers=own, silence_s=SILENCE_S) as response:
        _check(response.status, response.headers)
        parser = StreamParser(last_id, max_bytes)
        async with aclosing(response.chunks) as chunks:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    yield event


async def without_secrets(
    events: AsyncGenerator[StreamEvent], redact: Callable[[str], str]
) -> AsyncGenerator[StreamEvent]:
    """Yield events without the secrets that a service repeats, before anything reads their JSON."""
    async with aclosing(events):
        try:
            async for each in events:
                event, data, event_id = (redact(text) for text in (each.event, each.data, each.id))
                yield each._replace(event=event, data=data, id=event_id)
        except PlanwaveError as error:
            error.message = redact(error.message)
            raise


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 204:
        raise EventStreamEnded("the stream has ended, and asks not to come back", retryable=False)
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if status != 200 or kind != _TYPE:
        raise OutboundError(
            f"it answered {status} {kind or 'without a type'}, not a stream of events",
            code="invalid-response",
        )


def filled_headers(
    url: str, written: Mapping[str, str], secrets: Mapping[str, Secret]
) -> dict[str, str]:
    """Return headers with the values of the secrets that they name.

    Raises:
        PlanwaveError: ``unknown-secret``, ``secret-refused``: a secret has no value, or is not for the URL.
    """
    for name in secret_names(" ".join(written.values())):
        if name not in secrets:
            message = f"the operator has no secret {name!r}, or it has no value"
            raise PlanwaveError(message, code="unknown-secret")
        if not secrets[name].may_be_sent_to(url):
            message = f"the secret {name!r} may not be sent to this address"
            raise PlanwaveError(message, code="secret-refused")
    return {header: with_secrets(text, secrets) for header, text in written.items()}


def no_outbound() -> PlanwaveError:
    """Return the error where the service has no client for URLs."""
    return PlanwaveError("this service sends no requests", code="no-outbound")
