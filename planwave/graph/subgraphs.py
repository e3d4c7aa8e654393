"""The nodes of a graph and of the graphs nested in its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.model import Effect, Graph, Json, Node
from planwave.graph.protocols import NodeTypes, effect_of
from planwave.graph.reading.documents import read_graph


class NestedNode(NamedTuple):
    """A node and its path: ``loop/summarise`` is in the graph nested in ``loop``."""

    path: str
    node: Node


def has_subgraphs(node_type: str, catalogue: NodeTypes) -> bool:
    """Return whether nodes of a type may have graphs in their data."""
    facts = catalogue.type_info(node_type)
    return facts is not None and bool(facts.graph_fields)


def subgraphs_of(node: Node, catalogue: NodeTypes) -> Sequence[Graph]:
    """Return the graphs in a node's data; unreadable graphs and flows given by name are omitted."""
    facts = catalogue.type_info(node.type)
    graphs: list[Graph] = []
    for field in facts.graph_fields if facts is not None else ():
        document = node.data.get(field)
        if isinstance(document, dict):
            with suppress(GraphInvalid):
                graphs.append(read_graph(cast("dict[str, Json]", document))[0])
    return graphs


def all_nodes(graph: Graph, catalogue: NodeTypes) -> Iterator[NestedNode]:
    """Yield every node of a graph, each followed by the nodes of the graphs in its data."""
    stack = [NestedNode(node.id, node) for node in reversed(graph.nodes)]
    while stack:
        nested = stack.pop()
        yield nested
        for inner in reversed(subgraphs_of(nested.node, catalogue)):
            stack += [
                NestedNode(f"{nested.path}/{node.id}", node) for node in reversed(inner.nodes)
            ]


def effects_of(node: Node, graph: Graph, catalogue: NodeTypes) -> Iterator[Effect]:
    """Yield the effect of a node, and those of all nodes in the graphs inside it; see ``nodes_with_effects``."""
    return (effect for _, effect in nodes_with_effects(node, graph, catalogue))


def nodes_with_effects(
    node: Node, graph: Graph, catalogue: NodeTypes
) -> Iterator[tuple[Node, Effect]]:
    """Yield a node and all nodes in the graphs inside it, with the effects that each has.

    What is known only in a run must not happen twice: nodes of unknown types, flows given by name,
    graphs that a wire brings.
    """
    stack = [(node, graph)]
    while stack:
        node, graph = stack.pop()
        facts = catalogue.type_info(node.type)
        if facts is None:
            yield node, "once"
            continue
        yield node, effect_of(node, facts, graph)
        inside = subgraphs_of(node, catalogue)
        wired = {edge.target_handle for edge in graph.incoming.get(node.id, ())}
        if facts.runs_graphs and (not inside or wired.intersection(facts.graph_fields)):
            yield node, "once"
        stack += [(each, inner) for inner in inside for each in inner.nodes]
