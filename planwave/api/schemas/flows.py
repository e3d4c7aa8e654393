"""Response models of flows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planwave.api.schemas.common import (
    GraphDocument,
    PrincipalResponse,
    RequestModel,
    ResponseModel,
)
from planwave.api.schemas.plans import DiagnosticResponse


class FlowSummary(ResponseModel):
    """A flow as lists show it."""

    flow_id: str
    name: str
    description: str
    """Its purpose; its executions have it as their goal."""
    version: str
    """The hash of its graph; equal graphs are the same version."""
    revision: int
    """Counts its changes; 1 for a new one."""
    created_at: str
    updated_at: str
    updated_by: PrincipalResponse | None
    """Who saved the revision; null where it is not known."""
    node_count: int
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{flow_id}/publication`."""


class FlowsResponse(ResponseModel):
    """One page of flows, newest first."""

    flows: list[FlowSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class FlowResponse(ResponseModel):
    """A flow: a graph saved under a name."""

    flow_id: str
    name: str
    description: str
    """Its purpose; its executions have it as their goal."""
    version: str
    """The hash of the graph: the `ETag`, which `If-Match` compares."""
    revision: int
    """Counts its changes; of an older version, that which brought it."""
    created_at: str
    updated_at: str
    """When the revision was saved, UTC."""
    graph: GraphDocument
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{flow_id}/publication`."""


class FlowEditResponse(FlowResponse):
    """A flow after a change by operations."""

    diagnostics: list[DiagnosticResponse]
    """Warnings about its graph, and about names that the operations could not follow."""


class FlowVersionResponse(ResponseModel):
    """One content of a flow."""

    version: str
    revision: int
    """The first one that had it."""
    created_at: str
    created_by: PrincipalResponse | None
    """Who saved this graph first; null where it is not known."""
    node_count: int


class FlowVersionsResponse(ResponseModel):
    """One page of versions, newest first."""

    flow_id: str
    versions: list[FlowVersionResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


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

    flow_id: str
    name: str
    model: bool
    tool: bool
    hooks: list[PublishedHook]
    """The triggers of its `webhook` nodes; those that are not enabled start nothing."""
