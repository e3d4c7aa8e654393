"""Response models of flows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import (
    GraphDocument,
    PrincipalResponse,
    RequestModel,
    ResponseModel,
)
from planwave.api.schemas.plans import DiagnosticResponse, RevisionSummary


class _FlowFields(ResponseModel):
    plan_id: str
    """The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision."""
    name: str
    """Unique without regard to case."""
    title: str
    description: str
    """Its purpose; its executions have it as their goal."""
    revision: int
    """The revision that is shown: the one that callers start unless another one was asked for."""
    live_revision: int | None
    """The revision that callers start; null while none is approved."""
    draft: RevisionSummary | None
    """The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an
    access token."""
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{plan_id}/publication`."""


class FlowSummary(_FlowFields):
    """A flow as lists show it."""

    updated_by: PrincipalResponse | None
    """Who made the revision; null where it is not known."""
    node_count: int


class FlowsResponse(ResponseModel):
    """One page of flows, newest first."""

    flows: list[FlowSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class FlowResponse(_FlowFields):
    """A flow: a plan that has a name, in the revision that callers start."""

    hash: str
    """Of the graph: the `ETag`, which `If-Match` compares with the newest revision."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    graph: GraphDocument


class FlowEditResponse(FlowResponse):
    """A flow after a change by operations."""

    diagnostics: list[DiagnosticResponse]
    """Warnings about its graph, and about names that the operations could not follow."""


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


class PublishedHook(ResponseModel):
    """A webhook of a flow."""

    trigger_id: str
    path: str
    """Where it receives requests."""
    enabled: bool


class PublicationResponse(ResponseModel):
    """What a flow is published as."""

    plan_id: str
    name: str
    model: bool
    tool: bool
    hooks: list[PublishedHook]
    """The triggers of its `webhook` nodes; those that are not enabled start nothing."""
