"""Check the inputs of nodes: too many values, missing values, nodes that nothing can reach."""

from __future__ import annotations

from collections.abc import Container, Iterable

from planwave.graph.checking.exclusive import ExclusiveBranches, TypeInfos
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import FLOW, Edge, Graph
from planwave.graph.topology import Topology


def too_many_inputs(
    graph: Graph,
    single_value_edges: Iterable[tuple[int, Edge]],
    branches: ExclusiveBranches,
) -> list[Diagnostic]:
    """Return a finding for each single-value port that several edges can deliver to.

    Several edges are allowed if at most one of them delivers: a node before them chooses one, or
    the target takes the first arrival (``join: any``).

    Args:
        graph: The graph.
        single_value_edges: Number and edge of all edges into a port that is not ``multiple``.
        branches: The mutually exclusive edges.
    """
    into: dict[tuple[str, str], list[tuple[int, Edge]]] = {}
    for number, edge in single_value_edges:
        into.setdefault((edge.target, edge.target_handle), []).append((number, edge))
    findings: list[Diagnostic] = []
    for (target, handle), edges in into.items():
        if len(edges) < 2 or graph.by_id[target].policy.join == "any":
            continue
        if not branches.are_exclusive([number for number, _ in edges]):
            number, edge = edges[1]
            names = ", ".join(repr(edge.id) for _, edge in edges)
            message = (
                f"input {handle!r} of {target!r} takes one value, but edges {names} lead to it"
            )
            hint = "send all but one elsewhere, or put a node between that joins them"
            pointer = f"/edges/{number}"
            findings.append(
                Diagnostic("too-many-inputs", "error", message, pointer, target, edge.id, hint=hint)
            )
    return findings


def missing_inputs(graph: Graph, facts: TypeInfos) -> list[Diagnostic]:
    """Return a finding for each required port without an edge or a value in the node's data."""
    required = {
        kind: [port.name for port in about.inputs if port.required]
        for kind, about in facts.items()
        if about and any(port.required for port in about.inputs)
    }
    if not required:
        return []
    connected = {(edge.target, edge.target_handle) for edge in graph.edges}
    return [
        Diagnostic(
            "missing-required-input",
            "error",
            f"node {node.id!r} needs a value at its input {name!r}",
            f"/nodes/{number}",
            node=node.id,
            hint=f"connect an edge to {name!r}, or give data.{name} a value",
        )
        for number, node in enumerate(graph.nodes)
        for name in required.get(node.type, ())
        if (node.id, name) not in connected and node.data.get(name) in (None, "", [], {})
    ]


def nothing_to_pass_on(graph: Graph, facts: TypeInfos) -> list[Diagnostic]:
    """Return a warning for each node that only passes on what it gets, and gets nothing."""
    fed = {edge.target for edge in graph.edges if edge.channel == FLOW}
    return [
        Diagnostic(
            "nothing-to-pass-on",
            "warning",
            f"node {node.id!r} only passes on what it gets, and no edge leads into it",
            f"/nodes/{number}",
            node=node.id,
            hint="connect an edge to it, or remove it",
        )
        for number, node in enumerate(graph.nodes)
        if node.id not in fed and (about := facts.get(node.type)) and about.passes_on
    ]


def unreachable_nodes(topology: Topology, dead_edges: Container[int]) -> list[Diagnostic]:
    """Return a finding for each node that cannot start because all its edges are dead.

    Args:
        topology: The graph's topology; nodes on a cycle are ignored.
        dead_edges: Numbers of edges that never deliver.
    """
    if not dead_edges:
        return []
    findings: list[Diagnostic] = []
    edges, sources = topology.edges, topology.sources
    dead_nodes: set[int] = set()
    for node in topology.order:
        flows = [e for e in topology.incoming[node] if edges[e].channel == FLOW]
        if flows and all(e in dead_edges or sources[e] in dead_nodes for e in flows):
            dead_nodes.add(node)
            message = (
                f"node {topology.ids[node]!r} can never start: none of its edges ever delivers"
            )
            findings.append(
                Diagnostic(
                    "unreachable-node",
                    "error",
                    message,
                    f"/nodes/{node}",
                    node=topology.ids[node],
                    hint="connect it to an output that can carry a value, or remove it",
                )
            )
    return findings
