"""WebSockets: what is refused is answered with a problem, and nobody who stops reading holds one.

A connection begins as one of HTTP (``connections.py``), which hands itself over.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import StatusLike

from planwave.api.framing import head_of
from planwave.api.problems import ProblemError, problem_details
from planwave.api.timers import Untaken
from planwave.jsonio import dumps_exact

PUSH: Final = "planwave.push"
"""The extension by which an application finds :meth:`Socket.push`."""
JOINED: Final = "planwave.joined"
"""Whole frames in a ``websocket.accept`` or ``websocket.close``; heeded where there is that extension.

They are written with what accepts, behind it, or with what closes, before it: each write by itself
costs as much as all else that there is to sending a frame.
"""
CLOSING_S: Final = 2.0
"""How long a client may take to answer a WebSocket's close."""
_REJECTIONS: Final = {405: "method-not-allowed", 426: "upgrade-required"}


class _Handshake(ServerProtocol):
    """The library's side of a WebSocket; what it refuses is answered with a problem too.

    Attributes:
        before, after: What goes out around what it has to send next.
    """

    before = after = b""

    def data_to_send(self) -> list[bytes]:
        return [self.before, *super().data_to_send(), self.after]

    def reject(self, status: StatusLike, text: str) -> Response:
        """Give the answer to a request that does not become a WebSocket."""
        response = super().reject(status, text)
        why = text.partition("\n")[0].rstrip(".")
        code = _REJECTIONS.get(response.status_code, "invalid-request")
        refusal = ProblemError(response.status_code, code, why[:1].lower() + why[1:])
        response.body = dumps_exact(problem_details(refusal)).encode()
        for name, value in head_of(response.body):
            response.headers.pop(name, None)
            response.headers[name] = value
        return response


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket.

    A close goes out also to a client that has stopped reading: behind what is buffered for it, it
    says where to go on. A connection is cut of which nothing is taken for ``patience_s``.
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
        self._handshake = _Handshake(max_size=config.ws_max_size, logger=self.conn.logger)
        self.conn = self._handshake
        self._extensions: dict[str, Any] = {}  # of the scope, which we are part of: a cycle
        self._untaken = Untaken(patience_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._untaken.stop()
        self._extensions.pop(PUSH, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._untaken.start(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._untaken.stop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated:  # a head the library gave up on: nothing ever follows
            self.transport.abort()

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:  # it broke off within its handshake
            self.transport.abort()
        else:
            super().handle_parser_exception()
            self._time_the_rest()

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        self._time_the_rest()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._time_the_rest()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # else it was refused
            self._extensions = cast("Any", self.scope)["extensions"]
            self._extensions[PUSH] = self.push

    def push(self, frames: bytes) -> bool:
        """Write whole WebSocket frames as they are, if that needs no waiting.

        Sending one by one through the application costs three times as much as the writing itself:
        what many clients are told is put into frames once. With none it only says whether it would.
        """
        is_open = self.handshake_complete and not (self.close_sent or self.transport.is_closing())
        if is_open and self.writable.is_set():
            self.transport.write(frames)
            return True
        return False

    async def send(self, message: Any) -> None:
        joined: bytes = message.get(JOINED, b"")
        if message["type"] == "websocket.close":
            self.writable.set()
            self._handshake.before = joined
        else:
            self._handshake.after = joined
        try:
            await super().send(message)
        finally:
            self._handshake.before = self._handshake.after = b""
        if message["type"] == "websocket.close":
            self._time_the_rest()

    def _time_the_rest(self) -> None:
        """Have an eye on what is not taken of all that there will ever be, be it little."""
        self.transport.set_write_buffer_limits(0)
        if self.transport.get_write_buffer_size():
            self._untaken.start(self.transport)
