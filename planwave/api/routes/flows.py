"""Routes: flows, graphs saved under a name to be run many times."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedIdDep, ServiceDep, TriggersDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    FlowId,
    PageSize,
    SearchFlows,
    decode_cursor,
    page_size,
    paginate,
    validate_id,
)
from planwave.api.preconditions import IfMatch, expected_versions, required_versions
from planwave.api.problems import GRAPH_POINTER, prefix_error_pointers, problems
from planwave.api.responses import json_response
from planwave.api.schemas.edits import FlowEditRequest
from planwave.api.schemas.examples import (
    EDITED_FLOW,
    FLOW,
    FLOW_VERSIONS,
    FLOWS,
    HASH,
    example_response,
)
from planwave.api.schemas.flows import (
    FlowEditResponse,
    FlowResponse,
    FlowsResponse,
    FlowVersionsResponse,
    PublicationRequest,
    PublicationResponse,
)
from planwave.api.schemas.requests import FlowCreateRequest, FlowUpdateRequest
from planwave.api.schemas.trigger_examples import PUBLICATION
from planwave.principals import principal_json
from planwave.service.flows.flow_queries import Flow, Publication
from planwave.storage.records import FlowVersion

router = APIRouter(tags=["flows"], dependencies=AUTHENTICATED)

Version = Annotated[
    str | None,
    Query(
        description="The one of its versions to give; else the present one.",
        pattern="^[0-9a-f]{64}$",
        examples=[HASH],
    ),
]


@router.post(
    "/api/flows",
    operation_id="createFlow",
    summary="Save a flow",
    status_code=201,
    response_model=FlowResponse,
    responses={**example_response("The flow.", FLOW, 201), **problems(404, 409)},
)
async def create_flow(
    service: ServiceDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[FlowCreateRequest, json_body(FlowCreateRequest)],
) -> Response:
    """Save a graph, or that of a stored plan, under a name, to be run many times.

    It is checked first; what could run nowhere is not kept.
    """
    with prefix_error_pointers("" if body.graph is None else GRAPH_POINTER):
        flow = await service.create_flow(
            body.name,
            graph=body.graph,
            plan_id=_plan_id_in(body),
            description=body.description,
            flow_id=preassigned_id,
        )
    return _flow_response(flow, 201)


@router.get(
    "/api/flows",
    operation_id="listFlows",
    summary="List flows",
    response_model=FlowsResponse,
    responses={**example_response("One page.", FLOWS), **problems(422)},
)
async def list_flows(
    service: ServiceDep, q: SearchFlows = None, cursor: Cursor = None, limit: PageSize = None
) -> Response:
    """Return flows, newest first, page by page."""
    size = page_size(limit, service.limits)
    found = await service.flows(text=q, before=decode_cursor(cursor), limit=size + 1)
    page, next_cursor = paginate(found, size)
    flows = [{**asdict(flow), "updated_by": principal_json(flow.updated_by)} for flow in page]
    return json_response({"flows": flows, "next_cursor": next_cursor})


@router.get(
    "/api/flows/{flow_id}",
    operation_id="getFlow",
    summary="Look at a flow",
    response_model=FlowResponse,
    responses={**example_response("The flow.", FLOW), **problems(404, 422)},
)
async def get_flow(service: ServiceDep, flow_id: FlowId, version: Version = None) -> Response:
    """Return a flow in its current version or an earlier one."""
    return _flow_response(await service.flow(flow_id, version))


@router.put(
    "/api/flows/{flow_id}",
    operation_id="updateFlow",
    summary="Change a flow",
    response_model=FlowResponse,
    responses={**example_response("The flow as it is now.", FLOW), **problems(404, 412)},
)
async def update_flow(
    service: ServiceDep,
    flow_id: FlowId,
    body: Annotated[FlowUpdateRequest, json_body(FlowUpdateRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Change the graph, name or description of a flow; omitted fields keep their value.

    A graph it never had before is a new version. All versions are kept.
    """
    with prefix_error_pointers("" if body.graph is None else GRAPH_POINTER):
        flow = await service.update_flow(
            flow_id,
            name=body.name,
            graph=body.graph,
            plan_id=_plan_id_in(body),
            description=body.description,
            expected=expected_versions(if_match),
        )
    return _flow_response(flow)


@router.patch(
    "/api/flows/{flow_id}",
    operation_id="editFlow",
    summary="Change a flow by operations",
    response_model=FlowEditResponse,
    responses={
        **example_response("The flow as it is now.", EDITED_FLOW),
        **problems(404, 412, 428),
    },
)
async def edit_flow(
    service: ServiceDep,
    flow_id: FlowId,
    body: Annotated[FlowEditRequest, json_body(FlowEditRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Apply the operations of plans to the name and the graph of a flow, all or none.

    `If-Match` is required, as for plans. A flow has no drafts: a graph with errors is refused.
    """
    flow, found = await service.edit_flow(
        flow_id, body.to_operations(), expected=required_versions(if_match)
    )
    content = {**flow.as_json(), "diagnostics": [each.as_json() for each in found]}
    return json_response(content, etag=flow.version)


@router.delete(
    "/api/flows/{flow_id}",
    operation_id="deleteFlow",
    summary="Delete a flow",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404, 409),
)
async def delete_flow(service: ServiceDep, flow_id: FlowId) -> Response:
    """Delete a flow with all its versions.

    Its executions stay, with their graphs; one that has not ended forbids it.
    """
    await service.delete_flow(flow_id)
    return Response(status_code=204)


@router.get(
    "/api/flows/{flow_id}/versions",
    operation_id="listFlowVersions",
    summary="List the versions of a flow",
    response_model=FlowVersionsResponse,
    responses={**example_response("One page.", FLOW_VERSIONS), **problems(404, 422)},
)
async def list_flow_versions(
    service: ServiceDep, flow_id: FlowId, cursor: Cursor = None, limit: PageSize = None
) -> Response:
    """Return all versions of the flow, newest first, page by page."""
    size = page_size(limit, service.limits)
    found = await service.flow_versions(flow_id, before=decode_cursor(cursor), limit=size + 1)
    page, next_cursor = paginate(found, size)
    versions = [_version_json(each) for each in page]
    return json_response({"flow_id": flow_id, "versions": versions, "next_cursor": next_cursor})


@router.get(
    "/api/flows/{flow_id}/publication",
    operation_id="getPublication",
    summary="Look at what a flow is published as",
    response_model=PublicationResponse,
    responses={**example_response("What it is published as.", PUBLICATION), **problems(404)},
)
async def get_publication(triggers: TriggersDep, flow_id: FlowId) -> Response:
    """Return whether a flow is a model and a tool, and its webhooks."""
    return json_response(await triggers.publication(flow_id))


@router.put(
    "/api/flows/{flow_id}/publication",
    operation_id="publishFlow",
    summary="Publish a flow",
    response_model=PublicationResponse,
    responses={**example_response("What it is published as now.", PUBLICATION), **problems(404)},
)
async def publish_flow(
    triggers: TriggersDep,
    flow_id: FlowId,
    body: Annotated[PublicationRequest, json_body(PublicationRequest)],
) -> Response:
    """Publish a flow as a model, a tool or a webhook, or unpublish it; omitted fields change nothing.

    Saving a flow publishes nothing. A published flow is called in its newest version.
    """
    chosen: dict[Publication, bool | None] = {"model": body.model, "tool": body.tool}
    changes: dict[Publication, bool] = {
        each: value for each, value in chosen.items() if value is not None
    }
    return json_response(await triggers.publish(flow_id, changes, hook=body.hook))


def _plan_id_in(body: FlowCreateRequest | FlowUpdateRequest) -> str | None:
    return None if body.plan_id is None else validate_id(body.plan_id, "plan")


def _flow_response(flow: Flow, status: int = 200) -> Response:
    location = f"/api/flows/{flow.flow_id}" if status == 201 else None
    return json_response(flow.as_json(), status, location=location, etag=flow.version)


def _version_json(version: FlowVersion) -> dict[str, object]:
    return {
        "version": version.version,
        "revision": version.revision,
        "created_at": version.created_at,
        "created_by": principal_json(version.created_by),
        "node_count": version.node_count,
    }
