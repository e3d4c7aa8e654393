"""Route: what differs between two executions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from planwave.api.answers import ErrorInfo, UsageResponse
from planwave.api.examples import DIFFERENCE, example_response
from planwave.api.models import ResponseModel, ExecutionStatus, NodeStatus
from planwave.api.parameters import ExecutionId
from planwave.api.problems import problems
from planwave.api.rendering import json_response_in_thread
from planwave.api.state import AUTHENTICATED, ServiceDep
from planwave.service.diff import Change

diff_router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)


class NodeDifference(ResponseModel):
    """A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there."""

    path: str
    change: Change
    """What it is and gives, or what the graph says of it, is another; or only one has it."""
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: list[ErrorInfo | None] | None = None
    written: list[str] | None = None
    """Fields of it in the graph that differ."""
    outputs: dict[str, list[dict[str, Any] | None]] | None = None
    """By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`."""
    result: str | None = None
    """The unified diff of its main text."""


class DifferenceCounts(ResponseModel):
    """How many nodes are what."""

    same: int
    changed: int
    only_a: int
    only_b: int


class DifferenceResponse(ResponseModel):
    """What differs between two executions; pairs are of `a` and of `b`."""

    a: str
    b: str
    status: list[ExecutionStatus]
    duration_s: list[float | None]
    """Seconds from start to end; null before the end."""
    usage: list[UsageResponse]
    counts: DifferenceCounts
    nodes: list[NodeDifference]
    """Those that are not the same, the first 200."""
    left_off: int
    """How many more there are."""


@diff_router.get(
    "/api/executions/{execution_id}/diff/{other_id}",
    operation_id="diffExecutions",
    summary="What differs between two executions",
    response_model=DifferenceResponse,
    responses={**example_response("What differs.", DIFFERENCE), **problems(404, 409)},
)
async def diff_executions(
    service: ServiceDep, execution_id: ExecutionId, other_id: ExecutionId
) -> Response:
    """Compare two executions, such as one and a fork of it, node by node.

    Status, time, tokens and cost of both; of nodes that are not the same what they gave, and how
    their texts differ.
    """
    return await json_response_in_thread(await service.diff(execution_id, other_id))
