"""The audit log of the HTTP API: one table from routes to actions, written before the answer is sent.

A line has the action, the principal, ids, the request id, the address of the client and the status:
never a body, a query, a goal or a result.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import PRINCIPAL
from planwave.api.logging_config import request_id
from planwave.api.problems import problem_response
from planwave.api.rate_limit import TokenBucket
from planwave.errors import TooManyRequests
from planwave.principals import Principal, principal_json
from planwave.storage.audit import AuditLog, AuditUnavailable

if TYPE_CHECKING:
    from planwave.api.dependencies import AppState

_log = logging.getLogger(__name__)


class AuditAction(NamedTuple):
    """What a route does, as the log names it.

    Attributes:
        name: Such as ``token.created``.
        is_strict: Where the line cannot be written, the answer is 503; else a warning is logged.
    """

    name: str
    is_strict: bool = False


ACTIONS: Final[Mapping[str, AuditAction]] = {
    "openSession": AuditAction("login", is_strict=True),
    "closeSession": AuditAction("logout", is_strict=True),
    "createToken": AuditAction("token.created", is_strict=True),
    "revokeToken": AuditAction("token.revoked", is_strict=True),
    "createLink": AuditAction("link.created", is_strict=True),
    "revokeLink": AuditAction("link.revoked", is_strict=True),
    "createPlan": AuditAction("plan.created"),
    "editPlan": AuditAction("plan.edited"),
    "refinePlan": AuditAction("plan.proposed"),
    "restoreRevision": AuditAction("plan.edited"),
    "promoteExecution": AuditAction("plan.edited"),
    "approveRevision": AuditAction("plan.approved"),
    "deletePlan": AuditAction("plan.deleted", is_strict=True),
    "importFile": AuditAction("file.imported"),
    "createFlow": AuditAction("flow.saved"),
    "updateFlow": AuditAction("flow.saved"),
    "editFlow": AuditAction("flow.saved"),
    "publishFlow": AuditAction("flow.published"),
    "saveInputSet": AuditAction("input-set.saved"),
    "deleteInputSet": AuditAction("input-set.deleted", is_strict=True),
    "removeName": AuditAction("flow.deleted", is_strict=True),
    "deleteFlow": AuditAction("flow.deleted", is_strict=True),
    "createExecution": AuditAction("execution.created"),
    "startExecution": AuditAction("execution.started"),
    "run": AuditAction("execution.created"),
    "cancelExecution": AuditAction("execution.cancelled"),
    "pauseExecution": AuditAction("execution.paused"),
    "resumeExecution": AuditAction("execution.resumed"),
    "reviseExecution": AuditAction("execution.revised"),
    "replanExecution": AuditAction("execution.replanned"),
    "retryExecution": AuditAction("execution.retried"),
    "forkExecution": AuditAction("execution.forked"),
    "deleteExecution": AuditAction("execution.deleted", is_strict=True),
    "answerRequest": AuditAction("request.answered", is_strict=True),
    "answerByLink": AuditAction("request.answered", is_strict=True),
    "createChatCompletion": AuditAction("execution.created"),
    "createResponse": AuditAction("execution.created"),
    "createTrigger": AuditAction("trigger.created"),
    "enableTrigger": AuditAction("trigger.changed"),
    "disableTrigger": AuditAction("trigger.changed"),
    "fireTrigger": AuditAction("execution.created"),
    "deleteTrigger": AuditAction("trigger.deleted", is_strict=True),
    "createNotificationTarget": AuditAction("notification-target.created"),
    "deleteNotificationTarget": AuditAction("notification-target.deleted", is_strict=True),
    "resendNotification": AuditAction("notification.resent"),
    "createChat": AuditAction("chat.created"),
    "updateChat": AuditAction("chat.changed"),
    "labelExecution": AuditAction("execution.labelled"),
    "deleteChat": AuditAction("chat.deleted", is_strict=True),
    "sendMessage": AuditAction("execution.created"),
    "editMessage": AuditAction("execution.created"),
    "retryMessage": AuditAction("execution.created"),
    "continueMessage": AuditAction("execution.created"),
    "cancelMessage": AuditAction("execution.cancelled"),
}
"""By the ``operation_id`` of a route, or by its path where it has none."""

EXEMPT: Final[Mapping[str, str]] = {
    "validatePlan": "it changes nothing",
    "checkGraph": "it changes nothing",
    "previewFork": "it changes nothing",
    "exportGraph": "it changes nothing",
    "receiveWebhook": "the trigger writes a line for each execution that it starts",
    "/mcp": "each call of a tool that changes something writes a line",
    "listExecutions": "it reads",
    "getExecution": "it reads",
    "getResult": "it reads",
    "getDocument": "it reads",
    "getNode": "it reads",
    "explainNode": "it reads",
    "streamEvents": "it reads",
    "listRequests": "it reads",
    "getFirstStatus": "it reads",
    "getFirstResult": "it reads",
    "loadExecution": "it reads",
    "/ws/{execution_id:path}": "it reads",
    "getFlow": "it reads",
    "exportExecution": "it reads",
    "exportFlow": "it reads",
    "listModels": "it reads",
    "getModel": "it reads",
}
"""Routes without a line of their own, each with the reason; refused requests have one all the same."""

REFUSED: Final = "request.refused"
LOGIN_FAILED: Final = "login.failed"
AUDIT_IDS: Final = "planwave.audit-ids"
"""Key of the ids that a route adds to its line, in a connection's scope."""
AUDIT_ACTION: Final = "planwave.audit-action"
"""Key of the action of a request whose route does more than one thing, in a connection's scope."""
_REFUSALS: Final = frozenset({401, 403})
_FIRST_ERROR: Final = 400
_CLOSE_REFUSALS: Final = frozenset({4401, 4403})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSALS_PER_S: Final = 2.0
_REFUSALS_BURST: Final = 20
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,80}", re.ASCII)
_SECRET_PARAMETER: Final = "key"  # noqa: S105 - its name
"""The one parameter of paths that is no id: whoever has it may open a link."""
_LOCATED: Final = re.compile(r"/api/(\w+?)s/([0-9a-f-]{36})", re.ASCII)
_EXECUTION_HEADER: Final = "x-planwave-execution-id"


class AuditMiddleware:
    """Middleware that writes a line for each request of ``ACTIONS``, and for refused requests.

    It is outside of all other middleware but the one that identifies requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._refusals = TokenBucket("refusals", _REFUSALS_PER_S, _REFUSALS_BURST)
        self._unlogged_refusals = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: AppState | None = getattr(scope["app"].state, "planwave", None)
        log = None if state is None else state.service.audit
        if log is None or scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if log.is_broken and not await _is_writable_again(log, scope):
            await problem_response(_unwritable(), request_id())(scope, receive, send)
            return
        is_refused = False

        async def logged(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            status = _status_of(message)
            if status is not None:
                try:
                    await self._log(log, scope, status, message.get("headers", ()))
                except AuditUnavailable as error:
                    is_refused = True
                    await problem_response(error, request_id())(scope, receive, send)
                    return
            await send(message)

        await self._app(scope, receive, logged)

    async def _log(
        self, log: AuditLog, scope: Scope, status: int, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        name = _route_name(scope.get("route"))
        action = ACTIONS.get(name or "")
        entry: dict[str, Any] = {}
        if _is_refusal(scope, status, action):
            if not self._may_log_refusal():
                return
            entry["action"] = LOGIN_FAILED if name == "openSession" else REFUSED
            if self._unlogged_refusals:
                entry["unlogged_before"], self._unlogged_refusals = self._unlogged_refusals, 0
        elif action is None:
            return
        else:
            entry["action"] = scope.get(AUDIT_ACTION, action.name)
        entry |= _facts(scope, name, status, headers)
        try:
            await log.append(entry)
        except AuditUnavailable as error:
            if action is not None and action.is_strict:
                raise
            _log.warning("no line of the audit log for %s: %s", entry["action"], error)

    def _may_log_refusal(self) -> bool:
        """Return whether a refused request is logged: somebody who floods must not fill the disk."""
        try:
            self._refusals.acquire("")
        except TooManyRequests:
            self._unlogged_refusals += 1
            return False
        return True


def _is_refusal(scope: Scope, status: int, action: AuditAction | None) -> bool:
    """Return whether somebody was refused; whoever nobody knows did nothing that a line of the action would tell of."""
    if status in _REFUSALS or status in _CLOSE_REFUSALS:
        return True
    return action is not None and status >= _FIRST_ERROR and scope.get(PRINCIPAL) is None


def _facts(
    scope: Scope, route: str | None, status: int, headers: Sequence[tuple[bytes, bytes]]
) -> dict[str, Any]:
    principal: Principal | None = scope.get(PRINCIPAL)
    client = scope.get("client")
    return {
        "principal": principal_json(principal),
        "route": route,
        "ids": {**_ids_of(headers), **_path_ids(scope), **scope.get(AUDIT_IDS, {})},
        "request_id": request_id(),
        "remote": client[0] if client else None,
        "status": status,
    }


def _path_ids(scope: Scope) -> dict[str, str]:
    params: Mapping[str, Any] = scope.get("path_params") or {}
    ids = {name: str(value) for name, value in params.items() if name != _SECRET_PARAMETER}
    return {name: value for name, value in ids.items() if _ID.fullmatch(value)}


def _ids_of(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the ids that the headers of a response name: of what was created."""
    ids: dict[str, str] = {}
    for name, value in headers:
        text = value.decode("latin-1")
        if name.lower() == b"location" and (located := _LOCATED.search(text)):
            ids[f"new_{located[1]}_id"] = located[2]
        elif name.lower() == _EXECUTION_HEADER.encode() and _ID.fullmatch(text):
            ids["new_execution_id"] = text
    return ids


def _route_name(route: Any) -> str | None:
    return getattr(route, "operation_id", None) or getattr(route, "path", None)


def _status_of(message: Message) -> int | None:
    """Return the status of an answer that begins, or the code of a refused WebSocket."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return message["status"]
        case "websocket.close":
            return message.get("code", 1000)
        case _:
            return None


async def _is_writable_again(log: AuditLog, scope: Scope) -> bool:
    """Return whether a request may be processed although the last line could not be written.

    What must not happen without a line is not begun: the log is tried first.
    """
    action = ACTIONS.get(_route_name(_matched_route(scope)) or "")
    if scope.get("method") in _SAFE_METHODS or action is None or not action.is_strict:
        return True
    try:
        await log.append({"action": "log.resumed"})
    except AuditUnavailable:
        return False
    return True


def _matched_route(scope: Scope) -> Any:
    routes = scope["app"].routes
    return next((each for each in routes if each.matches(scope)[0] is Match.FULL), None)


def _unwritable() -> AuditUnavailable:
    return AuditUnavailable(
        "the audit log cannot be written, and this must not happen without a line in it",
        hint="the service's log says why; make room, or correct the rights of the directory",
    )


def add_audit_ids(connection: HTTPConnection, **ids: str) -> None:
    """Add ids to the line of a request, such as that of a token that it created."""
    connection.scope.setdefault(AUDIT_IDS, {}).update(ids)


def set_audit_action(connection: HTTPConnection, name: str) -> None:
    """Name what a request does, where its route does more than one thing."""
    connection.scope[AUDIT_ACTION] = name
