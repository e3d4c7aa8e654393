"""Routes: flows, graphs saved under a name to be run many times."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.access_rules import access_token
from planwave.api.dependencies import AUTHENTICATED, PreassignedIdDep, ServiceDep, TriggersDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    FlowId,
    FlowName,
    Force,
    PageSize,
    RevisionChoice,
    SearchPlans,
    decode_cursor,
    page_size,
    paginate,
    validate_id,
)
from planwave.api.preconditions import IfMatch, expected_versions, required_versions
from planwave.api.problems import GRAPH_POINTER, prefix_error_pointers, problems
from planwave.api.responses import json_response
from planwave.api.routes.revisions import PlanEditRequest
from planwave.api.schemas.examples import (
    FLOW,
    FLOW_ID,
    FLOWS,
    GRAPH,
    PLAN_ID,
    TRIGGER_ID,
    success,
)
from planwave.api.schemas.requests import AuthoredRequest, Documented, RequestModel
from planwave.service.flows.flow_queries import Flow
from planwave.service.flows.flow_service import NAME_CHARS
from planwave.shapes.common import GraphDocument, Publication
from planwave.shapes.plans import FlowEditResponse, FlowResponse, FlowsResponse, PublicationResponse

router = APIRouter(tags=["flows"], dependencies=AUTHENTICATED)
PUBLICATION: Final[dict[str, Any]] = {
    "plan_id": FLOW_ID,
    "name": "Note",
    "model": True,
    "tool": False,
    "hooks": [{"trigger_id": TRIGGER_ID, "path": f"/hooks/{TRIGGER_ID}", "enabled": True}],
}
_DRAFT: Final = "Whether a graph with errors is saved, too: as a draft that cannot be executed."
_GRAPH_OR_PLAN: Final[dict[str, Any]] = {
    "oneOf": [{"required": ["graph"]}, {"required": ["plan_id"]}]
}


class FlowCreateRequest(RequestModel):
    """A graph, or a stored plan, to be saved under a name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Note", "graph": GRAPH}, {"name": "Note", "plan_id": PLAN_ID}],
            **_GRAPH_OR_PLAN,
        }
    )

    name: str = Field(
        description="What it is called; one line.", min_length=1, max_length=NAME_CHARS
    )
    description: str | None = Field(
        None,
        description="What it is for, which callers read; by default the title of a plan made for a goal.",
    )
    graph: Annotated[dict[str, Any], Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    plan_id: str | None = Field(
        None, description="A stored plan, which gets the name; one that has a name is copied."
    )
    draft: bool = Field(False, description=_DRAFT)

    @model_validator(mode="after")
    def _require_one_source(self) -> FlowCreateRequest:
        if (self.plan_id is None) == (self.graph is None):
            raise PydanticCustomError("either", "give either graph or plan_id")
        return self


class FlowUpdateRequest(AuthoredRequest):
    """Changes to a flow."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"graph": GRAPH}, {"name": "Notes"}],
            "minProperties": 1,
            "not": {"required": ["graph", "from_plan_id"]},
        }
    )

    name: str | None = Field(
        None, description="What it is called; one line.", min_length=1, max_length=NAME_CHARS
    )
    description: str | None = Field(None, description="What it is for; see `goal_chars`.")
    graph: Annotated[dict[str, Any], Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    from_plan_id: str | None = Field(None, description="A stored plan whose graph it gets.")
    draft: bool = Field(False, description=_DRAFT)

    @model_validator(mode="after")
    def _require_change(self) -> FlowUpdateRequest:
        if self.from_plan_id is not None and self.graph is not None:
            raise PydanticCustomError("either", "give either graph or from_plan_id")
        if [self.name, self.description, self.graph, self.from_plan_id].count(None) == 4:
            raise PydanticCustomError("nothing", "give name, description, graph or from_plan_id")
        return self


class PublicationRequest(RequestModel):
    """What a flow is to be published as; what is omitted stays as it is."""

    model: bool | None = Field(
        default=None, description="As a model of `/v1/models`.", examples=[True]
    )
    tool: bool | None = Field(
        default=None, description="As a tool of the MCP server.", examples=[False]
    )
    hook: bool | None = Field(
        default=None,
        description="At the address of its `webhook` node: true creates or enables its trigger, "
        "false disables it.",
        examples=[True],
    )


@router.post(
    "/api/flows",
    operation_id="createFlow",
    summary="Save a flow",
    status_code=201,
    responses={**success(FlowResponse, "The flow.", FLOW, 201), **problems(404, 409)},
)
async def create_flow(
    service: ServiceDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[FlowCreateRequest, json_body(FlowCreateRequest)],
) -> Response:
    """Make a flow of a graph, or give a stored plan a name, so that others can run it many times.

    It is checked first; what could run nowhere gets no name, unless `draft` is set. A plan that has a name is
    copied.
    """
    with prefix_error_pointers("" if body.graph is None else GRAPH_POINTER):
        flow = await service.flows.create(
            body.name,
            graph=body.graph,
            plan_id=None if body.plan_id is None else validate_id(body.plan_id, "plan"),
            description=body.description,
            draft=body.draft,
            preassigned_id=preassigned_id,
        )
    return _flow_response(flow, 201)


@router.get(
    "/api/flows",
    operation_id="listFlows",
    summary="List flows",
    responses={**success(FlowsResponse, "One page.", FLOWS), **problems(422)},
)
async def list_flows(
    service: ServiceDep,
    q: SearchPlans = None,
    name: FlowName = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return flows, newest first, page by page, each in the revision that callers start."""
    size, before = page_size(limit, service.limits), decode_cursor(cursor)
    records = await service.flows.list(text=q, name=name, before=before, limit=size + 1)
    page, next_cursor = paginate(records, size)
    flows = await service.flows.summaries(page)
    return json_response({"flows": flows, "next_cursor": next_cursor})


@router.get(
    "/api/flows/{plan_id}",
    operation_id="getFlow",
    summary="Look at a flow",
    responses={**success(FlowResponse, "The flow.", FLOW), **problems(404, 422)},
)
async def get_flow(
    request: Request, service: ServiceDep, plan_id: FlowId, revision: RevisionChoice = None
) -> Response:
    """Return a flow in the revision that callers start, or in another one.

    Its `ETag` is the hash of this revision. Changes are made from the newest one, which
    `GET /api/plans/{plan_id}` shows: while `draft` is not null, they answer `412` to another `ETag`.
    """
    if access_token(request) is not None:
        flow = replace(await service.flows.to_start(plan_id), draft=None)
    else:
        flow = await service.flows.get(plan_id, revision)
    return _flow_response(await service.flows.with_inputs(flow))


@router.put(
    "/api/flows/{plan_id}",
    operation_id="updateFlow",
    summary="Change a flow",
    responses={**success(FlowResponse, "The flow as it is now.", FLOW), **problems(404, 409, 412)},
)
async def update_flow(
    service: ServiceDep,
    plan_id: FlowId,
    body: Annotated[FlowUpdateRequest, json_body(FlowUpdateRequest)],
    if_match: IfMatch = None,
    force: Force = False,
) -> Response:
    """Change the graph, name or description of a flow; return it in its newest revision.

    Omitted fields keep their value. Another graph is a new revision. What leads to the name of the flow forbids another name, as it
    forbids to delete the flow.
    """
    with prefix_error_pointers("" if body.graph is None else GRAPH_POINTER):
        flow = await service.flows.update(
            plan_id,
            name=body.name,
            graph=body.graph,
            graph_of=None if body.from_plan_id is None else validate_id(body.from_plan_id, "plan"),
            description=body.description,
            draft=body.draft,
            expected=expected_versions(if_match),
            author=body.author,
            note=body.note,
            force=force,
        )
    return _flow_response(flow)


@router.patch(
    "/api/flows/{plan_id}",
    operation_id="editFlow",
    summary="Change a flow by operations",
    responses={
        **success(FlowEditResponse, "The flow as it is now.", {**FLOW, "diagnostics": []}),
        **problems(404, 412, 428),
    },
)
async def edit_flow(
    service: ServiceDep,
    plan_id: FlowId,
    body: Annotated[PlanEditRequest, json_body(PlanEditRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Apply operations to a flow as to a plan, but refuse a graph with errors.

    `If-Match` is required, as for `PATCH /api/plans/{plan_id}`, which stores such a graph as a draft.
    """
    flow, findings = await service.flows.edit(
        plan_id,
        body.to_operations(),
        expected=required_versions(if_match),
        author=body.author,
        note=body.note,
    )
    content = {**flow.as_json(), "diagnostics": [each.as_json() for each in findings]}
    return json_response(content, etag=flow.hash)


@router.delete(
    "/api/flows/{plan_id}",
    operation_id="deleteFlow",
    summary="Delete a flow",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404, 409),
)
async def delete_flow(service: ServiceDep, plan_id: FlowId, force: Force = False) -> Response:
    """Delete a flow: the same as `DELETE /api/plans/{plan_id}`."""
    await service.flows.delete(plan_id, force=force)
    return Response(status_code=204)


@router.delete(
    "/api/flows/{plan_id}/name",
    operation_id="removeName",
    summary="Take the name of a flow away",
    status_code=204,
    response_description="It is a plan without a name.",
    responses=problems(404, 409),
)
async def remove_name(service: ServiceDep, plan_id: FlowId, force: Force = False) -> Response:
    """Take the name away; the plan stays, with its revisions and executions.

    What leads to the name forbids it, as it forbids to delete the flow.
    """
    await service.flows.remove_name(plan_id, force=force)
    return Response(status_code=204)


@router.get(
    "/api/flows/{plan_id}/publication",
    operation_id="getPublication",
    summary="Look at what a flow is published as",
    responses={
        **success(PublicationResponse, "What it is published as.", PUBLICATION),
        **problems(404),
    },
)
async def get_publication(triggers: TriggersDep, plan_id: FlowId) -> Response:
    """Return whether a flow is a model and a tool, and its webhooks."""
    return json_response(await triggers.publication(plan_id))


@router.put(
    "/api/flows/{plan_id}/publication",
    operation_id="publishFlow",
    summary="Publish a flow",
    responses={
        **success(PublicationResponse, "What it is published as now.", PUBLICATION),
        **problems(404),
    },
)
async def publish_flow(
    triggers: TriggersDep,
    plan_id: FlowId,
    body: Annotated[PublicationRequest, json_body(PublicationRequest)],
) -> Response:
    """Publish a flow as a model, a tool or a webhook, or unpublish it; omitted fields change nothing.

    Saving a flow publishes nothing. A published flow is called in its live revision.
    """
    chosen: dict[Publication, bool | None] = {"model": body.model, "tool": body.tool}
    changes: dict[Publication, bool] = {
        each: value for each, value in chosen.items() if value is not None
    }
    return json_response(await triggers.publish(plan_id, changes, hook=body.hook))


def _flow_response(flow: Flow, status: int = 200) -> Response:
    location = f"/api/flows/{flow.plan_id}" if status == 201 else None
    return json_response(flow.as_json(), status, location=location, etag=flow.hash)
