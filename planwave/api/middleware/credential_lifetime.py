"""A stream ends with what it was opened with: an access token, or the session of a browser.

It also ends where nobody can say whether that is over: the client connects again, and is told so (503).

One middleware for all streams, whatever sends them: event streams, WebSockets, answers of models, MCP.
A response that is no stream is finished, for its request was allowed when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import may_end, why_ended
from planwave.api.problems import close_of, problem_details
from planwave.errors import PlanwaveError
from planwave.jsonio import dumps_trusted

CHECK_INTERVAL_S: Final = 0.4
"""Between two looks at the credential of an open stream; a stream ends within a second."""
_SERVER_ERROR: Final = 500
_CLOSE_GOING_AWAY: Final = 1001
_DISCONNECTS: Final[dict[str, Message]] = {
    "http": {"type": "http.disconnect"},
    "websocket": {"type": "websocket.disconnect", "code": _CLOSE_GOING_AWAY},
}


class CredentialLifetimeMiddleware:
    """Middleware that ends streams whose access token or session has ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        stream = _Stream(scope, receive, send)
        try:
            await self._app(scope, stream.receive, stream.send)
        finally:
            stream.stop()


class _Stream:
    """One connection; it is watched once its response is a stream."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._connection = HTTPConnection(scope)
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the application is told that the client has left."""
        self._is_over = False
        self._watching: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        """Receive from the client; to the application, the end is a client that has left."""
        if not may_end(self._connection):
            return await self._receive()
        receiving = asyncio.get_running_loop().create_task(_received(self._receive))
        try:
            await asyncio.wait((receiving, self._left), return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else _DISCONNECTS[self._scope["type"]]
        finally:
            receiving.cancel()

    async def send(self, message: Message) -> None:
        if self._is_over:
            return
        if _ends_response(message):
            self.stop()
        await self._send(message)
        if _opens_stream(message) and may_end(self._connection):
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Watch no longer: the response is complete."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        # Looked at again and again: an expiry has no event, and clocks may be set.
        while (error := why_ended(self._connection)) is None:  # noqa: ASYNC110
            await asyncio.sleep(CHECK_INTERVAL_S)
        self._is_over = True
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CHECK_INTERVAL_S):  # a client that does not read
                await self._send(_LAST_MESSAGES[self._scope["type"]](error))
        self._left.set_result(None)


async def _received(receive: Receive) -> Message:
    return await receive()


def _closing_event(error: PlanwaveError) -> Message:
    """Return the last event of a stream; clients of OpenAI's protocol look for ``error``."""
    kind = "invalid_request_error" if error.status_hint < _SERVER_ERROR else "server_error"
    problem = {
        **problem_details(error),
        "error": {"message": error.message, "type": kind, "code": error.code},
    }
    body = b"\n\nevent: problem\ndata: %s\n\n" % dumps_trusted(problem)
    return {"type": "http.response.body", "body": body, "more_body": False}


def _close_frame(error: PlanwaveError) -> Message:
    code, reason = close_of(error)
    return {"type": "websocket.close", "code": code, "reason": reason}


_LAST_MESSAGES: Final[dict[str, Callable[[PlanwaveError], Message]]] = {
    "http": _closing_event,
    "websocket": _close_frame,
}


def _ends_response(message: Message) -> bool:
    is_body = message["type"] == "http.response.body"
    return message["type"] == "websocket.close" or (is_body and not message.get("more_body"))


def _opens_stream(message: Message) -> bool:
    if message["type"] == "websocket.accept":
        return True
    if message["type"] != "http.response.start":
        return False
    return any(
        name.lower() == b"content-type" and value.lower().startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
