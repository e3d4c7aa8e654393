"""The nodes of a graph together with those of the graphs that its nodes run inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import Graph, Json, Node
from planwave.graph.read import read_graph


class Placed(NamedTuple):
    """A node, and where it stands: ``loop/summarise`` is in the graph that ``loop`` runs inside."""

    path: str
    node: Node


def nodes_within(graph: Graph, catalogue: Catalogue) -> Iterator[Placed]:
    """Give every node of a graph, each followed by those of the graphs in its data.

    What cannot be read, and graphs that are only named, are left out.
    """
    stack = [Placed(node.id, node) for node in reversed(graph.nodes)]
    while stack:
        placed = stack.pop()
        yield placed
        facts = catalogue.facts(placed.node.type)
        for field in facts.graph_fields if facts is not None else ():
            document = placed.node.data.get(field)
            if not isinstance(document, dict):
                continue
            try:
                held, _ = read_graph(cast("dict[str, Json]", document))
            except GraphInvalid:
                continue
            stack += [Placed(f"{placed.path}/{node.id}", node) for node in reversed(held.nodes)]
