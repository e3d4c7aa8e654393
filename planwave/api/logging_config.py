"""Structured logs: one line a record, as text or JSON, each with the request it belongs to.

The log of a request has its method, the route's pattern, the status, the time and the id: never a
header, a query, a body, or the text of an unknown path.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import QueueHandler
from queue import Full, Queue
from threading import Thread
from types import MappingProxyType
from typing import IO, Any, Final, Literal

from planwave.log_records import FIELDS, fields_text, line_text, words_of
from planwave.settings import DEBUG_VARIABLE

_MAX_QUEUED: Final = 10_000
_LAST_LINES_S: Final = 1.0
"""How long the end of the log may take."""
ACCESS_LOG: Final = logging.getLogger("planwave.access")


class RequestContext:
    """The request that is being answered.

    Work it leaves behind, such as an execution, inherits the context; it no longer counts as part
    of the request once that is over.
    """

    __slots__ = ("id", "is_ended")

    def __init__(self, request_id: str) -> None:
        self.id = request_id
        self.is_ended = False


current_request: Final[ContextVar[RequestContext | None]] = ContextVar(
    "planwave_request", default=None
)


def request_id() -> str | None:
    """Return the id of the current request."""
    context = current_request.get()
    return None if context is None or context.is_ended else context.id


class _RequestIdFilter(logging.Filter):
    """Notes on each record which request it belongs to, while that is known."""

    def filter(self, record: logging.LogRecord) -> bool:
        fields: dict[str, Any] = dict(getattr(record, FIELDS, None) or {})
        if "request_id" not in fields and (own_id := request_id()) is not None:
            fields["request_id"] = own_id
        setattr(record, FIELDS, fields)
        return True


def _is_not_invalid_text(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn logs of a WebSocket message that is not UTF-8; it closes with 1007."""
    is_invalid_text = record.exc_info is not None and record.exc_info[0] is UnicodeDecodeError
    return not (record.name == "uvicorn.error" and is_invalid_text)


class _QueuedLines(QueueHandler):
    """Formats records, and has a thread write them: a pipe that nobody reads must not block the loop.

    Where the queue is full, lines are dropped; the next one says how many.

    Args:
        stream: Where lines are written.
        redact: Takes secrets out of a line.
    """

    def __init__(self, stream: IO[str], redact: Callable[[str], str]) -> None:
        self._lines: Queue[str | None] = Queue(_MAX_QUEUED)
        super().__init__(self._lines)
        self._stream, self._redact = stream, redact
        self._dropped = 0
        self._writer = Thread(target=self._write_all, name="planwave log", daemon=True)
        self._writer.start()

    def prepare(self, record: logging.LogRecord) -> Any:
        """Return the line of a record."""
        return self.format(record)

    def enqueue(self, record: Any) -> None:
        """Queue a line, or count it where there is no room."""
        try:
            if self._dropped:
                self._lines.put_nowait(f"planwave: {self._dropped:,} lines of the log were dropped")
                self._dropped = 0
            self._lines.put_nowait(record)
        except Full:
            self._dropped += 1

    def stop(self) -> None:
        """Write what is queued; give up where the stream takes nothing for a while."""
        with suppress(Full):
            self._lines.put(None, timeout=_LAST_LINES_S)
        self._writer.join(_LAST_LINES_S)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(OSError, ValueError):  # closed meanwhile
                # Lines after the first one are a traceback.
                self._stream.write(self._redact(line).replace("\n", "\n  | ") + "\n")
                if self._lines.empty():
                    self._stream.flush()


class _TextFormatter(logging.Formatter):
    """``time LEVEL logger message name=value …`` on one line; a traceback on the lines below."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, FIELDS, {})
        parts = [_time(record), record.levelname, record.name, line_text(words_of(record))]
        parts += fields_text(fields)
        return "\n".join(filter(None, (" ".join(parts), _traceback(self, record))))


class _JsonFormatter(logging.Formatter):
    """One JSON object a line: ``{at, level, logger, message, request_id?, …, traceback?}``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, FIELDS, {})
        entry = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": words_of(record),
            **fields,
        }
        if trace := _traceback(self, record):
            entry["traceback"] = trace
        return json.dumps(entry, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    """Return the traceback of a record: of its exception, or one that was stored before."""
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return record.exc_text


@contextmanager
def configure_logging(
    stream: IO[str],
    form: Literal["text", "json"],
    redact: Callable[[str], str] = str,
    levels: Mapping[str, str] = MappingProxyType({"planwave": "INFO"}),
) -> Generator[None]:
    """Send all logs to a stream, and nowhere else, until left.

    Args:
        stream: Where each line is written.
        form: The format of a line.
        redact: Takes secrets out of a line.
        levels: The lowest level of loggers, by name.
    """
    handler = _QueuedLines(stream, redact)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    handler.addFilter(_RequestIdFilter())
    handler.addFilter(_is_not_invalid_text)
    root = logging.getLogger()
    before, level = root.handlers, root.level
    levels_before = {name: logging.getLogger(name).level for name in levels}
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name, each in levels.items():
        logging.getLogger(name).setLevel(each)
    is_debugging = bool(os.environ.get(DEBUG_VARIABLE))
    logging.getLogger("planwave.turns").setLevel(logging.DEBUG if is_debugging else logging.NOTSET)
    # What clients do wrong is answered; the server's own log of it would be theirs to fill.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.handlers = before
        root.setLevel(level)
        for name, each in levels_before.items():
            logging.getLogger(name).setLevel(each)
        handler.stop()


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
