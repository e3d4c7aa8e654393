"""Each request's id, its one line in the log, and an answer even where planwave itself is at fault.

Pure ASGI, outside everything else: what the gate and the bounds refuse is counted, and has an id and
a line too.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.logs import ACCESS, FIELDS, Current, current
from planwave.api.metrics import Metrics
from planwave.api.problems import answer_to
from planwave.errors import PlanwaveError
from planwave.storage.ids import new_id

_log = logging.getLogger(__name__)

HEADER: Final = "x-request-id"
_SANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_LONGEST_METHOD: Final = 16
_GONE: Final = 499
"""Logged where the client left before it was answered; as nginx does."""
_NOT_ANSWERED: Final = 500
_TURNED_AWAY: Final = 403
"""A WebSocket's close before it was accepted; what servers make of it."""
_BROKEN: Final = 1011


class Requests:
    """Gives each request and WebSocket an id, counts and logs it, and answers if nobody else did.

    Args:
        app: What answers.
        metrics: Where requests are counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = _Request(scope, send, self._metrics)
        token = current.set(request.current)
        try:
            await self._app(scope, receive, request.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            _log.exception("request %s broke", request.current.id)
            if not await request.answer(receive):
                raise error from None  # half an answer is out: the connection has to break
        finally:
            request.end()
            request.current.is_over = True
            current.reset(token)


class _Request:
    """One request under way."""

    def __init__(self, scope: Scope, send: Send, metrics: Metrics) -> None:
        given = HTTPConnection(scope).headers.get(HEADER, "")
        self.current = Current(given if _SANE.fullmatch(given) else new_id())
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._begun = time.perf_counter()
        self._status: int | None = None
        """What is logged: of a WebSocket, in the end, how it was closed."""

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._note(message["status"])
                self._complete(message)
            case "websocket.http.response.start":
                self._note(message["status"])
            case "websocket.accept":
                self._note(101)
                MutableHeaders(scope=message).setdefault(HEADER, self.current.id)
            case "websocket.close":
                self._note(_TURNED_AWAY)
                self._status = message.get("code", 1000)
            case _:
                pass
        await self._send(message)

    async def answer(self, receive: Receive) -> bool:
        """Say that it is our fault; False where an answer has begun."""
        if self._scope["type"] == "websocket":
            if self._status == 101:
                await self.send({"type": "websocket.close", "code": _BROKEN})
            return self._status in (101, _BROKEN)
        if self._status is not None:
            return False
        fault = PlanwaveError(
            "something broke inside planwave",
            hint=f"its log has more under request {self.current.id}; please report it",
        )
        await answer_to(fault, self.current.id)(self._scope, receive, self.send)
        return True

    def end(self) -> None:
        """Write its one line; count it, where it broke before it could be answered."""
        took_s = time.perf_counter() - self._begun
        if self._status is None:
            self._metrics.answered(self._scope, _NOT_ANSWERED, took_s)
        route: Any = self._scope.get("route")
        fields: dict[str, Any] = {
            "method": self._scope.get("method", "WEBSOCKET")[:_LONGEST_METHOD],
            "route": getattr(route, "path", None) or "-",
            "status": self._status or _GONE,
            "ms": round(took_s * 1_000, 1),
            "request_id": self.current.id,
        }
        ACCESS.info("request", extra={FIELDS: fields})

    def _note(self, status: int) -> None:
        """Note what an answer begins with, and count the request by that."""
        if self._status is None:
            self._status = status
            self._metrics.answered(self._scope, status, time.perf_counter() - self._begun)

    def _complete(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        headers[HEADER] = self.current.id
        headers.setdefault("x-content-type-options", "nosniff")
        headers.setdefault("cache-control", "no-store")
