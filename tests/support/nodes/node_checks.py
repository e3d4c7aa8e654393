"""Checks one node as the graph checker does, without the rest of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Node
from planwave.nodes.registry import Registry, default_registry
from tests.support.graph.builders import make_edge


def check_node(
    node_type: str,
    data: Mapping[str, Any],
    *,
    outputs: Sequence[str] = (),
    inputs: Sequence[str] = (),
    registry: Registry | None = None,
) -> list[Diagnostic]:
    """Check a node with one edge out of each of these outputs and one into each of these inputs."""
    node = Node("n", node_type, "N", data=data)
    edges = [make_edge("n", f"t{i}", source_handle=handle) for i, handle in enumerate(outputs)]
    edges += [make_edge("s", "n", target_handle=handle) for handle in inputs]
    return list((registry or default_registry()).check(node, Graph((node,), tuple(edges))))


def locations(findings: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """Return the code and the pointer of each finding."""
    return [(finding.code, finding.pointer) for finding in findings]
