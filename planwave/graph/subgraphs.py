"""The nodes of a graph together with those of the graphs that its nodes run inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.model import Graph, Json, Node
from planwave.graph.protocols import Catalogue
from planwave.graph.reading.documents import read_graph


class NestedNode(NamedTuple):
    """A node, and where it stands: ``loop/summarise`` is in the graph that ``loop`` runs inside."""

    path: str
    node: Node


def has_subgraphs(node_type: str, catalogue: Catalogue) -> bool:
    """Say whether nodes of a type may have graphs in their data."""
    facts = catalogue.type_info(node_type)
    return facts is not None and bool(facts.graph_fields)


def subgraphs_of(node: Node, catalogue: Catalogue) -> Sequence[Graph]:
    """Give the graphs in a node's data; what cannot be read, or is only named, is left out."""
    facts = catalogue.type_info(node.type)
    graphs: list[Graph] = []
    for field in facts.graph_fields if facts is not None else ():
        document = node.data.get(field)
        if isinstance(document, dict):
            with suppress(GraphInvalid):
                graphs.append(read_graph(cast("dict[str, Json]", document))[0])
    return graphs


def all_nodes(graph: Graph, catalogue: Catalogue) -> Iterator[NestedNode]:
    """Give every node of a graph, each followed by those of the graphs in its data."""
    stack = [NestedNode(node.id, node) for node in reversed(graph.nodes)]
    while stack:
        placed = stack.pop()
        yield placed
        for held in reversed(subgraphs_of(placed.node, catalogue)):
            stack += [NestedNode(f"{placed.path}/{node.id}", node) for node in reversed(held.nodes)]
