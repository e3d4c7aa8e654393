"""Edges, nodes, graphs and plans built in code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Channel,
    Edge,
    Graph,
    Node,
)
from planwave.graph.plan import Plan, graph_hash


def make_edge(
    source: str,
    target: str,
    *,
    channel: Channel = FLOW,
    source_handle: str = DEFAULT_SOURCE_HANDLE,
    target_handle: str = DEFAULT_TARGET_HANDLE,
    edge_id: str | None = None,
) -> Edge:
    """Make an edge; the id defaults to one made from its two ends."""
    name = edge_id or f"{source}.{source_handle}-{target}.{target_handle}"
    return Edge(name, source, source_handle, target, target_handle, channel, {"channel": channel})


def text_node(node_id: str, text: str = "", **more: Any) -> Node:
    """Make a ``text`` node."""
    return Node(node_id, "text", more.pop("name", node_id), data={"text": text or node_id}, **more)


def make_graph(*nodes: Node, edges: Sequence[tuple[str, str] | Edge] = ()) -> Graph:
    """Make a graph; pairs are flow edges."""
    made = tuple(e if isinstance(e, Edge) else make_edge(*e) for e in edges)
    return Graph(tuple(nodes), made)


def make_plan(graph: Graph, plan_id: str = "01900000-0000-7000-8000-000000000001") -> Plan:
    """Make a plan of a graph."""
    return Plan(plan_id, "a goal", "A title", graph, graph_hash(graph), "2026-01-01T00:00:00+00:00")
