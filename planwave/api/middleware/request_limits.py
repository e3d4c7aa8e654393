"""Limits on the size of a request and on the time its body takes to arrive; pure ASGI.

A body whose declared length is too large is rejected before it is read. One that turns out too large,
or arrives too slowly, raises in the route that reads it, and is answered as any other error. Either
way the connection is closed after the response.

Webhooks and logins are read before their sender is known, which alone proves who it is. What is in memory of
such bodies is limited for all together and for each webhook, until ``sender_is_known``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from planwave.api.problems import ProblemError, send_problem
from planwave.errors import LimitExceeded, PlanwaveError
from planwave.settings import Limits

_HOOKS: Final = "/hooks/"
_SESSION: Final = "/api/session"
_UNKNOWN_SENDER: Final = "planwave.body-of-unknown-sender"
"""Key of the share of a body in a scope."""
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 256 * 1024 * 1024
"""How much of a body that was refused is still taken off the wire. A connection that is closed on
unread bytes is reset, and then its client never sees the answer."""
_REQUEST_LINE_OVERHEAD: Final = len("  HTTP/1.1\r\n\r\n")
_HEADER_OVERHEAD: Final = len(": \r\n")


class RequestLimitsMiddleware:
    """Middleware that enforces the limits on heads and bodies of requests, and ``body_read_s``."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._unauthenticated = _UnauthenticatedBodies(limits)

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
        if _is_read_unauthenticated(scope):
            return self._read_unauthenticated(scope, body)
        return self._app(scope, body.receive, body.send)

    async def _read_unauthenticated(self, scope: Scope, body: _LimitedBody) -> None:
        share = body.share = scope[_UNKNOWN_SENDER] = _Share(self._unauthenticated, scope["path"])
        try:
            await self._app(scope, body.receive, body.send)
        finally:
            share.release()

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


class _UnauthenticatedBodies:
    """The bytes in memory of bodies whose senders are not known yet, by the path that they are sent to."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    def hold(self, path: str, count: int) -> None:
        """Count bytes that were received.

        Raises:
            LimitExceeded: 503: there are too many; these are not counted.
        """
        self._check("unauthenticated_bytes", self._held.total() + count)
        if path.startswith(_HOOKS):
            self._check("webhook_unauthenticated_bytes", self._held[path] + count)
        self._held[path] += count

    def release(self, path: str, count: int) -> None:
        """Stop counting bytes."""
        self._held[path] -= count
        if not self._held[path]:
            del self._held[path]

    def _check(self, name: str, held: int) -> None:
        # A single body always fits: else a smaller limit would refuse all of some size, for ever.
        most = max(getattr(self._limits, name), self._limits.webhook_bytes)
        if held > most:
            error = LimitExceeded(
                name, most, held, what="the bodies of unknown senders", hint="send it again later"
            )
            error.status_hint = 503
            raise error


class _Share:
    """The bytes of one body among those of unknown senders."""

    def __init__(self, bodies: _UnauthenticatedBodies, path: str) -> None:
        self._bodies = bodies
        self._path = path
        self._count = 0
        self._is_counted = True

    def add(self, count: int) -> None:
        if self._is_counted:
            self._bodies.hold(self._path, count)
            self._count += count

    def release(self) -> None:
        self._is_counted = False
        self._bodies.release(self._path, self._count)
        self._count = 0


def sender_is_known(scope: Scope) -> None:
    """Stop counting the body of a request among those of unknown senders."""
    share: _Share = scope[_UNKNOWN_SENDER]
    share.release()


class _LimitedBody:
    """The body of one request, counted and timed, and the answer, which may have to close.

    Attributes:
        share: Where its bytes are counted until the sender is known; None where it was before.
    """

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
        self.share: _Share | None = None

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
        if self.share is not None:
            self._count(self.share, len(message.get("body", b"")))
        return message

    def _count(self, share: _Share, received: int) -> None:
        try:
            share.add(received)
        except LimitExceeded:
            self.is_rejected = True
            raise

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
        remaining = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER_S):
                while remaining > 0:
                    message = await self._receive()
                    remaining -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return


def _body_limit(scope: Scope) -> str:
    """Return the name of the limit for the body of a request."""
    path: str = scope["path"]
    if path == _SESSION:
        return "session_bytes"
    return "webhook_bytes" if path.startswith(_HOOKS) else "body_bytes"


def _is_read_unauthenticated(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == _SESSION or path.startswith(_HOOKS)


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
