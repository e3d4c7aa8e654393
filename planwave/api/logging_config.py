"""Structured logs: one line a record, as text or JSON, each with the request it belongs to.

The log of a request has its method, the route's pattern, the status, the time and the id: never a
header, a query, a body, or the text of an unknown path.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO, Any, Final, Literal

from planwave.settings import DEBUG_VARIABLE

FIELDS: Final = "planwave_fields"
"""``extra={FIELDS: {…}}`` gives a record what else it says, by name."""
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


class _RedactedStream:
    """A stream whose text is written without secrets."""

    def __init__(self, stream: IO[str], redact: Callable[[str], str]) -> None:
        self._stream, self._redact = stream, redact

    def write(self, text: str) -> object:
        return self._stream.write(self._redact(text))

    def flush(self) -> None:
        self._stream.flush()


class _TextFormatter(logging.Formatter):
    """``time LEVEL logger message name=value …`` on one line; a traceback on the lines below."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, FIELDS, {})
        parts = [_time(record), record.levelname, record.name, _line(record.getMessage())]
        parts += [f"{name}={_line(str(value))}" for name, value in fields.items()]
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return " ".join(parts) + trace


class _JsonFormatter(logging.Formatter):
    """One JSON object a line: ``{at, level, logger, message, request_id?, …, error?}``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, FIELDS, {})
        entry = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields,
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


@contextmanager
def configure_logging(
    stream: IO[str], form: Literal["text", "json"], redact: Callable[[str], str] = str
) -> Generator[None]:
    """Send all logs to a stream, and nowhere else, until left.

    Args:
        stream: Where each line is written.
        form: The format of a line.
        redact: Takes secrets out of a line.
    """
    handler = logging.StreamHandler(_RedactedStream(stream, redact))
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    handler.addFilter(_RequestIdFilter())
    handler.addFilter(_is_not_invalid_text)
    root = logging.getLogger()
    before, level = root.handlers, root.level
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("planwave").setLevel(logging.INFO)
    is_debugging = bool(os.environ.get(DEBUG_VARIABLE))
    logging.getLogger("planwave.turns").setLevel(logging.DEBUG if is_debugging else logging.NOTSET)
    # What clients do wrong is answered; the server's own log of it would be theirs to fill.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.handlers = before
        root.setLevel(level)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _line(text: str) -> str:
    """Return text with control characters escaped, so that it stays on its line."""
    return text if text.isprintable() else repr(text)[1:-1]
