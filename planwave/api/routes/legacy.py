"""Routes: status, result and document of an execution under short paths and in compact shapes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.dependencies import (
    AUTHENTICATED,
    ExecutionsDep,
    ServiceDep,
    StateDep,
    document_response,
)
from planwave.api.pagination import ExecutionId
from planwave.api.problems import problems
from planwave.api.responses import json_response, json_response_in_thread
from planwave.api.routes.executions import execution_state_json
from planwave.api.schemas.examples import DOCUMENT, LEGACY_RESULT, LEGACY_STATUS, success
from planwave.shapes.executions import (
    DocumentNode,
    DocumentResponse,
    LegacyNodeResult,
    LegacyResult,
    LegacyStatus,
)

router = APIRouter(tags=["status (short paths)"], dependencies=AUTHENTICATED)


@router.get(
    "/api/execution/{execution_id}/status",
    operation_id="getFirstStatus",
    summary="The state of an execution, in a compact shape",
    responses={**success(LegacyStatus, "Its state.", LEGACY_STATUS), **problems(404, 409)},
)
async def get_status(
    state: StateDep, executions: ExecutionsDep, execution_id: ExecutionId
) -> Response:
    """Return the status of the execution and of each node, and the log so far."""
    document = await execution_state_json(state, executions, execution_id)
    return json_response({name: document[name] for name in LegacyStatus.__annotations__})


@router.get(
    "/api/execution/{execution_id}/result",
    operation_id="getFirstResult",
    summary="The results of an execution, in a compact shape",
    responses={**success(LegacyResult, "Its results.", LEGACY_RESULT), **problems(404, 409)},
)
async def get_result(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Return the result of each node as a list, and the log."""
    document = await service.executions.document(execution_id)
    fields: LegacyResult = {
        "execution_id": document["execution_id"],
        "plan_id": document["plan_id"],
        "status": document["status"],
        "node_results": [_node_result(node) for node in document["nodes"]],
        "execution_logs": document["execution_logs"],
        "started_at": document["started_at"],
        "completed_at": document["completed_at"],
    }
    return await json_response_in_thread(fields)


@router.get(
    "/api/execution/{execution_id}/load",
    operation_id="loadExecution",
    summary="The whole execution as one document",
    responses={**success(DocumentResponse, "The document.", DOCUMENT), **problems(404, 409)},
)
async def load(request: Request, execution_id: ExecutionId) -> Response:
    """Return the same as `GET /api/executions/{execution_id}/document`."""
    return await document_response(request, execution_id)


def _node_result(node: DocumentNode) -> LegacyNodeResult:
    return {
        "node_id": node["path"],
        "name": node["name"],
        "status": node["status"],
        "result": node["result"],
        "error": node["error"],
        "execution_time": node["execution_time"],
    }
