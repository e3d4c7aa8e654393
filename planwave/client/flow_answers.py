"""What a service answers about flows, as types; see ``answers.py``."""

from __future__ import annotations

from typing import TypedDict

from planwave.client.answers import Edge, Node


class Graph(TypedDict):
    """Nodes and edges."""

    nodes: list[Node]
    edges: list[Edge]


class Flow(TypedDict):
    """A flow with its graph; ``version`` is the hash of that, ``revision`` counts changes."""

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    graph: Graph


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


class Flows(TypedDict):
    """One page of flows, newest first; ``next_cursor`` is None on the last one."""

    flows: list[FlowSummary]
    next_cursor: str | None


class FlowVersion(TypedDict):
    """One content of a flow; ``revision`` is the first one that had it."""

    version: str
    revision: int
    created_at: str
    node_count: int


class FlowVersions(TypedDict):
    """One page of versions, newest first; ``next_cursor`` is None on the last one."""

    flow_id: str
    versions: list[FlowVersion]
    next_cursor: str | None
