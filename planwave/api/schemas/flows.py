"""Response models of flows."""

from __future__ import annotations

from planwave.api.schemas.common import GraphDocument, ResponseModel


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
    node_count: int


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


class FlowVersionResponse(ResponseModel):
    """One content of a flow."""

    version: str
    revision: int
    """The first one that had it."""
    created_at: str
    node_count: int


class FlowVersionsResponse(ResponseModel):
    """One page of versions, newest first."""

    flow_id: str
    versions: list[FlowVersionResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""
