"""Routes: a new execution made from another one (retry, fork), and what differs between two."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedExecutionIdDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import ExecutionId
from planwave.api.problems import GRAPH_POINTER, problems
from planwave.api.responses import json_response, json_response_in_thread
from planwave.api.routes.executions import STARTED_RESPONSES, created_response, run_options
from planwave.api.schemas.examples import CREATED, DIFFERENCE, success
from planwave.api.schemas.requests import Documented, RequestModel, RunOptionsModel
from planwave.errors import GraphInvalid, InvalidChanges, InvalidInputs
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.json_values import pointer_of_name
from planwave.service.executions.fork import CHANGES, ForkChanges
from planwave.service.executions.parent_results import preview_json
from planwave.shapes.common import GraphDocument
from planwave.shapes.executions import DifferenceResponse, ExecutionCreated
from planwave.shapes.graphs import ForkPreviewResponse

router = APIRouter(tags=["control"], dependencies=AUTHENTICATED)
_PREVIEW: Final = {"reused": ["facts"], "runs": ["note"], "undecided": []}
_START: Final[Any] = Field(
    True, description="Queue it; else `POST /api/execute/{execution_id}/start` does."
)


class RetryRequest(RequestModel):
    """Without a body, it is started at once."""

    start: bool = _START


class ForkPreviewRequest(RequestModel):
    """Changes to the execution; without a body there are none."""

    graph: Annotated[dict[str, Any], Documented(GraphDocument)] | None = Field(
        None,
        description=(
            "A graph, or a plan with it, to run in place of that of the execution; the other "
            "changes are of it. Nodes are the same by their ids."
        ),
    )
    rerun: list[str] = Field(
        default=[], description="Ids of nodes that run again in any case.", examples=[["note"]]
    )
    changes: dict[str, dict[str, Any]] | None = Field(
        None,
        description=(
            "By node id, `{description?, data?}`: the node's new task, and a merge patch (RFC "
            "7396) for its data; or `{outputs: {handle: value}}`: its outputs, without running it."
        ),
        examples=[{"note": {"data": {"text": "A note: {{ input }}"}}}],
    )
    options: RunOptionsModel | None = Field(
        None, description="How to run, all of it; null: as the execution before it ran."
    )

    def to_changes(self) -> ForkChanges:
        """Return the changes as the service takes them."""
        return {
            "rerun": self.rerun,
            "changes": self.changes,
            "graph": self.graph,
            "options": None if self.options is None else run_options(self.options),
        }


class ForkExecutionRequest(ForkPreviewRequest):
    """Changes to the execution, and whether the new one is started; without a body there are none."""

    start: bool = _START


_NODE_POINTER: Final = re.compile(r"/nodes/\d+(/(?:description|data)(?:/.*)?)")


@router.post(
    "/api/executions/{execution_id}/retry",
    operation_id="retryExecution",
    summary="Run failed nodes again",
    status_code=201,
    responses={
        **success(ExecutionCreated, "It is made.", CREATED, 201),
        **STARTED_RESPONSES,
        **problems(404, 409),
    },
)
async def retry_execution(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    execution_id: ExecutionId,
    body: Annotated[RetryRequest, json_body(RetryRequest, may_be_empty=True)],
) -> Response:
    """Make a new execution that runs what failed, was blocked or was cancelled in this one.

    Results of completed nodes are reused; the new execution's `parent` names this one.
    """
    record = await service.executions.retry(execution_id, start=body.start, new_id=preassigned_id)
    return created_response(service, record, 202 if body.start else 201)


@router.post(
    "/api/executions/{execution_id}/fork",
    operation_id="forkExecution",
    summary="Make a changed execution out of this one",
    status_code=201,
    responses={
        **success(ExecutionCreated, "It is made.", CREATED, 201),
        **STARTED_RESPONSES,
        **problems(404, 409),
    },
)
async def fork_execution(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    execution_id: ExecutionId,
    body: Annotated[ForkExecutionRequest, json_body(ForkExecutionRequest, may_be_empty=True)],
) -> Response:
    """Make a new execution of the same graph with other tasks, data or results for some of its nodes, or of a new graph.

    Every result whose inputs are the same is reused; only the rest runs. This one must
    have ended or be paused; nothing of it changes.
    """
    with _prefix_fork_pointers(body):
        record = await service.executions.fork(
            execution_id, **body.to_changes(), start=body.start, new_id=preassigned_id
        )
    return created_response(service, record, 202 if body.start else 201)


@router.post(
    "/api/executions/{execution_id}/fork/preview",
    operation_id="previewFork",
    summary="What a fork would reuse",
    responses={
        **success(ForkPreviewResponse, "What is reused and what runs.", _PREVIEW),
        **problems(404, 409),
    },
)
async def preview_fork(
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[ForkPreviewRequest, json_body(ForkPreviewRequest, may_be_empty=True)],
) -> Response:
    """Return which results a fork would reuse and which nodes would run; nothing is created, and no node runs.

    The body is that of the fork, and so are the errors. A node after one that runs is `undecided`: it is
    reused if it is given the same as before.
    """
    with _prefix_fork_pointers(body):
        preview = await service.executions.preview_fork(execution_id, **body.to_changes())
    return json_response(preview_json(preview))


@contextmanager
def _prefix_fork_pointers(body: ForkPreviewRequest) -> Generator[None]:
    """Prefix the pointers of diagnostics so that they point into the body."""
    try:
        yield
    except (InvalidChanges, InvalidInputs):  # they point into the body already
        raise
    except GraphInvalid as error:
        findings: tuple[Diagnostic, ...] = error.diagnostics
        error.diagnostics = tuple(
            replace(each, pointer=_fork_pointer(each, body)) for each in findings
        )
        raise


def _fork_pointer(finding: Diagnostic, body: ForkPreviewRequest) -> str:
    in_node = _NODE_POINTER.fullmatch(finding.pointer)
    if in_node is not None and finding.node in (body.changes or {}):
        return f"{CHANGES}{pointer_of_name(finding.node)}{in_node[1]}"
    return finding.pointer if body.graph is None else f"{GRAPH_POINTER}{finding.pointer}"


diff_router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)


@diff_router.get(
    "/api/executions/{execution_id}/diff/{other_id}",
    operation_id="diffExecutions",
    summary="What differs between two executions",
    responses={**success(DifferenceResponse, "What differs.", DIFFERENCE), **problems(404, 409)},
)
async def diff_executions(
    service: ServiceDep, execution_id: ExecutionId, other_id: ExecutionId
) -> Response:
    """Compare two executions, such as one and a fork of it, node by node.

    Status, time, tokens and cost of both; of nodes that are not the same what they gave, and how
    their texts differ.
    """
    return await json_response_in_thread(await service.executions.diff(execution_id, other_id))
