"""Routes: graphs as text of other formats."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from planwave.api.auth import access_token
from planwave.api.dependencies import AUTHENTICATED, ExecutionsDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import ExecutionId, FlowId, PlanId, RevisionChoice
from planwave.api.problems import problems
from planwave.api.schemas.examples import GRAPH
from planwave.api.schemas.requests import RequestModel
from planwave.errors import Forbidden, GraphInvalid
from planwave.events import fold
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.drawing import statuses_by_path
from planwave.interop.exporting.exporter import Export, export, media_type_of
from planwave.service.service import Service
from planwave.shapes.common import ExportFormat

router = APIRouter(tags=["plans"], dependencies=AUTHENTICATED)

_NO_GRAPH: Final[dict[str, Any]] = {"nodes": [], "edges": []}
_MERMAID: Final = 'flowchart TD\n  facts["Find facts"]\n  note["Write a note"]\n  facts --> note\n'
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The text.",
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": _MERMAID},
            "application/yaml": {"schema": {"type": "object"}, "example": GRAPH},
            "application/schema+json": {
                "schema": {"type": "object"},
                "example": {"title": "Graph of planwave"},
            },
        },
    }
}
Format = Annotated[
    ExportFormat,
    Query(
        description="`mermaid`, `dot` and `python` are `text/plain`, `yaml` is `application/yaml`, "
        "`json-schema` is `application/schema+json`."
    ),
]


class ExportRequest(RequestModel):
    """A graph that is not stored, and the format of the text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "mermaid", "graph": GRAPH}]})

    to: ExportFormat = Field(description="The format of the text.")
    graph: dict[str, Any] = Field(
        default=_NO_GRAPH,
        description="`{nodes, edges}`; of no use to `json-schema`.",
        examples=[GRAPH],
    )
    title: str = Field("", description="What the picture or the document is called.")


@router.post(
    "/api/export",
    operation_id="exportGraph",
    summary="Write a graph in another format",
    responses=_TEXT,
    response_class=Response,
)
async def export_graph(
    service: ServiceDep, body: Annotated[ExportRequest, json_body(ExportRequest)]
) -> Response:
    """Return a graph as text: a picture, YAML, a program in Python, or the JSON Schema of all graphs.

    Nothing is stored, and nothing is drawn anywhere else. A graph with errors is written, too, as long as
    all of it can be read.
    """
    report = await asyncio.to_thread(service.plans.check, body.graph)
    if report.graph is None:
        raise GraphInvalid(report.diagnostics)
    return await _text_response(service, body.to, report.graph, body.title)


@router.get(
    "/api/plans/{plan_id}/export",
    operation_id="exportPlan",
    summary="Write a plan in another format",
    responses={**_TEXT, **problems(404, 422)},
    response_class=Response,
)
async def export_plan(service: ServiceDep, plan_id: PlanId, to: Format) -> Response:
    """Return the newest revision of a plan as text; see `POST /api/export`."""
    record = await service.plans.get(plan_id)
    plan = await asyncio.to_thread(service.plans.readable_plan, record)
    return await _text_response(service, to, plan.graph, plan.title)


@router.get(
    "/api/flows/{plan_id}/export",
    operation_id="exportFlow",
    summary="Write a flow in another format",
    responses={**_TEXT, **problems(404, 422)},
    response_class=Response,
)
async def export_flow(
    request: Request,
    service: ServiceDep,
    plan_id: FlowId,
    to: Format,
    revision: RevisionChoice = None,
) -> Response:
    """Return a flow as text, in the revision that callers start or in another one; see `POST /api/export`."""
    _require_operator(request, to)
    if access_token(request) is not None:
        flow = await service.flows.to_start(plan_id)
    else:
        flow = await service.flows.get(plan_id, revision)
    graph, _ = await asyncio.to_thread(read_graph, flow.graph)
    return await _text_response(service, to, graph, flow.name)


@router.get(
    "/api/executions/{execution_id}/export",
    operation_id="exportExecution",
    summary="Write the graph of an execution in another format",
    responses={**_TEXT, **problems(404, 409, 422)},
    response_class=Response,
)
async def export_execution(
    request: Request,
    service: ServiceDep,
    executions: ExecutionsDep,
    execution_id: ExecutionId,
    to: Format,
) -> Response:
    """Return the graph of an execution as text; in pictures the status of each node is its colour."""
    _require_operator(request, to)
    events = await executions.events(execution_id)
    state = await asyncio.to_thread(fold, events)
    graph, _ = await asyncio.to_thread(read_graph, {**(state.graph or _NO_GRAPH)})
    nodes = [{"path": path, "status": node.status} for path, node in state.nodes.items()]
    return await _text_response(service, to, graph, state.title, statuses_by_path(nodes))


def _require_operator(request: Request, to: ExportFormat) -> None:
    """Check that a token does not ask for the node types of the service, which no route shows it.

    Raises:
        Forbidden: It does.
    """
    if to == "json-schema" and access_token(request) is not None:
        raise Forbidden(
            "an access token is not enough for the schema of all graphs",
            hint="use the token of the service",
        )


async def _text_response(
    service: Service,
    to: ExportFormat,
    graph: Graph,
    title: str,
    statuses: dict[str, str] | None = None,
) -> Response:
    what = Export(
        graph, service.catalogue, service.node_types, service.node_ports, title, statuses or {}
    )
    text = await asyncio.to_thread(export, to, what)
    return Response(text, media_type=media_type_of(to))
