"""Route: the events of an execution as server-sent events, or its typed log as JSON."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response

from planwave.api.auth import require_principal
from planwave.api.dependencies import AUTHENTICATED, ExecutionsDep, StateDep
from planwave.api.pagination import ExecutionId
from planwave.api.problems import InvalidRequest, problems
from planwave.api.responses import json_response_in_thread
from planwave.api.routes.executions import log_response
from planwave.api.schemas.examples import schema_of
from planwave.api.streaming.sse import ExecutionEventStream
from planwave.principals import Principal
from planwave.service.queries.history import ExecutionQueries
from planwave.shapes.executions import LogEntriesResponse, StoredEventsResponse

router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)
_SEQ: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_LARGEST_SEQ: Final = 10**15 - 1
_PAGE: Final = 1_000
"""Events in one JSON document."""

_EXAMPLE: Final = (
    'id: 2\nevent: execution.started\ndata: {"seq":2,"type":"execution.started","data":{"waves":1}}'
    '\n\nevent: node.delta\ndata: {"seq":0,"type":"node.delta","path":"poem","attempt":1,'
    '"data":{"kind":"text","text":"Water","offset":0}}\n\n'
)
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events as they happen; with `format`, the stored ones or the typed log so far.",
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [schema_of(LogEntriesResponse), schema_of(StoredEventsResponse)]
                }
            },
            "text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE},
        },
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
    principal: Annotated[Principal, Depends(require_principal)],
    executions: ExecutionsDep,
    execution_id: ExecutionId,
    after: Annotated[
        int, Query(ge=0, le=_LARGEST_SEQ, description="The last `seq` already known.")
    ] = 0,
    format: Annotated[
        Literal["events", "log", "json"],
        Query(
            description="Without waiting, as one JSON document: `log`, entries for people; `json`, the "
            "next thousand stored events."
        ),
    ] = "events",
    last_event_id: Annotated[
        str | None, Header(description="What `EventSource` sends when it comes back; over `after`.")
    ] = None,
) -> Response:
    """Stream every event after the last one known, then each as it happens, up to the terminal one.

    `event` is the event's type, `data` the event as JSON, and `id` its `seq`. Streamed text
    (`node.delta`) is not stored and has no `id`: after coming back, the text of an open node comes
    once more from `offset` 0. It begins there too after a new attempt, and after a `node.event` of the
    type `text_discarded`. The stream ends after the terminal event; before it, with
    `server_draining` (come back in a moment), with `too_slow` (the client fell too far behind: go
    on with `after={cursor}`) or with `problem`.
    """
    seq = known_seq(last_event_id) if last_event_id else after  # some proxies send an empty one
    if format == "log":
        return await log_response(executions, execution_id, seq)
    if format == "json":
        return await _stored_events(executions, execution_id, seq)
    return ExecutionEventStream(state, principal.account, execution_id, seq, executions=executions)


async def _stored_events(executions: ExecutionQueries, execution_id: str, after: int) -> Response:
    events = await executions.events(execution_id, after=after, limit=_PAGE)
    return await json_response_in_thread(
        {
            "execution_id": execution_id,
            "events": [event.as_json() for event in events],
            "last_seq": events[-1].seq if events else after,
        }
    )


def known_seq(last_event_id: str) -> int:
    """Return the cursor that a client sends when it comes back.

    Raises:
        InvalidRequest: It is none.
    """
    if _SEQ.fullmatch(last_event_id) is None:
        message = "header parameter 'Last-Event-ID': it is the id of no event"
        issue = {"code": "invalid-parameter", "message": message, "pointer": ""}
        raise InvalidRequest(message, [{**issue, "parameter": "Last-Event-ID"}])
    return int(last_event_id)
