"""Each request's id, its line in the access log, and a response to unexpected errors.

Pure ASGI, outside all middleware that answers: requests that those reject have an id, a line and a count too.
"""

from __future__ import annotations

import logging
import re
import time
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import PRINCIPAL
from planwave.api.logging_config import ACCESS_LOG, RequestContext, current_request
from planwave.api.metrics import PrometheusObserver
from planwave.api.problems import DENIED, problem_response
from planwave.errors import PlanwaveError, Unauthorized
from planwave.ids import new_id
from planwave.log_records import write_record
from planwave.principals import Principal, acting_as, current_principal
from planwave.service.service_log import BoundedLines

_log = logging.getLogger(__name__)

REQUEST_ID_HEADER: Final = "x-request-id"
_VALID_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_LONGEST_METHOD: Final = 16
_CLIENT_CLOSED_REQUEST: Final = 499
"""Logged where the client left before it was answered; as nginx does."""
_UNANSWERED_STATUS: Final = 500
_REJECTED_HANDSHAKE: Final = 403
"""A WebSocket's close before it was accepted; what servers make of it."""
_INTERNAL_ERROR_CLOSE: Final = 1011


_LONGEST_REASON: Final = 200


def _reason_of(denied: PlanwaveError) -> str:
    """Return why a request was denied, for the operator: of a 401 more than its answer says."""
    reason = denied.reason if isinstance(denied, Unauthorized) else None
    return (reason or denied.message)[:_LONGEST_REASON]


class RequestContextMiddleware:
    """Middleware that identifies, counts and logs each request, and answers unexpected errors (500).

    Args:
        app: The application inside.
        metrics: Where requests are counted.
    """

    def __init__(self, app: ASGIApp, metrics: PrometheusObserver) -> None:
        self._app = app
        self._metrics = metrics
        self._denied = BoundedLines(ACCESS_LOG)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = _Request(scope, send, self._metrics, self._denied)
        token = current_request.set(request.context)
        try:
            # An application inside the caller's task must not leave its principal there.
            with acting_as(current_principal()):
                await self._app(scope, receive, request.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            _log.exception("request %s broke", request.context.id)
            if not await request.answer(receive):
                raise error from None  # half an answer is out: the connection has to break
        finally:
            request.finish()
            request.context.is_ended = True
            current_request.reset(token)


class _Request:
    """One request under way."""

    def __init__(
        self, scope: Scope, send: Send, metrics: PrometheusObserver, denied: BoundedLines
    ) -> None:
        client_id = HTTPConnection(scope).headers.get(REQUEST_ID_HEADER, "")
        self.context = RequestContext(
            client_id if _VALID_REQUEST_ID.fullmatch(client_id) else new_id()
        )
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._denied = denied
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
                MutableHeaders(scope=message).setdefault(REQUEST_ID_HEADER, self.context.id)
            case "websocket.close":
                self._note(_REJECTED_HANDSHAKE)
                self._status = message.get("code", 1000)
            case _:
                pass
        await self._send(message)

    async def answer(self, receive: Receive) -> bool:
        """Answer with 500; return False if a response has begun already."""
        if self._scope["type"] == "websocket":
            if self._status == 101:
                await self.send({"type": "websocket.close", "code": _INTERNAL_ERROR_CLOSE})
            return self._status in (101, _INTERNAL_ERROR_CLOSE)
        if self._status is not None:
            return False
        fault = PlanwaveError(
            "something broke inside planwave",
            hint=f"its log has more under request {self.context.id}; please report it",
        )
        await problem_response(fault, self.context.id)(self._scope, receive, self.send)
        return True

    def finish(self) -> None:
        """Write its one line; count it, where it broke before it could be answered."""
        took_s = time.perf_counter() - self._begun
        if self._status is None:
            self._metrics.request_answered(self._scope, _UNANSWERED_STATUS, took_s)
        route: Any = self._scope.get("route")
        fields: dict[str, Any] = {
            "method": self._scope.get("method", "WEBSOCKET")[:_LONGEST_METHOD],
            "route": getattr(route, "path", None) or "-",
            "status": self._status or _CLIENT_CLOSED_REQUEST,
            "ms": round(took_s * 1_000, 1),
            "request_id": self.context.id,
        }
        principal: Principal | None = self._scope.get(PRINCIPAL)
        if principal is not None:
            fields["principal"] = principal.kind
            if principal.id is not None:
                fields["principal_id"] = principal.id
        denied: PlanwaveError | None = self._scope.get(DENIED)
        if denied is not None:
            fields["reason"] = _reason_of(denied)
            self._denied.log(fields["route"], logging.WARNING, "request", fields)
            return
        # What pages and commands read again and again would bury the rest.
        is_read = fields["method"] in ("GET", "HEAD") and fields["status"] < HTTPStatus.BAD_REQUEST
        write_record(ACCESS_LOG, logging.DEBUG if is_read else logging.INFO, "request", fields)

    def _note(self, status: int) -> None:
        """Note what an answer begins with, and count the request by that."""
        if self._status is None:
            self._status = status
            self._metrics.request_answered(self._scope, status, time.perf_counter() - self._begun)

    def _complete(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        headers[REQUEST_ID_HEADER] = self.context.id
        headers.setdefault("cache-control", "no-store")
