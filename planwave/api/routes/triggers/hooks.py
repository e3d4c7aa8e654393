"""Route: requests of other programs, which start executions of flows.

It needs no token of the service: each webhook says how its senders prove who they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.auth import require_no_other_site
from planwave.api.dependencies import AppState, StateDep, app_state
from planwave.api.middleware.idempotency import REPLAYED_HEADER
from planwave.api.middleware.request_limits import sender_is_known
from planwave.api.middleware.security_headers import POLICY_HEADER, STRICTEST_POLICY
from planwave.api.pagination import HookId
from planwave.api.problems import DENIED, InvalidRequest, ProblemError, problems
from planwave.api.schemas.examples import EXECUTION_ID
from planwave.api.streaming.sse import ExecutionEventStream, format_event, wait_for_disconnect
from planwave.errors import Unauthorized
from planwave.events import Event
from planwave.events.types import MESSAGE
from planwave.jsonio import dumps_trusted
from planwave.service.streaming.subscriber_queue import EventBatch
from planwave.service.triggers.trigger_service import Trigger
from planwave.triggers.webhook_answers import WebhookAnswer
from planwave.triggers.webhooks import WebhookRequest

router = APIRouter(tags=["triggers"], dependencies=[Depends(require_no_other_site)])

_STREAM_TYPE: Final = "text/event-stream"
_TRUE: Final = frozenset({"1", "true", "yes"})
_EMPTY_STATUSES: Final = frozenset({204, 205, 304})
_SAFETY_HEADERS: Final = {
    "Cache-Control": "no-store",
    POLICY_HEADER: f"sandbox; {STRICTEST_POLICY}",
}
"""An answer may hold what strangers wrote; no browser may run it as a page of the service."""
_ANYTHING: Final = {"description": "What the flow takes and gives."}
_STARTED: Final = {
    "type": "object",
    "properties": {"execution_id": {"type": "string"}},
    "required": ["execution_id"],
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The answer of the flow; its status may be another. With `wait`, the result; "
        "with `stream`, events.",
        "content": {
            "*/*": {"schema": _ANYTHING},
            _STREAM_TYPE: {"schema": {"type": "string"}, "example": "event: execution.started\n\n"},
        },
    },
    202: {
        "description": "It is started.",
        "content": {
            "application/json": {"schema": _STARTED, "example": {"execution_id": EXECUTION_ID}}
        },
    },
    "default": {
        "description": "The status that the flow answers with.",
        "content": {"*/*": {"schema": _ANYTHING}},
    },
}
_PARAMETERS: Final = [
    {
        "name": "wait",
        "in": "query",
        "description": "Seconds to wait for the result, up to the limit `webhook_wait_s`.",
        "schema": {"type": "number", "minimum": 0},
        "example": 30,
    },
    {
        "name": "stream",
        "in": "query",
        "description": "`1` to watch the execution; so does `Accept: text/event-stream`.",
        "schema": {"type": "string"},
        "example": "1",
    },
]


@router.post(
    "/hooks/{hook_id}",
    operation_id="receiveWebhook",
    summary="Send a request to a flow",
    response_class=Response,
    responses={**_RESPONSES, **problems(400, 401, 404, 409, 422, 429)},
    openapi_extra={
        "parameters": _PARAMETERS,
        "requestBody": {
            "required": False,
            "content": {
                "application/json": {"schema": _ANYTHING},
                "text/plain": {"schema": {"type": "string"}},
            },
        },
    },
)
async def receive_webhook(request: Request, state: StateDep, hook_id: HookId) -> Response:
    """Start an execution of the flow behind a webhook, with the request as its input.

    The sender proves who it is as the webhook says: by a signature (Standard Webhooks), by a secret
    in a header, or not at all. A repeated delivery gets the first answer.
    """
    webhooks = state.triggers.webhooks
    if hook_id not in webhooks.hook_ids:
        state.authenticator.count_failure()  # before the store is asked
    hook = await webhooks.find(hook_id)
    body = await request.body()
    headers = _joined_headers(request)
    try:
        webhooks.authenticate(hook, headers, body)
    except Unauthorized as error:
        request.scope[DENIED] = error
        state.authenticator.count_failure()
        raise ProblemError(401, error.code, error.message) from error
    sender_is_known(request.scope)
    _count(state, hook)
    received = _read_request(request, hook, headers, body, state.settings.limits.webhook_wait_s)
    disconnect = partial(wait_for_disconnect, request.receive)
    answer = await webhooks.receive(hook, received, disconnect)
    streams = received.streams and answer.execution_id
    return _stream(request, hook, answer) if streams else _response(answer)


def _count(state: AppState, hook: Trigger) -> None:
    """Count a request and an execution; each webhook is a principal of its own.

    Raises:
        TooManyRequests: There were too many.
    """
    principal = f"webhook {hook.trigger_id}"
    state.authenticator.count_request(principal)
    state.authenticator.check_execution_rate(principal)


def _joined_headers(request: Request) -> dict[str, str]:
    names = dict.fromkeys(request.headers.keys())
    return {name: ", ".join(request.headers.getlist(name)) for name in names}


def _read_request(
    request: Request, hook: Trigger, headers: dict[str, str], body: bytes, longest_s: float
) -> WebhookRequest:
    """Return an authenticated request with the sender's wishes.

    Raises:
        InvalidRequest: ``wait`` is no number of seconds within the limit.
    """
    query = dict(request.query_params)
    wants_stream = query.get("stream", "").lower() in _TRUE
    accepts_stream = _STREAM_TYPE in headers.get("accept", "").lower()
    client = request.client
    return WebhookRequest(
        request.method,
        request.url.path,
        headers,
        query,
        body,
        None if client is None else (client.host, client.port),
        wait_s=_wait_s(query.get("wait", "0"), longest_s),
        streams=hook.data.allow_sse and (wants_stream or accepts_stream),
    )


def _wait_s(written: str, longest_s: float) -> float:
    try:
        seconds = float(written)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds <= longest_s:
        return seconds
    message = (
        f"query parameter 'wait': write seconds from 0 to {longest_s:g} (limit webhook_wait_s)"
    )
    issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": "wait"}
    raise InvalidRequest(message, [issue])


def _response(answer: WebhookAnswer) -> Response:
    body = b"" if answer.status in _EMPTY_STATUSES else answer.body.encode(errors="replace")
    headers = {**answer.headers, **_SAFETY_HEADERS}
    if answer.is_repeated:
        headers[REPLAYED_HEADER] = "true"
    return Response(body, answer.status, headers)


def _stream(request: Request, hook: Trigger, answer: WebhookAnswer) -> Response:
    state = app_state(request)

    async def cancel() -> None:
        await state.triggers.webhooks.cancel(answer.execution_id)

    return ExecutionEventStream(
        state,
        f"webhook {hook.trigger_id}",
        answer.execution_id,
        0,
        render=format_public_batch,
        on_leave=cancel if hook.data.on_disconnect == "cancel" else None,
    )


_WITH_DATA: Final = frozenset({"node.completed", "node.delta"})
_WITHOUT_DATA: Final = frozenset(
    {
        "execution.started",
        "execution.paused",
        "execution.resumed",
        "execution.completed",
        "execution.failed",
        "execution.cancelled",
        "node.started",
        "node.retrying",
        "node.failed",
        "node.skipped",
        "node.blocked",
        "node.waiting",
        "node.answered",
        "node.cancelled",
    }
)


def format_public_batch(batch: EventBatch) -> bytes:
    """Return a batch as server-sent events, without what is not for senders."""
    return b"".join(filter(None, map(_format, batch.events)))


def _format(event: Event) -> bytes | None:
    document: dict[str, Any] = {**event.as_json(), "data": {}}
    data: Any = event.data
    if event.type == "node.delta" and event.path is None:
        return None  # a change of the plan, as it is written
    if event.type in _WITH_DATA:
        document["data"] = {
            name: data[name] for name in ("outputs", "kind", "text", "offset") if name in data
        }
    elif event.type == "node.event" and data.get("event_type") == MESSAGE:
        document["data"] = data
    elif event.type not in _WITHOUT_DATA:
        return None
    return format_event(event.type, dumps_trusted(document), event.seq)
