"""Route: the events of an execution as server-sent events, from any place on.

Stored events have their ``seq`` as ``id``, so that a browser's ``EventSource`` comes back with the
right ``Last-Event-ID`` by itself. Streamed text has none: whoever comes back is given the text of
each open node once more, from offset 0, and puts pieces where their ``offset`` says.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planwave.api.access import require_principal
from planwave.api.answers import LogEntriesResponse
from planwave.api.executions import log_response
from planwave.api.parameters import ExecutionId
from planwave.api.problems import InvalidRequest, problem_details, problems
from planwave.api.state import AUTHENTICATED, AppState, StateDep
from planwave.errors import ShuttingDown, PlanwaveError, SlowConsumer
from planwave.service.following import ExecutionSubscription
from planwave.service.frames import BacklogLimits, EventBatch
from planwave.storage.rows import dumps_trusted

router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)

PING_INTERVAL_S: Final = 15.0
"""A comment is sent after so much silence: proxies cut connections that say nothing."""
_PING: Final = b": ping\n\n"
_SEQ: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_LARGEST_SEQ: Final = 10**15 - 1

_EXAMPLE: Final = (
    'id: 2\nevent: execution.started\ndata: {"seq":2,"type":"execution.started","data":{"waves":1}}'
    '\n\nevent: node.delta\ndata: {"seq":0,"type":"node.delta","path":"poem","attempt":1,'
    '"data":{"kind":"text","text":"Water","offset":0}}\n\n'
)
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events as they happen; with `format=log`, the typed log so far.",
        "model": LogEntriesResponse,
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    204: {"description": "It is over, and nothing comes after that event: do not come back."},
}


@router.get(
    "/api/executions/{execution_id}/events",
    operation_id="streamEvents",
    summary="The events of an execution, as they happen",
    response_class=Response,
    responses={**_RESPONSES, **problems(404, 409, 422)},
)
async def stream_events(
    state: StateDep,
    principal: Annotated[str, Depends(require_principal)],
    execution_id: ExecutionId,
    after: Annotated[
        int, Query(ge=0, le=_LARGEST_SEQ, description="The last `seq` already known.")
    ] = 0,
    format: Annotated[
        Literal["events", "log"],
        Query(description="`log`: entries for people, as one JSON document, without waiting."),
    ] = "events",
    last_event_id: Annotated[
        str | None, Header(description="What `EventSource` sends when it comes back; over `after`.")
    ] = None,
) -> Response:
    """Give every event after the last one known, then each as it happens, up to the terminal one.

    `event` is the event's type, `data` the event as JSON, and `id` its `seq`. Streamed text
    (`node.delta`) is not stored and has no `id`: after coming back, the text of an open node comes
    once more from `offset` 0. The stream ends after the terminal event; before it, with
    `server_draining` (come back in a moment), with `too_slow` (the client fell too far behind: go
    on with `after={cursor}`) or with `problem`.
    """
    known = _seq_of(last_event_id) if last_event_id else after  # some proxies send an empty one
    if format == "log":
        return await log_response(state.service, execution_id, known)
    return ExecutionEventStream(state, principal, execution_id, known)


class ExecutionEventStream(Response):
    """The answer: one client that follows an execution, on one of its principal's seats.

    What goes wrong before anything was told is raised, and answered as any other failure.
    """

    media_type = "text/event-stream"

    def __init__(self, state: AppState, principal: str, execution_id: str, after: int) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._state = state
        self._principal = principal
        self._execution_id = execution_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, service = self._state.settings.limits, self._state.service
        bounds = BacklogLimits(limits.watcher_events, limits.watcher_bytes)
        with self._state.connection_limiter.slot(self._principal, limits.socket_connections):
            async with service.subscribe(self._execution_id, self._after, bounds) as following:
                await self._respond(following, scope, receive, send)

    async def _respond(
        self, following: ExecutionSubscription, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if following.is_over:
            await Response(status_code=204)(scope, receive, send)
            return
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._send_events(following, send))
            leaving = tasks.create_task(_wait_for_disconnect(receive))
            await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
            telling.cancel()
            leaving.cancel()

    async def _send_events(self, following: ExecutionSubscription, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while (body := await _next_chunk(following)) is not None:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        except PlanwaveError as error:
            body = _closing_event(error)
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def _next_chunk(following: ExecutionSubscription) -> bytes | None:
    """Give what is to be sent next; None when there is nothing more."""
    try:
        async with asyncio.timeout(PING_INTERVAL_S):
            frame = await following.next()
    except TimeoutError:
        return _PING
    return None if frame is None else frame.render_once(_event_lines)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event_lines(frame: EventBatch) -> bytes:
    return b"".join(
        b"%sevent: %s\ndata: %s\n\n"
        % (b"id: %d\n" % event.seq if event.seq else b"", event.type.encode(), piece)
        for event, piece in zip(frame.events, frame.json_events, strict=True)
    )


def _closing_event(error: PlanwaveError) -> bytes:
    """Give the message that ends a stream early."""
    event, said = b"problem", problem_details(error)
    if isinstance(error, ShuttingDown):
        event = b"server_draining"
    elif isinstance(error, SlowConsumer):
        event, said = b"too_slow", {**said, "cursor": error.cursor}
    return b"event: %s\ndata: %s\n\n" % (event, dumps_trusted(said))


def _seq_of(last_event_id: str) -> int:
    if _SEQ.fullmatch(last_event_id) is None:
        message = "header parameter 'Last-Event-ID': it is the id of no event"
        issue = {"code": "invalid-parameter", "message": message, "pointer": ""}
        raise InvalidRequest(message, [{**issue, "parameter": "Last-Event-ID"}])
    return int(last_event_id)
