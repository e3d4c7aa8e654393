"""Parsing of the service's event streams, with each event and each character once.

After a broken connection the next one continues after the last stored event. Streamed text then
starts again from its beginning, and the part already read is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.client.errors import error_from_problem, unexpected_response
from planwave.errors import PlanwaveError
from planwave.events import TERMINAL, TRANSIENT, Event
from planwave.events.types import TEXT_DISCARDED

if TYPE_CHECKING:
    from planwave.shapes.plans import PlanResponse


class ServerSentEvent(NamedTuple):
    """One server-sent event."""

    event: str
    data: str


DRAINING: Final = "server_draining"
TOO_SLOW: Final = "too_slow"
PROBLEM: Final = "problem"
REPLY_ENDS: Final = frozenset({"RunCompleted", "RunCancelled", "RunError"})
"""The last events of replies of chats."""
STREAM_ENDED: Final = ServerSentEvent("", "")
"""Marks a 204 response: no more events. No stream has this message."""


class EventStreamParser:
    """A parser of server-sent events (WHATWG HTML).

    Only a line feed ends a line, because JSON may contain U+2028 and similar characters.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Parse a chunk of any length and yield the messages that it completes."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = self._rest + lines[0]
            self._rest = b""
        self._rest += rest
        for line in lines:
            message = self._line(line.removesuffix(b"\r").decode("utf-8", "replace"))
            if message is not None:
                yield message

    def _line(self, line: str) -> ServerSentEvent | None:
        if not line:
            message = ServerSentEvent(self._event or "message", "\n".join(self._data))
            has_data, self._event, self._data = bool(self._data), "", []
            return message if has_data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        return None


class StreamPosition:
    """The position of one consumer in the events of an execution.

    Attributes:
        cursor: The ``seq`` of the last stored event delivered.
        delivered: The number of events delivered, pieces of text included.
        is_over: Whether the stream has ended.
    """

    def __init__(self, after: int = 0) -> None:
        self.cursor = after
        self.delivered = 0
        self.is_over = False
        self._lengths: dict[tuple[str | None, int | None, str], int] = {}

    def new_events(self, message: ServerSentEvent) -> Iterator[Event]:
        """Yield the new event of a message, if any.

        Raises:
            PlanwaveError: The stream ended with a problem, or is not of a planwave service.
        """
        if message.event in (DRAINING, TOO_SLOW):
            return
        if message is STREAM_ENDED:
            self.is_over = True
            return
        data = parse_data(message)
        if message.event == PROBLEM:
            raise error_in_stream(data)
        try:
            event = parse_event(data)
        except (KeyError, TypeError) as error:
            raise unexpected_response(f"an invalid event {message.event!r}") from error
        if event.type in TRANSIENT:
            yield from self._new_text(event)
        elif event.seq > self.cursor:
            self.cursor = event.seq
            if event.data.get("event_type") == TEXT_DISCARDED:
                self._forget_text(event)
            self.is_over = event.type in TERMINAL
            self.delivered += 1
            yield event

    def _forget_text(self, event: Event) -> None:
        """Accept the text of an attempt from offset 0 again."""
        for key in [key for key in self._lengths if key[:2] == (event.path, event.attempt)]:
            del self._lengths[key]

    def _new_text(self, event: Event) -> Iterator[Event]:
        key = (event.path, event.attempt, event.data["kind"])
        length, offset = self._lengths.get(key, 0), event.data["offset"]
        text: str = event.data["text"]
        if offset > length:
            return  # a gap: the next connection sends the missing text again
        new = text[length - offset :]
        if new:
            self._lengths[key] = length + len(new)
            self.delivered += 1
            yield event._replace(data={**event.data, "text": new, "offset": length})


class PlanStreamEvent(NamedTuple):
    """An event during the writing of a plan.

    ``data`` by kind: ``delta`` ``{"text", "reasoning"}``; ``title`` ``{"title"}``; ``node`` ``{"id",
    "name", …}``; ``edge`` ``{"source", "target", "channel"}``; ``repair`` ``{"attempt",
    "diagnostics"}``: the model writes the plan again; ``fix`` ``{"fix"}``.
    """

    kind: str
    data: dict[str, Any]


def plan_from_message(
    message: ServerSentEvent, on_progress: Callable[[PlanStreamEvent], object]
) -> PlanResponse | None:
    """Return the plan of a message, or pass another event to ``on_progress`` and return None.

    Raises:
        PlanwaveError: The planning failed.
    """
    data = parse_data(message)
    if message.event in (DRAINING, PROBLEM):
        raise error_in_stream(data)
    if message.event == "plan":
        return cast("PlanResponse", data)
    on_progress(PlanStreamEvent(message.event, data))
    return None


def reply_event(message: ServerSentEvent) -> dict[str, Any] | None:
    """Return the event of a reply of a chat; None where the client has to come back.

    Raises:
        PlanwaveError: The stream ended with a problem, or is not of a planwave service.
    """
    if message.event in (DRAINING, TOO_SLOW):
        return None
    data = parse_data(message)
    if message.event == PROBLEM:
        raise error_in_stream(data)
    return data


def parse_data(message: ServerSentEvent) -> dict[str, Any]:
    """Parse the JSON object of a message.

    Raises:
        PlanwaveError: ``not-planwave``.
    """
    try:
        data: Any = json.loads(message.data)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise unexpected_response(f"an event {message.event!r} without a JSON object")
    return cast("dict[str, Any]", data)


def error_in_stream(problem: Mapping[str, Any]) -> PlanwaveError:
    """Return the exception for a problem in a stream."""
    status = problem.get("status")
    return error_from_problem(status if isinstance(status, int) else 500, problem)


def parse_event(data: dict[str, Any]) -> Event:
    """Parse the JSON of an event.

    Raises:
        KeyError, TypeError: The JSON is not an event.
    """
    return Event(
        data["execution_id"],
        data["seq"],
        data["at"],
        data["type"],
        data.get("path"),
        data.get("attempt"),
        data["data"],
    )


def is_worth_retrying(error: PlanwaveError) -> bool:
    """Return whether a new connection may help: the service is unreachable or overloaded."""
    return error.status_hint in (408, 429, 502, 503, 504)
