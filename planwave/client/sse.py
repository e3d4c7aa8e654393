"""Events as a service streams them: read from its lines, each event and each character once.

A connection may break at any time. What was read decides where the next one goes on: after the last
stored event; streamed text comes again from its beginning and is cut at what is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.client.errors import error_from_problem, unexpected_response
from planwave.errors import PlanwaveError
from planwave.events import TERMINAL, TRANSIENT, Event

if TYPE_CHECKING:
    from planwave.client.types import PlanResponse


class ServerSentEvent(NamedTuple):
    """One server-sent event."""

    event: str
    data: str


DRAINING: Final = "server_draining"
TOO_SLOW: Final = "too_slow"
PROBLEM: Final = "problem"
STREAM_ENDED: Final = ServerSentEvent("", "")
"""Stands for an answer that says: nothing comes after what is known. No stream has this message."""


class EventStreamParser:
    """Puts what comes together to messages (WHATWG HTML, server-sent events).

    Lines end with a line feed and nothing else: JSON may hold U+2028 and its like as they are.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Take some bytes, cut anywhere; give the messages they complete."""
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
    """How far one consumer has read an execution.

    Attributes:
        cursor: The last stored event it has.
        delivered: How many events it was given, pieces of text included.
        is_over: It has the terminal event, or there is none to come.
    """

    def __init__(self, after: int = 0) -> None:
        self.cursor = after
        self.delivered = 0
        self.is_over = False
        self._lengths: dict[tuple[str | None, int | None, str], int] = {}

    def new_events(self, message: ServerSentEvent) -> Iterator[Event]:
        """Give what is new in a message.

        Raises:
            PlanwaveError: The stream ended with a problem, or is none of a planwave service.
        """
        if message.event in (DRAINING, TOO_SLOW):
            return
        if message is STREAM_ENDED:
            self.is_over = True
            return
        said = parse_data(message)
        if message.event == PROBLEM:
            raise error_in_stream(said)
        try:
            event = parse_event(said)
        except (KeyError, TypeError) as error:
            raise unexpected_response(f"an event {message.event!r} that is none") from error
        if event.type in TRANSIENT:
            yield from self._new_text(event)
        elif event.seq > self.cursor:
            self.cursor = event.seq
            self.is_over = event.type in TERMINAL
            self.delivered += 1
            yield event

    def _new_text(self, event: Event) -> Iterator[Event]:
        key = (event.path, event.attempt, event.data["kind"])
        known, offset = self._lengths.get(key, 0), event.data["offset"]
        text: str = event.data["text"]
        if offset > known:
            return  # a hole: what is missing comes again with the next connection
        new = text[known - offset :]
        if new:
            self._lengths[key] = known + len(new)
            self.delivered += 1
            yield event._replace(data={**event.data, "text": new, "offset": known})


class PlanStreamEvent(NamedTuple):
    """Something that happened while a plan was written.

    ``data`` by kind: ``publish_delta`` ``{"text", "reasoning"}``; ``title`` ``{"title"}``; ``node`` ``{"id",
    "name", …}``; ``edge`` ``{"source", "target", "channel"}``; ``repair`` ``{"attempt",
    "diagnostics"}``: the plan is written anew; ``fix`` ``{"fix"}``.
    """

    kind: str
    data: dict[str, Any]


def plan_from_message(
    message: ServerSentEvent, on_progress: Callable[[PlanStreamEvent], object]
) -> PlanResponse | None:
    """Give the plan where a message has it; anything else that happened is told.

    Raises:
        PlanwaveError: Why there will be no plan.
    """
    said = parse_data(message)
    if message.event in (DRAINING, PROBLEM):
        raise error_in_stream(said)
    if message.event == "plan":
        return cast("PlanResponse", said)
    on_progress(PlanStreamEvent(message.event, said))
    return None


def parse_data(message: ServerSentEvent) -> dict[str, Any]:
    """Give the JSON object of a message.

    Raises:
        PlanwaveError: ``not-planwave``.
    """
    try:
        said: Any = json.loads(message.data)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise unexpected_response(f"an event {message.event!r} without a JSON object")
    return cast("dict[str, Any]", said)


def error_in_stream(said: Mapping[str, Any]) -> PlanwaveError:
    """Give the exception a problem in a stream stands for."""
    status = said.get("status")
    return error_from_problem(status if isinstance(status, int) else 500, said)


def parse_event(said: dict[str, Any]) -> Event:
    """Give an event of its JSON.

    Raises:
        KeyError, TypeError: It is none.
    """
    return Event(
        said["execution_id"],
        said["seq"],
        said["at"],
        said["type"],
        said.get("path"),
        said.get("attempt"),
        said["data"],
    )


def is_worth_retrying(error: PlanwaveError) -> bool:
    """Say whether a new connection may help: the service went away or is too busy."""
    return error.status_hint in (408, 429, 502, 503, 504)
