"""Limits on the size of a request and on the time its body takes to arrive; pure ASGI.

A body whose declared length is too large is rejected before it is read. One that turns out too large,
or arrives too slowly, raises in the route that reads it, and is answered as any other error. Either
way the connection is closed after the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from planwave.api.problems import ProblemError, send_problem
from planwave.errors import LimitExceeded, PlanwaveError
from planwave.settings import Limits

_HOOKS: Final = "/hooks/"
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 256 * 1024 * 1024
"""How much of a body that was refused is still taken off the wire. A connection that is closed on
unread bytes is reset, and then its client never sees the answer."""
_REQUEST_LINE_OVERHEAD: Final = len("  HTTP/1.1\r\n\r\n")
_HEADER_OVERHEAD: Final = len(": \r\n")


class RequestLimitsMiddleware:
    """Middleware that enforces ``header_bytes``, ``body_bytes`` or ``webhook_bytes``, and ``body_read_s``."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] not in ("http", "websocket"):
            return self._app(scope, receive, send)
        try:
            self._check_head(scope)
        except PlanwaveError as error:
            return self._reject(scope, receive, send, error)
        if scope["type"] == "websocket":
            return self._app(scope, receive, send)
        body = _LimitedBody(self._limits, _body_limit(scope), scope, receive, send)
        return self._app(scope, body.receive, body.send)

    def _check_head(self, scope: Scope) -> None:
        limits = self._limits
        head = size_of_head(scope)
        if head > limits.header_bytes:
            raise head_exceeded(limits.header_bytes, head)
        declared = HTTPConnection(scope).headers.get("content-length", "")
        name = _body_limit(scope)
        most: int = getattr(limits, name)
        if declared.isdecimal() and int(declared) > most:
            raise LimitExceeded(name, most, int(declared), what="the body")

    async def _reject(
        self, scope: Scope, receive: Receive, send: Send, error: PlanwaveError
    ) -> None:
        if scope["type"] == "websocket":
            await send_problem(WebSocket(scope, receive, send), error)
            return
        body = _LimitedBody(self._limits, _body_limit(scope), scope, receive, send)
        body.is_rejected = True
        answer = await send_problem(Request(scope), error)
        if answer is not None:
            await answer(scope, receive, body.send)


class _LimitedBody:
    """The body of one request, counted and timed, and the answer, which may have to close."""

    def __init__(
        self, limits: Limits, limit_name: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._limits = limits
        self._limit_name = limit_name
        self._most: int = getattr(limits, limit_name)
        self._receive = receive
        self._send = send
        self._deadline = asyncio.get_running_loop().time() + limits.body_read_s
        self._bytes = 0
        self._is_complete = False
        # Who asks whether to go on has not sent the body, and will not when refused.
        self._awaits_continue = HTTPConnection(scope).headers.get("expect", "") != ""
        self.is_rejected = False

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.is_rejected = self._awaits_continue = True
            raise ProblemError(
                408,
                "request-timeout",
                f"the body did not arrive within {self._limits.body_read_s:.12g} s",
                hint="send it faster or raise PLANWAVE_LIMIT_BODY_READ_S",
            ) from None
        self._awaits_continue = False
        self._bytes += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._bytes > self._most:
            self.is_rejected = True
            raise LimitExceeded(self._limit_name, self._most, self._bytes, what="the body")
        return message

    async def send(self, message: Message) -> None:
        if self.is_rejected and message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
        if not self.is_rejected or self._is_complete or _has_more(message):
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        if not self._awaits_continue:
            await self._drain()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        """Take the rest of a refused body off the wire, for a moment."""
        left = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER_S):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return


def _body_limit(scope: Scope) -> str:
    """Return the name of the limit for the body of a request."""
    return "webhook_bytes" if str(scope["path"]).startswith(_HOOKS) else "body_bytes"


def size_of_head(scope: Scope) -> int:
    """Return the size of a request line and its headers; optional spaces are not counted."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    target: Any = scope.get("raw_path") or scope["path"].encode()
    line = (
        len(scope.get("method", "GET"))
        + len(target)
        + len(scope["query_string"])
        + _REQUEST_LINE_OVERHEAD
    )
    return line + sum(len(name) + len(value) + _HEADER_OVERHEAD for name, value in headers)


def head_exceeded(limit: int, actual: int) -> LimitExceeded:
    """Return the error for a head that is too large."""
    error = LimitExceeded("header_bytes", limit, actual, what="the request's head")
    error.status_hint = 431
    return error


def _has_more(message: Message) -> bool:
    return message["type"] != "http.response.body" or message.get("more_body", False)
