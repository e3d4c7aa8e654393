"""Routes: a new execution out of one that has ended or is paused, with every result that holds."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.answers import ExecutionCreated
from planwave.api.bodies import json_body
from planwave.api.examples import CREATED, example_response
from planwave.api.executions import STARTED_RESPONSES, created_response, run_options
from planwave.api.idempotency import PreassignedExecutionIdDep
from planwave.api.models import RequestModel, RunOptionsModel
from planwave.api.parameters import ExecutionId
from planwave.api.problems import problems
from planwave.api.state import AUTHENTICATED, ServiceDep
from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.json_values import pointer_of_name
from planwave.service.forking import CHANGES

router = APIRouter(tags=["control"], dependencies=AUTHENTICATED)

_NODE_DATA_POINTER: Final = re.compile(r"/nodes/\d+(/data(?:/.*)?)")
_START: Final[Any] = Field(
    True, description="Queue it; else `POST /api/execute/{execution_id}/start` does."
)


class RetryRequest(RequestModel):
    """Without a body, it is started at once."""

    start: bool = _START


class ForkExecutionRequest(RequestModel):
    """What is to be otherwise; without a body, nothing is."""

    rerun: list[str] = Field(
        default=[], description="Ids of nodes that run again in any case.", examples=[["note"]]
    )
    changes: dict[str, dict[str, Any]] | None = Field(
        None,
        description=(
            "By node id, `{data: {…}}`: a merge patch (RFC 7396) for the node's data, or "
            "`{outputs: {handle: value}}`: what it gives, without being run."
        ),
        examples=[{"note": {"data": {"text": "A note: {{ input }}"}}}],
    )
    options: RunOptionsModel | None = Field(
        None, description="How to run, all of it; null: as the execution before it ran."
    )
    start: bool = _START


@router.post(
    "/api/executions/{execution_id}/retry",
    operation_id="retryExecution",
    summary="Run what failed once more",
    status_code=201,
    response_model=ExecutionCreated,
    responses={**example_response("It is made.", CREATED, 201), **STARTED_RESPONSES, **problems(404, 409)},
)
async def retry_execution(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    execution_id: ExecutionId,
    body: Annotated[RetryRequest, json_body(RetryRequest, may_be_empty=True)],
) -> Response:
    """Make a new execution that runs what failed, was blocked or was cancelled in this one.

    Results of nodes that completed are taken over; the new execution's `parent` names this one.
    """
    record = await service.retry(execution_id, start=body.start, new_id=preassigned_id)
    return created_response(service, record, 202 if body.start else 201)


@router.post(
    "/api/executions/{execution_id}/fork",
    operation_id="forkExecution",
    summary="Make a changed execution out of this one",
    status_code=201,
    response_model=ExecutionCreated,
    responses={**example_response("It is made.", CREATED, 201), **STARTED_RESPONSES, **problems(404, 409)},
)
async def fork_execution(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    execution_id: ExecutionId,
    body: Annotated[ForkExecutionRequest, json_body(ForkExecutionRequest, may_be_empty=True)],
) -> Response:
    """Make a new execution of the same graph, with other data or results for some of its nodes.

    Every result that still follows from the same is taken over; only the rest runs. This one must
    have ended or be paused; nothing of it changes.
    """
    with _prefix_fork_pointers(body.changes or {}):
        record = await service.fork(
            execution_id,
            rerun=body.rerun,
            changes=body.changes,
            options=None if body.options is None else run_options(body.options),
            start=body.start,
            new_id=preassigned_id,
        )
    return created_response(service, record, 202 if body.start else 201)


@contextmanager
def _prefix_fork_pointers(changes: Mapping[str, Any]) -> Generator[None]:
    """Have pointers of what is wrong point into the body."""
    try:
        yield
    except GraphInvalid as error:
        found: tuple[Diagnostic, ...] = error.diagnostics
        error.diagnostics = tuple(replace(each, pointer=_fork_pointer(each, changes)) for each in found)
        raise


def _fork_pointer(found: Diagnostic, changes: Mapping[str, Any]) -> str:
    in_data = _NODE_DATA_POINTER.fullmatch(found.pointer)
    if in_data is not None and found.node in changes:
        return f"{CHANGES}{pointer_of_name(found.node)}{in_data[1]}"
    return found.pointer
