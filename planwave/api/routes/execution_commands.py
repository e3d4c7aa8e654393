"""Routes: cancel, pause and resume executions, and answer their requests for input."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import ExecutionId, RequestId
from planwave.api.problems import problems
from planwave.api.responses import json_response_in_thread
from planwave.api.routes.executions import created_response
from planwave.api.schemas.examples import CANCELLED, PAUSED, REQUESTS, RESUMED, example_response
from planwave.api.schemas.executions import ExecutionCreated, OpenRequestsResponse
from planwave.api.schemas.requests import AnswerRequest, CancelRequest

router = APIRouter(tags=["control"], dependencies=AUTHENTICATED)


@router.post(
    "/api/executions/{execution_id}/cancel",
    operation_id="cancelExecution",
    summary="Cancel an execution, or one node of it",
    response_model=ExecutionCreated,
    responses={
        **example_response("It is cancelled, or its node is.", CANCELLED),
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
    await service.cancel(execution_id, body.cause, node=body.node)
    return created_response(service, await service.execution(execution_id), 200)


@router.post(
    "/api/executions/{execution_id}/pause",
    operation_id="pauseExecution",
    summary="Pause an execution",
    response_model=ExecutionCreated,
    responses={
        **example_response("Nothing more of it is started.", PAUSED),
        **problems(404, 409, 422),
    },
)
async def pause_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Have nothing more of it started; nodes at work go on to their end. It stays so over restarts."""
    return created_response(service, await service.pause(execution_id), 200)


@router.post(
    "/api/executions/{execution_id}/resume",
    operation_id="resumeExecution",
    summary="Have a paused execution go on",
    response_model=ExecutionCreated,
    responses={**example_response("It goes on.", RESUMED), **problems(404, 409, 422)},
)
async def resume_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Have an execution go on that was paused by request, or set aside after too many recoveries.

    One that waits for an answer goes on by it: `POST …/requests/{request_id}`.
    """
    return created_response(service, await service.resume(execution_id), 200)


@router.get(
    "/api/executions/{execution_id}/requests",
    operation_id="listRequests",
    summary="What an execution waits to be answered",
    response_model=OpenRequestsResponse,
    responses={**example_response("Its open requests.", REQUESTS), **problems(404, 409)},
)
async def list_requests(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Return the open requests of an execution, oldest first."""
    found = await service.requests(execution_id)
    return await json_response_in_thread({"requests": [each.as_json() for each in found]})


@router.post(
    "/api/executions/{execution_id}/requests/{request_id}",
    operation_id="answerRequest",
    summary="Answer a request",
    response_model=ExecutionCreated,
    responses={**example_response("The answer is taken.", RESUMED), **problems(404, 409, 410)},
)
async def answer_request(
    service: ServiceDep,
    execution_id: ExecutionId,
    request_id: RequestId,
    body: Annotated[AnswerRequest, json_body(AnswerRequest)],
) -> Response:
    """Answer what a node asks, once; the answer is stored when this is answered.

    A second answer is refused (`409`, `request-answered`), and so is one that comes after the time
    for it was over or the node was cancelled (`410`, `request-closed`).
    """
    return created_response(service, await service.answer(execution_id, request_id, body.root), 200)
