"""Large bodies are sent in pieces, each when the client has taken the one before; pure ASGI.

A server passes a whole body to the transport at once, and calls it sent. In pieces, a response lasts
until its client has taken it, and its bytes count until then (``sending_bytes``).
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import account_of
from planwave.api.problems import ProblemError, problem_response
from planwave.api.rate_limit import BytesInFlight
from planwave.api.responses import PIECE_BYTES


class ResponseLimitsMiddleware:
    """Middleware that sends bodies in pieces and bounds the bytes of those that are larger than one."""

    def __init__(self, app: ASGIApp, in_flight: BytesInFlight) -> None:
        self._app = app
        self._in_flight = in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = _Response(self._in_flight, scope, receive, send)
            await self._app(scope, receive, response.send)
        else:
            await self._app(scope, receive, send)


class _Response:
    """One response; its head is kept back until it is known whether the body may be sent."""

    def __init__(
        self, in_flight: BytesInFlight, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._in_flight = in_flight
        self._scope, self._receive, self._send = scope, receive, send
        self._head: Message | None = None
        self._is_refused = False

    async def send(self, message: Message) -> None:
        if self._is_refused:
            return
        if message["type"] == "http.response.start" and _is_large(message):
            self._head = message
        elif message["type"] == "http.response.body" and len(message["body"]) > PIECE_BYTES:
            await self._send_pieces(message)
        else:
            await self._send_head()
            await self._send(message)

    async def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            await self._send(head)

    async def _send_pieces(self, message: Message) -> None:
        body = memoryview(message["body"])
        held = self._in_flight.hold(account_of(self._scope))
        try:
            held.grow(len(body))
        except ProblemError as error:
            if self._head is None:
                raise  # half an answer is out
            self._is_refused = True
            await problem_response(error)(self._scope, self._receive, self._send)
            return
        try:
            await self._send_head()
            for start in range(0, len(body), PIECE_BYTES):
                piece = bytes(body[start : start + PIECE_BYTES])
                await self._send({"type": message["type"], "body": piece, "more_body": True})
            # A server waits for room before it takes a message, so this one waits for the last piece.
            await self._send({**message, "body": b""})
        finally:
            held.close()


def _is_large(head: Message) -> bool:
    length = Headers(raw=head["headers"]).get("content-length", "")
    return length.isdecimal() and int(length) > PIECE_BYTES
