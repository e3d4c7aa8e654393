"""Connections that cannot be held open for nothing: what uvicorn leaves to its clients' good will.

uvicorn waits for ever for a request's first byte, for the rest of its head, for the rest of a body
nobody reads any more, and for a client to read what it was sent. Here each of these has a time, and
connections that ask nothing are let go of, oldest first, before there are too many to take new ones.

llhttp, which reads the requests, has no bound on a head, takes whatever offers another protocol to
have gone over to it, and reads on while answers are still to come. Here heads have one, offers that
are not of a WebSocket are not taken up, what cannot be read is answered in its turn, and little is
read before that of it.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from planwave.api.framing import check_head, check_websocket, head_of, refusal_of, target_of
from planwave.api.problems import ProblemError, problem_details
from planwave.api.timers import Timer, Untaken, nothing
from planwave.errors import PlanwaveError
from planwave.jsonio import dumps_exact

_BITE: Final = 4_096
"""Bytes that are read at a time: a request is a thousand times as large as what asks for it."""


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


class _Flow(FlowControl):
    """Lets nobody read on while enough waits to be read."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_held = False

    def hold(self, is_held: bool) -> None:
        """Stop reading, or go on with it."""
        self._is_held = is_held
        if is_held:
            self.pause_reading()
        else:
            self.resume_reading()

    def resume_reading(self) -> None:
        if not self._is_held:
            super().resume_reading()


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
        patience_s: For a request's head, for what is left of a body nobody reads, and the longest
            that a client may take nothing of what it is sent.
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
        _make_lenient(self.parser)
        self._head_bytes = head_bytes
        self._crowd = crowd
        self._patience_s = patience_s
        self._waiting = Timer(self._give_up)
        self._idle = Timer(lambda: self.transport.close())
        self._untaken = Untaken(patience_s)
        self._reading = _Reading.NOTHING
        self._unused = 0
        self._unread = b""
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

    @property
    def _is_ours(self) -> bool:
        """Whether there is anybody to read from, and nobody else does."""
        return not self.transport.is_closing() and self.transport.get_protocol() is self

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # whatever is not taken has its time, be it little
        self.flow = self._flow = _Flow(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timers()
        self._crowd.leave(self)
        if (cycle := self._at_work) is not None:  # not the last one that came, perhaps
            _break_off(cycle)
        if self.cycle and self.cycle is not self._running:
            self.cycle.on_response = nothing  # which holds us, and only running forgets it
        self.pipeline.clear()
        self._unread = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._last_word is not None:
            return
        rest = memoryview(self._unread + data if self._unread else data)
        self._unread = b""
        try:
            while rest and not self.pipeline and self._is_ours:
                self._parse(rest[:_BITE])
                rest = rest[_BITE:]
            if self._unused > self._head_bytes:  # a head that is whole is for the application
                raise ProblemError(431, "limit-exceeded", "the request's head is too large")
            self._unread = bytes(rest)
        except HttpParserError as error:
            self._refuse(refusal_of(error))
        except ProblemError as refusal:
            self._refuse(refusal)
        if self.pipeline:
            self._flow.hold(len(self._unread) > HIGH_WATER_LIMIT)
        self._look()

    def _parse(self, rest: memoryview) -> None:
        self._unused += len(rest)
        while rest:
            try:
                self.parser.feed_data(rest)
                break
            except HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self.handle_websocket_upgrade()
                    return
                head = self._head_without_offer()
                self.parser = HttpRequestParser(self)  # the other one may read no more
                _make_lenient(self.parser)
                self.parser.feed_data(head)
                rest = rest[upgrade.args[0] :]

    def _head_without_offer(self) -> bytes:
        """Give the head that was just read, but not what it says of another protocol.

        Java's own client offers HTTP/2 with every first request, also with one that has a body.
        """
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s\r\n" % each for each in self.headers if each[0] != b"upgrade"]
        return b"".join([*lines, b"\r\n"])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading = _Reading.HEAD

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is _Reading.HEAD:  # what follows a body is no header of the request
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        self._unused = 0
        version = self.parser.get_http_version()
        check_head(version, self.headers)
        self.url = target_of(self.url)
        self.expect_100_continue = self.expect_100_continue and version != "1.0"
        if self.parser.should_upgrade():
            self._check_offer()
        else:
            super().on_headers_complete()
            self._reading = _Reading.BODY

    def _check_offer(self) -> None:
        """Take another protocol up if it is WebSocket; refuse what could not be answered later."""
        if self.parser.get_method() == b"CONNECT":
            raise ProblemError(400, "invalid-request", "this is no proxy to connect through")
        if self._should_upgrade():
            if self._at_work is not None:
                raise ProblemError(
                    400, "invalid-request", "a WebSocket's request waits for its turn"
                )
            check_websocket(self.url, self.headers)
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._reading = _Reading.NOTHING
        self._unused = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()
            if not self.parser.should_keep_alive():  # which what follows a body says too
                self.cycle.keep_alive = False
                if self.cycle.response_complete:
                    self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            elif self._last_word is not None:
                self._say(self._last_word)
            if not self.pipeline:
                self._flow.hold(False)
                if self._unread:
                    self.data_received(b"")
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._untaken.start(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._untaken.stop()

    def handle_websocket_upgrade(self) -> None:
        self.transport.set_write_buffer_limits()  # it closes in a way of its own
        super().handle_websocket_upgrade()
        if self.flow.write_paused:
            cast("asyncio.Protocol", self.transport.get_protocol()).pause_writing()
        self._end_timers()
        self.parser = cast("Any", None)  # which holds us

    def _end_timers(self) -> None:
        self._waiting.end()
        self._idle.end()
        self._untaken.stop()

    def _look(self) -> None:
        """See whose turn it is: ours, the client's with time running, or nobody's."""
        if not self._is_ours or self._at_work is not None:
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
            self._say(
                ProblemError(408, "request-timeout", "the request's head did not arrive in time")
            )
        else:
            self.transport.close()

    def _refuse(self, refusal: PlanwaveError) -> None:
        """Answer what cannot be read on, behind what was asked before it."""
        own = self.cycle if self._reading is _Reading.BODY else None
        if own is not None and own.response_complete:  # with the rest of its body still to come
            self.transport.close()
            return
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
            body = dumps_exact(problem_details(refusal)).encode()
            fields = "".join(f"{name}: {value}\r\n" for name, value in head_of(body))
            line = STATUS_LINE[refusal.status_hint]
            self.transport.write(b"".join([line, fields.encode(), b"\r\n", body]))
        self.transport.close()


def _break_off(cycle: RequestResponseCycle) -> None:
    """Tell a request at work that its client is gone."""
    cycle.disconnected = True
    cycle.message_event.set()


def _make_lenient(parser: HttpRequestParser) -> None:
    """Take what is clear enough: some pad the sizes of chunks, or go on after a last request."""
    parser.set_dangerous_leniencies(
        lenient_data_after_close=True, lenient_spaces_after_chunk_size=True
    )
