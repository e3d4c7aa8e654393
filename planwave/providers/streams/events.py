"""Server-sent events: read from bytes as they arrive, and written.

Source: the HTML standard, 9.2, server-sent events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from planwave.providers.streams.errors import StreamGarbage

MAX_LINE_BYTES = 4 * 1024 * 1024
_LINE_ENDS = re.compile(rb"[\r\n]+")
_FIELDS = (b"data", b"event", b"id", b"retry", b"")


def object_in(value: object) -> dict[str, Any]:
    """Return a value that is a JSON object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def require_object(value: object, what: str) -> dict[str, Any]:
    """Return a value that is a JSON object.

    Raises:
        StreamGarbage: It is none.
    """
    if not isinstance(value, dict):
        raise StreamGarbage(f"{what} that is no object")
    return cast("dict[str, Any]", value)


class ServerEvent(NamedTuple):
    """One event: its name (empty without one) and its data."""

    name: str
    data: str


class EventReader:
    """Reads events from bytes.

    Raises:
        StreamGarbage: A line is too long, is no field of an event, or is not UTF-8.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._searched = 0
        self._has_begun = False
        self._is_blank = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that these bytes complete."""
        self._rest += chunk
        at = 0
        # A CR at the end may be half of a line end.
        searched = len(self._rest) - self._rest.endswith(b"\r")
        for ends in _LINE_ENDS.finditer(self._rest, self._searched, searched):
            self._read_line(self._rest[at : ends.start()])
            at = ends.end()
            is_blank = self._is_blank or len(ends[0].replace(b"\r\n", b"\n")) > 1
            if is_blank and self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
            if is_blank:
                self._name, self._data = "", []
        self._rest = self._rest[at:]
        self._searched = len(self._rest) - self._rest.endswith(b"\r")
        if len(self._rest) > MAX_LINE_BYTES:
            raise StreamGarbage(f"a line of more than {MAX_LINE_BYTES} bytes")

    def end(self) -> Iterator[ServerEvent]:
        """Yield the event that the last bytes complete, where these are a line end of one CR."""
        if self._rest.endswith(b"\r"):
            yield from self.feed(b"\n")

    def _read_line(self, line: bytes) -> None:
        if len(line) > MAX_LINE_BYTES:
            raise StreamGarbage(f"a line of more than {MAX_LINE_BYTES} bytes")
        if not self._has_begun:
            self._has_begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        self._is_blank = not line
        field, _, value = line.partition(b":")
        if field not in _FIELDS:
            raise StreamGarbage("a line that is no field of an event")
        try:
            text = value.removeprefix(b" ").decode("utf-8")
        except UnicodeDecodeError as error:
            raise StreamGarbage("bytes that are not UTF-8") from error
        if field == b"data":
            self._data.append(text)
        elif field == b"event":
            self._name = text.strip()


def event_bytes(data: Mapping[str, Any] | str, name: str = "") -> bytes:
    """Return an event as it is sent."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()
