"""Connections that cannot be held open for nothing: what uvicorn leaves to its clients' good will.

uvicorn waits for ever for a request's first byte, for the rest of its head, for the rest of a body
nobody reads any more, and for a client to read what it was sent. Here each of these has a time, and
connections that ask nothing are let go of, oldest first, before there are too many to take new ones.

llhttp, which reads the requests, has no bound on a head, takes whatever offers another protocol to
have gone over to it, and reads on while answers are still to come. Here heads have one, offers that
are not of a WebSocket are not taken up, and what cannot be read is answered in its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS

from planwave.api.problems import MEDIA_TYPE, Refused, problem_of
from planwave.errors import PlanwaveError
from planwave.storage.ids import new_id
from planwave.storage.rows import encode

_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that announce a body."""
_NEVER: Final = float("inf")
_EARLY_S: Final = 0.01
"""An event loop rings by that much too early, at most: by what its clock does not tell apart."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})


class Crowd:
    """Connections that ask nothing at the moment; past ``most``, the oldest go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: dict[Connection, None] = {}

    def join(self, connection: Connection) -> None:
        """Count a connection in, as the youngest."""
        self._idle.pop(connection, None)
        self._idle[connection] = None
        if len(self._idle) > self._most:
            oldest = next(iter(self._idle))
            self.leave(oldest)
            oldest.transport.abort()

    def leave(self, connection: Connection) -> None:
        """Count a connection out."""
        self._idle.pop(connection, None)


class Timer:
    """Calls something unless it is stopped in time.

    It is stopped and started with every request, so it leaves the event loop's own timer alone
    where it can: one that rings early is set anew for what is left, or forgotten.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._due = _NEVER
        self._handle: asyncio.TimerHandle | None = None

    def start(self, after_s: float) -> None:
        """Begin to count, if it has not begun."""
        if self._due == _NEVER:
            loop = asyncio.get_running_loop()
            self._due = loop.time() + after_s
            if self._handle is not None and self._handle.when() > self._due:
                self._handle.cancel()
                self._handle = None
            if self._handle is None:
                self._handle = loop.call_at(self._due, self._ring)

    def stop(self) -> None:
        """Forget about it."""
        self._due = _NEVER

    def end(self) -> None:
        """Stop for good, and let go of what would be called: it may hold this timer."""
        self._due = _NEVER
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._call = _nothing

    def _ring(self) -> None:
        due, self._handle = self._due, None
        loop = asyncio.get_running_loop()
        if due <= loop.time() + _EARLY_S:
            self._due = _NEVER
            self._call()
        elif due != _NEVER:
            self._handle = loop.call_at(due, self._ring)


def _nothing() -> None:
    """Stands for a call that is not needed any more."""


class _Reading(Enum):
    """What of a request comes next."""

    NOTHING = "nothing"
    """None has begun, or it is there to its end."""
    HEAD = "head"
    BODY = "body"


class Connection(HttpToolsProtocol):
    """One HTTP connection.

    Args:
        head_bytes: Most bytes of a request's head that are waited with for the rest of it.
        patience_s: For a request's head, for what is left of a body nobody reads, and for a client
            to take what it is sent.
        crowd: The other connections.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        head_bytes: int,
        patience_s: float,
        crowd: Crowd,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_bytes = head_bytes
        self._crowd = crowd
        self._patience_s = patience_s
        self._waiting = Timer(self._give_up)
        self._idle = Timer(lambda: self.transport.close())
        self._stuck = Timer(lambda: self.transport.abort())
        self._reading = _Reading.NOTHING
        self._unused = 0
        self._running: RequestResponseCycle | None = None
        self._last_word: PlanwaveError | None = None

    @property
    def is_working(self) -> bool:
        """Whether a whole request came and is not answered yet."""
        cycle = self._at_work
        return cycle is not None and not cycle.response_started and not cycle.more_body

    @property
    def _at_work(self) -> RequestResponseCycle | None:
        """The request that is not answered to the end yet, the first one if there are more."""
        cycle = self._running
        return None if cycle is None or cycle.response_complete else cycle

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timers()
        self._crowd.leave(self)
        if (cycle := self._at_work) is not None:  # not the last one that came, perhaps
            _break_off(cycle)
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._last_word is not None:
            return
        self._unused += len(data)
        try:
            self._parse(data)
            if self._unused > self._head_bytes:
                raise Refused(431, "limit-exceeded", "the request's head is too large")
        except HttpParserError as error:
            self._refuse(_refusal_of(error))
        except Refused as refusal:
            self._refuse(refusal)
        self._look()

    def _parse(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                self.parser.feed_data(rest)
                return
            except HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self.handle_websocket_upgrade()
                    return
                self.parser.feed_data(self._head_without_offer())
                rest = rest[upgrade.args[0] :]

    def _head_without_offer(self) -> bytes:
        """Give the head that was just read, but not what it says of another protocol.

        Java's own client offers HTTP/2 with every first request, also with one that has a body.
        """
        lines = [b"%s %s HTTP/1.1\r\n" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s\r\n" % each for each in self.headers if each[0] != b"upgrade"]
        return b"".join([*lines, b"\r\n"])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading = _Reading.HEAD

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is _Reading.HEAD:  # what follows a body is no header of the request
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unused = 0
        if self.parser.get_http_version() not in _VERSIONS:
            raise _not_http()
        if self.parser.should_upgrade():
            self._check_offer()
        else:
            super().on_headers_complete()
            self._reading = _Reading.BODY

    def _check_offer(self) -> None:
        """Take another protocol up if it is WebSocket; refuse what could not be answered later."""
        if self.parser.get_method() == b"CONNECT":
            raise Refused(400, "invalid-request", "this is no proxy to connect through")
        if self._should_upgrade():
            if self._at_work is not None:
                raise Refused(400, "invalid-request", "a WebSocket's request waits for its turn")
            _check_websocket(self.url, self.headers)
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._reading = _Reading.NOTHING
        self._unused = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            elif self._last_word is not None:
                self._say(self._last_word)
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck.start(self._patience_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck.stop()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        self._end_timers()
        self.parser = cast("Any", None)  # which holds us

    def _end_timers(self) -> None:
        for timer in (self._waiting, self._idle, self._stuck):
            timer.end()

    def _look(self) -> None:
        """See whose turn it is: ours, the client's with time running, or nobody's."""
        is_gone = self.transport.is_closing() or self.transport.get_protocol() is not self
        if is_gone or self._at_work is not None:
            self._waiting.stop()
            self._idle.stop()
            self._crowd.leave(self)
            return
        self._crowd.join(self)
        if self._running is None or self._reading is not _Reading.NOTHING:
            self._idle.stop()
            self._waiting.start(self._patience_s)
        else:  # between two requests
            self._waiting.stop()
            self._idle.start(self.timeout_keep_alive)

    def _give_up(self) -> None:
        if self._reading is _Reading.HEAD:
            self._say(Refused(408, "request-timeout", "the request's head did not arrive in time"))
        else:
            self.transport.close()

    def _refuse(self, refusal: PlanwaveError) -> None:
        """Answer what cannot be read on, behind what was asked before it."""
        own = self.cycle if self._reading is _Reading.BODY else None
        if self._at_work in (None, own):
            self._say(refusal)
            return
        if self.pipeline and self.pipeline[0][0] is own:
            self.pipeline.popleft()
        self._last_word = refusal

    def _say(self, refusal: PlanwaveError) -> None:
        """Answer what never becomes a request, or no longer is one, and close."""
        if (cycle := self._at_work) is not None:
            _break_off(cycle)
        if cycle is None or not cycle.response_started:
            body = encode(problem_of(refusal)).encode()
            fields = "".join(f"{name}: {value}\r\n" for name, value in head_of(body))
            line = STATUS_LINE[refusal.status_hint]
            self.transport.write(b"".join([line, fields.encode(), b"\r\n", body]))
        self.transport.close()


def _break_off(cycle: RequestResponseCycle) -> None:
    """Tell a request at work that its client is gone."""
    cycle.disconnected = True
    cycle.message_event.set()


def _check_websocket(target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Look for what the WebSocket library would trip over, once it is too late for an answer.

    Raises:
        Refused: There is some.
    """
    sent = {name: value for name, value in headers if name in _BODY}
    longest = max((len(name) + len(value) for name, value in headers), default=0)
    if sent.keys() - {b"content-length"} or sent.get(b"content-length", b"0").strip(b"0"):
        raise Refused(400, "invalid-request", "a WebSocket's request has no body")
    if len(headers) > MAX_NUM_HEADERS or longest + 4 > MAX_LINE_LENGTH:
        raise Refused(431, "headers-too-large", "a WebSocket's head is smaller than that")
    if len(target) + 16 > MAX_LINE_LENGTH:
        raise Refused(414, "uri-too-long", "a WebSocket's address is shorter than that")


def _refusal_of(error: HttpParserError) -> PlanwaveError:
    """Give the answer to what the parser refuses, or what we did while it read.

    Raises:
        HttpParserError: Neither: it is our own mistake.
    """
    cause = error.__context__
    if isinstance(cause, Refused):
        return cause
    if cause is None or isinstance(cause, HttpParserError):
        return _not_http()
    raise error


def _not_http() -> Refused:
    return Refused(400, "invalid-request", "this is not HTTP/1.1")


def head_of(body: bytes) -> list[tuple[str, str]]:
    """Give the headers of a problem that is answered outside the application."""
    return [
        ("content-type", MEDIA_TYPE),
        ("content-length", str(len(body))),
        ("x-request-id", new_id()),
        ("connection", "close"),
    ]
