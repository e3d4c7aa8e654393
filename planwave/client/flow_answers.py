"""What a service answers about flows, as types; see ``answers.py``."""

from __future__ import annotations

from typing import TypedDict

from planwave.client.answers import EdgeDocument, NodeDocument


class GraphDocument(TypedDict):
    """Nodes and edges."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


class FlowResponse(TypedDict):
    """A flow with its graph; ``version`` is the hash of that, ``revision`` counts changes."""

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    graph: GraphDocument


class FlowSummary(TypedDict):
    """A flow as lists show it."""

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    node_count: int


class FlowsResponse(TypedDict):
    """One page of flows, newest first; ``next_cursor`` is None on the last one."""

    flows: list[FlowSummary]
    next_cursor: str | None


class FlowVersionResponse(TypedDict):
    """One content of a flow; ``revision`` is the first one that had it."""

    version: str
    revision: int
    created_at: str
    node_count: int


class FlowVersionsResponse(TypedDict):
    """One page of versions, newest first; ``next_cursor`` is None on the last one."""

    flow_id: str
    versions: list[FlowVersionResponse]
    next_cursor: str | None
