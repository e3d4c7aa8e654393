"""Connections that cannot be held open for nothing: what uvicorn leaves to its clients' good will.

uvicorn waits for ever for a request's first byte, for the rest of its head, for the rest of a body
nobody reads any more, and for a client to read what it was sent. Here each of these has a time, and
connections that ask nothing are let go of, oldest first, before there are too many to take new ones.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS, Request, Response
from websockets.server import ServerProtocol
from websockets.typing import StatusLike

from planwave.api.problems import MEDIA_TYPE, Refused, problem_of
from planwave.errors import PlanwaveError
from planwave.storage.ids import new_id
from planwave.storage.rows import encode

PUSH: Final = "planwave.push"
"""The extension by which an application finds :meth:`Socket.push`."""
CLOSING_S: Final = 2.0
"""How long a client may take to answer a WebSocket's close."""
_REJECTIONS: Final = {405: "method-not-allowed", 426: "upgrade-required"}
_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that announce a body."""


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


class _Timer:
    """Calls something unless it is stopped in time."""

    def __init__(self, after_s: float, call: Callable[[], object]) -> None:
        self._after_s = after_s
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to count, if it has not begun."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._after_s, self._ring)

    def stop(self) -> None:
        """Forget about it."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def end(self) -> None:
        """Stop for good, and let go of what would be called: it may hold this timer."""
        self.stop()
        self._call = _nothing

    def _ring(self) -> None:
        self._handle = None
        self._call()


def _nothing() -> None:
    """Stands for a call that is not needed any more."""


class Connection(H11Protocol):
    """One HTTP connection.

    Args:
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
        patience_s: float,
        crowd: Crowd,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._crowd = crowd
        self._waiting = _Timer(patience_s, self._give_up)
        self._stuck = _Timer(patience_s, lambda: self.transport.abort())

    @property
    def is_working(self) -> bool:
        """Whether a whole request came and is not answered yet."""
        cycle = self._at_work
        return cycle is not None and not cycle.response_started and not cycle.more_body

    @property
    def _at_work(self) -> RequestResponseCycle | None:
        """The request that is not answered to the end yet."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return None if cycle is None or cycle.response_complete else cycle

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.end()
        self._stuck.end()
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck.stop()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        sent = {name: value for name, value in self.headers if name in _BODY}
        longest = max((len(name) + len(value) for name, value in self.headers), default=0)
        # What the WebSocket library would trip over, once it is too late for an answer.
        if sent.keys() - {b"content-length"} or sent.get(b"content-length", b"0").strip(b"0"):
            self._say(Refused(400, "invalid-request", "a WebSocket's request has no body"))
        elif len(self.headers) > MAX_NUM_HEADERS or longest + 4 > MAX_LINE_LENGTH:
            self._say(Refused(431, "headers-too-large", "a WebSocket's head is smaller than that"))
        elif len(event.target) + 16 > MAX_LINE_LENGTH:
            self._say(Refused(414, "uri-too-long", "a WebSocket's address is shorter than that"))
        else:
            super().handle_websocket_upgrade(event)
            self._waiting.end()
            self._stuck.end()

    def send_400_response(self, msg: str) -> None:
        status = getattr(sys.exception(), "error_status_hint", 400)
        if status == 431:
            refusal = Refused(431, "limit-exceeded", "the request's head is too large")
        else:
            refusal = Refused(400, "invalid-request", "this is not HTTP/1.1")
        self._say(refusal)

    def _look(self) -> None:
        """See whose turn it is: ours, the client's with time running, or nobody's."""
        is_gone = self.transport.is_closing() or self.transport.get_protocol() is not self
        if is_gone or self._at_work is not None:
            self._waiting.stop()
            self._crowd.leave(self)
            return
        self._crowd.join(self)
        if self.timeout_keep_alive_task is not None and self.conn.their_state is h11.IDLE:
            self._waiting.stop()  # between two requests uvicorn's own timer runs
        else:
            self._waiting.start()

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._say(Refused(408, "request-timeout", "the request's head did not arrive in time"))
        else:
            self.transport.close()

    def _say(self, refusal: PlanwaveError) -> None:
        """Answer what never becomes a request, or no longer is one, and close."""
        if (cycle := self._at_work) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = encode(problem_of(refusal)).encode()
            answer = h11.Response(status_code=refusal.status_hint, headers=_refusing(body))
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _refusing(body: bytes) -> list[tuple[str, str]]:
    """Give the headers of a problem that is answered outside the application."""
    return [
        ("content-type", MEDIA_TYPE),
        ("content-length", str(len(body))),
        ("x-request-id", new_id()),
        ("connection", "close"),
    ]


class _Handshake(ServerProtocol):
    """The library's side of a WebSocket; what it refuses is answered with a problem too."""

    def reject(self, status: StatusLike, text: str) -> Response:
        """Give the answer to a request that does not become a WebSocket."""
        response = super().reject(status, text)
        why = text.partition("\n")[0].rstrip(".")
        code = _REJECTIONS.get(response.status_code, "invalid-request")
        refusal = Refused(response.status_code, code, why[:1].lower() + why[1:])
        response.body = encode(problem_of(refusal)).encode()
        for name, value in _refusing(response.body):
            response.headers.pop(name, None)
            response.headers[name] = value
        return response


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket.

    A close goes out also to a client that has stopped reading: behind what is buffered for it, it
    says where to go on. ``patience_s`` later the connection is cut.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        patience_s: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.close_timeout = CLOSING_S
        self.conn = _Handshake(max_size=config.ws_max_size, logger=self.conn.logger)
        self._extensions: dict[str, Any] = {}  # of the scope, which we are part of: a cycle
        self._stuck = _Timer(patience_s, lambda: self.transport.abort())

    def connection_lost(self, exc: Exception | None) -> None:
        self._stuck.end()
        self._extensions.pop(PUSH, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck.stop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated:  # a head the library gave up on: nothing ever follows
            self.transport.abort()

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:  # it broke off within its handshake
            self.transport.abort()
        else:
            super().handle_parser_exception()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # else it was refused
            self._extensions = cast("Any", self.scope)["extensions"]
            self._extensions[PUSH] = self.push

    def push(self, frames: bytes) -> bool:
        """Write whole WebSocket frames as they are, if that needs no waiting.

        Sending one by one through the application costs three times as much as the writing itself:
        what many clients are told is put into frames once.
        """
        is_open = self.handshake_complete and not (self.close_sent or self.transport.is_closing())
        if is_open and self.writable.is_set():
            self.transport.write(frames)
            return True
        return False

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close":
            self.writable.set()
        await super().send(message)
