"""Routes: cancel, pause and resume executions, and answer their requests for input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from pydantic import Field, GetJsonSchemaHandler, RootModel
from pydantic_core import CoreSchema
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.middleware.audit import set_audit_action
from planwave.api.pagination import (
    Cursor,
    ExecutionId,
    PageSize,
    RequestId,
    decode_answer_cursor,
    decode_request_cursor,
    encode_request_cursor,
    page_size,
)
from planwave.api.preconditions import IfMatch, expected_versions
from planwave.api.problems import GRAPH_POINTER, InvalidRequest, prefix_error_pointers, problems
from planwave.api.responses import json_response, json_response_in_thread
from planwave.api.routes.executions import created_response
from planwave.api.routes.plans import Stream
from planwave.api.schemas.examples import (
    CANCELLED,
    EXECUTION_ID,
    GRAPH,
    HASH,
    PAUSED,
    PENDING_REQUESTS,
    REQUESTS,
    RESUMED,
    TIME,
    success,
)
from planwave.api.schemas.requests import Documented, RequestModel
from planwave.api.streaming.sse import PlanStream
from planwave.shapes.common import GraphDocument
from planwave.shapes.executions import (
    ExecutionCreated,
    OpenRequestsResponse,
    PendingRequestsResponse,
)
from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
from planwave.shapes.plans import ReplanResponse

router = APIRouter(tags=["control"], dependencies=AUTHENTICATED)
_LONGEST_CAUSE = 1_000
_CHANGE: Final[dict[str, Any]] = {
    "change": 1,
    "at": "2026-01-01T00:00:01.000000+00:00",
    "base": HASH,
    "hash": "5c1d8a4d9b0f6f2f9f7f4a1c0d3e6b8a7c2e1f0d9b8a7c6d5e4f3a2b1c0d9e8f",
    "note": "also cover running costs",
    "by": "person",
    "revised_by": {"kind": "operator", "name": "operator"},
    "graph_change": {
        "nodes": [{"id": "costs", "type": "text", "name": "costs", "data": {"text": "Costs"}}],
        "edges": [],
        "dropped_nodes": ["draft"],
        "dropped_edges": ["e3"],
    },
    "dropped": [],
}

_REPLAN: Final[dict[str, Any]] = {
    "execution_id": EXECUTION_ID,
    "request": "also cover running costs",
    "answer": "Adds a step for the costs.",
    "base": HASH,
    "hash": _CHANGE["hash"],
    "title": "A note about water",
    "operations": [{"op": "add_node", "node": _CHANGE["graph_change"]["nodes"][0]}],
    "difference": {"title": None, "nodes": [], "edges": [], "reordered": []},
    "additions": [],
    "diagnostics": [],
    "provider": "openai",
    "model": "gpt-5.1",
    "attempts": [],
    "created_at": TIME,
    "created_by": {"kind": "operator", "name": "operator"},
    "graph": GRAPH,
}
_REPLAN_RESPONSES: Final = {
    **success(ReplanResponse, "With `dry_run`: what a person may take.", _REPLAN),
    **success(
        ReplanAccepted,
        "A model writes it; nothing starts meanwhile.",
        {"execution_id": EXECUTION_ID, "change": 1},
        202,
    ),
}
_REPLAN_RESPONSES[200]["content"]["text/event-stream"] = {
    "schema": {"type": "string"},
    "example": 'event: operation\ndata: {"op":"remove_node","id":"draft"}\n\n'
    'event: proposal\ndata: {"execution_id":"…","answer":"Takes the draft out."}\n\n',
}


class CancelRequest(RequestModel):
    """The node to cancel, and the cause; without a body, the whole execution."""

    cause: str = Field(
        "cancelled by request",
        min_length=1,
        max_length=_LONGEST_CAUSE,
        description="Why; it is kept with the execution.",
        examples=["no longer needed"],
    )
    node: str | None = Field(
        None,
        description="The path of one node: only it is stopped, and nodes that depend on it are blocked.",
    )


class AnswerDecision(RequestModel):
    """An answer to a request that names its `actions`."""

    decision: str = Field(
        description="One of the request's `actions`; of an `approval`, the handle that is followed."
    )
    note: str = Field("", description="Kept with the answer.")
    value: Any = Field(
        None,
        description="What goes on instead of the request's `value`, where that is `editable`; of "
        "`interrupted`, what the node would have given (`give_result`); of `plan-approval`, the "
        "changed graph or `{plan_hash}` of a new revision (`edit`); of `budget`, the new limits (`raise`).",
    )
    form: Any = Field(None, description="What was filled in; it fits the request's `form`.")


class ReviseRequest(RequestModel):
    """The changed graph."""

    graph: Annotated[dict[str, Any], Documented(GraphDocument)] = Field(
        description="A graph, or a plan with it, that the execution runs from now on. Nodes are the same by their ids.",
        examples=[GRAPH],
    )
    note: str = Field(
        "",
        max_length=_LONGEST_CAUSE,
        description="Why; it is kept with the change.",
        examples=["also cover running costs"],
    )


class ReplanRequest(RequestModel):
    """What is to be different."""

    request: str | None = Field(
        None,
        description="What is to be different, in your words; without them, what replaces the steps that failed.",
        examples=["also cover running costs"],
    )
    provider: str | None = Field(None, description="Who writes the change; else the default.")
    model: str | None = Field(None, description="A model of that provider.")
    dry_run: bool = Field(
        False, description="Only propose a change: the execution goes on as it is, or has ended."
    )


class _AnswerSchema:
    """The schema of an answer: a decision, or any JSON that the node accepts."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        decision = handler(AnswerDecision.__pydantic_core_schema__)
        free = {"description": "Any JSON, where the request names no `actions`."}
        return {"anyOf": [decision, free]}


class AnswerRequest(RootModel[Annotated[Any, _AnswerSchema]]):
    """The answer to a request."""

    model_config = {
        "json_schema_extra": {
            "examples": [
                {"decision": "approve"},
                {"decision": "approve", "note": "shorter", "value": "Ice floats."},
            ]
        }
    }


@router.post(
    "/api/executions/{execution_id}/cancel",
    operation_id="cancelExecution",
    summary="Cancel an execution, or one node of it",
    responses={
        **success(ExecutionCreated, "It is cancelled, or its node is.", CANCELLED),
        **problems(404, 409),
    },
)
async def cancel_execution(
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[CancelRequest, json_body(CancelRequest, may_be_empty=True)],
) -> Response:
    """Stop an execution, running or not; it is cancelled, durably, when the response arrives.

    With `node`, only that node is stopped: what depends on it is blocked, everything else goes on.
    """
    await service.executions.cancel(execution_id, body.cause, node=body.node)
    return created_response(service, await service.executions.get(execution_id), 200)


@router.post(
    "/api/executions/{execution_id}/revise",
    operation_id="reviseExecution",
    summary="Change the graph of an execution while it runs or waits",
    responses={
        **success(PlanChangeResponse, "It runs the changed graph.", _CHANGE),
        **problems(404, 409, 412, 422),
    },
)
async def revise_execution(
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[ReviseRequest, json_body(ReviseRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Let an execution go on with a changed graph; the change is durable when the response arrives.

    Steps that have begun stay as they are, with what decided their inputs; all others may be changed, rewired, added and
    dropped, and failed ones dropped. What runs goes on, and nothing that has run is run again. With `If-Match` the graph
    must still have that hash (`plan_hash` of the execution), else the answer is `412`. Where the plan needs an approval, a
    person is asked first: `request_id` says in which request, and the change is made once that is approved.
    """
    with prefix_error_pointers(GRAPH_POINTER):
        change = await service.changes.revise(
            execution_id, body.graph, expected=expected_versions(if_match), note=body.note
        )
    return await json_response_in_thread(change)


@router.post(
    "/api/executions/{execution_id}/replan",
    operation_id="replanExecution",
    summary="Have a model write a change of an execution",
    status_code=202,
    responses={**_REPLAN_RESPONSES, **problems(404, 409, 412, 422, 502)},
)
async def replan_execution(
    request: Request,
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[ReplanRequest, json_body(ReplanRequest)],
    stream: Stream = False,
    if_match: IfMatch = None,
) -> Response:
    """Have a model change the plan of an execution that runs or waits, as you say; nothing of it starts meanwhile.

    What runs goes on. The answer comes once the request is durable, with the number of the change; the events
    `plan.requested`, then `plan.revised` or `plan.refused`, say what comes of it. A change that would reach what the graph
    does not yet, or whose plan needs an approval, is asked about first (a `plan-change` among the requests). The calls of the
    model count as usage of the execution, and its budget bounds them. With `If-Match` the graph must still have that hash.

    With `dry_run` nothing is held, and nothing is changed: the answer is `200` with the changed graph, what it changes, and
    what it would reach that the graph does not yet. `POST /api/executions/{execution_id}/revise` with the graph, and
    `If-Match` with `base`, takes it; of an execution that has ended, `POST /api/executions/{execution_id}/fork` does.

    With `dry_run` and `stream=1` the answer is events: `delta {text, reasoning}`, and each part of the change once it is written,
    `node {id, name, …}`, `edge {source, target, channel}`, `operation {op, …}`, `repair {attempt, diagnostics}` (it is written
    again: discard its earlier parts); the last one is `proposal` with the answer, or `problem`. An error before the first
    event is answered with its own status. A client that disconnects cancels the writing.
    """
    versions = expected_versions(if_match)

    async def propose(on_progress: Callable[[Any], None] | None = None) -> ReplanResponse:
        return await service.changes.propose(
            execution_id,
            body.request,
            expected=versions,
            provider=body.provider,
            model=body.model,
            on_progress=on_progress,
        )

    if not body.dry_run:
        if stream:
            raise _not_streamed()
        chosen = {"provider": body.provider, "model": body.model}
        accepted = await service.changes.replan(
            execution_id, body.request, expected=versions, **chosen
        )
        return json_response(accepted, 202)
    set_audit_action(request, "execution.proposed")
    if stream:
        return PlanStream(propose, lambda: service.is_draining, "proposal")
    return await json_response_in_thread(await propose())


def _not_streamed() -> InvalidRequest:
    message = "only a proposal is streamed here (`dry_run`); read the change that is made from the events of the execution"
    issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": "stream"}
    return InvalidRequest(message, [issue])


@router.post(
    "/api/executions/{execution_id}/pause",
    operation_id="pauseExecution",
    summary="Pause an execution",
    responses={
        **success(ExecutionCreated, "Nothing more of it is started.", PAUSED),
        **problems(404, 409, 422),
    },
)
async def pause_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Have nothing more of it started; nodes at work go on to their end. It stays so over restarts."""
    return created_response(service, await service.executions.pause(execution_id), 200)


@router.post(
    "/api/executions/{execution_id}/resume",
    operation_id="resumeExecution",
    summary="Have a paused execution go on",
    responses={**success(ExecutionCreated, "It goes on.", RESUMED), **problems(404, 409, 422)},
)
async def resume_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Have an execution go on that was paused by request, or set aside after too many recoveries.

    One that waits for an answer goes on by it: `POST …/requests/{request_id}`.
    """
    return created_response(service, await service.executions.resume(execution_id), 200)


@router.get(
    "/api/executions/{execution_id}/requests",
    operation_id="listRequests",
    summary="What an execution waits to be answered",
    responses={
        **success(OpenRequestsResponse, "Its open requests.", REQUESTS),
        **problems(404, 409),
    },
)
async def list_requests(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Return the open requests of an execution, oldest first."""
    requests = await service.executions.requests(execution_id)
    return await json_response_in_thread({"requests": [each.as_json() for each in requests]})


@router.get(
    "/api/requests",
    operation_id="listPendingRequests",
    summary="What executions ask people, or asked them",
    responses={**success(PendingRequestsResponse, "One page.", PENDING_REQUESTS), **problems(422)},
)
async def list_pending_requests(
    service: ServiceDep,
    status: Annotated[
        Literal["open", "answered"], Query(description="Those that wait, or those that are over.")
    ] = "open",
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return the requests of all executions to people.

    Open ones: the soonest deadline first, then the oldest. Answered ones, with their answers: the
    newest answer first; those that a timeout answered are among them.
    """
    size = page_size(limit, service.limits)
    if status == "answered":
        answered = await service.executions.answered_requests.page(
            decode_answer_cursor(cursor), size
        )
        page, total, last = answered.answers, answered.total, answered.last
    else:
        waiting = await service.executions.pending_requests()
        total, after = len(waiting), decode_request_cursor(cursor)
        rest = waiting if after is None else [each for each in waiting if each.order > after]
        page, last = rest[:size], rest[size - 1].order if len(rest) > size else None
    return await json_response_in_thread(
        {
            "requests": [each.as_json() for each in page],
            "total": total,
            "next_cursor": None if last is None else encode_request_cursor(last),
        }
    )


@router.post(
    "/api/executions/{execution_id}/requests/{request_id}",
    operation_id="answerRequest",
    summary="Answer a request",
    responses={
        **success(ExecutionCreated, "The answer is taken.", RESUMED),
        **problems(404, 409, 410),
    },
)
async def answer_request(
    service: ServiceDep,
    execution_id: ExecutionId,
    request_id: RequestId,
    body: Annotated[AnswerRequest, json_body(AnswerRequest)],
) -> Response:
    """Answer a request of a node or of the execution, once; the answer is stored before this responds.

    An edited plan (`decision: edit`) gets a new execution, which asks again: the new execution is the
    response, and this one ends as superseded by it.

    A second answer is refused (`409`, `request-answered`), and so is one that comes after the time
    for it was over or its node or execution was cancelled (`410`, `request-closed`).
    """
    return created_response(
        service, await service.executions.answer(execution_id, request_id, body.root), 200
    )
