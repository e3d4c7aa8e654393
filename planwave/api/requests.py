"""Each request's id, its one line in the log, and an answer even where planwave itself is at fault.

Pure ASGI, outside everything else: what the gate and the bounds refuse has an id and a line too.
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
from planwave.api.problems import answer_to
from planwave.errors import PlanwaveError
from planwave.storage.ids import new_id

_log = logging.getLogger(__name__)

HEADER: Final = "x-request-id"
_SANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_LONGEST_METHOD: Final = 16
_GONE: Final = 499
"""Logged where the client left before it was answered; as nginx does."""
_BROKEN: Final = 1011


class Requests:
    """Gives each request and WebSocket an id, logs it, and answers for what nobody else did."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = _Request(scope, send)
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
            request.log()
            request.current.is_over = True
            current.reset(token)


class _Request:
    """One request under way."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = HTTPConnection(scope).headers.get(HEADER, "")
        self.current = Current(given if _SANE.fullmatch(given) else new_id())
        self._scope = scope
        self._send = send
        self._begun = time.perf_counter()
        self._status: int | None = None

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._status = message["status"]
                self._complete(message)
            case "websocket.accept":
                self._status = 101
                MutableHeaders(scope=message).setdefault(HEADER, self.current.id)
            case "websocket.close":
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

    def log(self) -> None:
        """Write the one line."""
        route: Any = self._scope.get("route")
        fields: dict[str, Any] = {
            "method": self._scope.get("method", "WEBSOCKET")[:_LONGEST_METHOD],
            "route": getattr(route, "path", None) or "-",
            "status": self._status or _GONE,
            "ms": round((time.perf_counter() - self._begun) * 1_000, 1),
            "request_id": self.current.id,
        }
        ACCESS.info("request", extra={FIELDS: fields})

    def _complete(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        headers[HEADER] = self.current.id
        headers.setdefault("x-content-type-options", "nosniff")
        headers.setdefault("cache-control", "no-store")
