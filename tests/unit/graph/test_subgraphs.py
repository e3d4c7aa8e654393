"""Nodes of a graph and of the graphs inside them, in order, with their places."""

from __future__ import annotations

from typing import Any

from planwave.graph.model import Graph, Node
from planwave.graph.reading.documents import read_graph
from planwave.graph.subgraphs import all_nodes, effects_of
from planwave.nodes.authoring.data_fields import graph_field
from planwave.nodes.authoring.node_type import NodeData, NodeType
from tests.support.nodes.nested_graphs import graph_document, node_document, registry_with


def places(graph: Graph, *types: Any) -> list[str]:
    return [placed.path for placed in all_nodes(graph, registry_with(*types))]


def test_each_node_is_followed_by_its_nested_nodes() -> None:
    deep = graph_document(
        node_document("x", "text", text="x"), node_document("y", "text", text="y")
    )
    middle = graph_document(node_document("in", "inner", graph=deep), node_document("z", "end"))
    graph, _ = read_graph(
        graph_document(
            node_document("a", "end"),
            node_document("n", "loop", body=middle),
            node_document("b", "end"),
        )
    )
    assert places(graph) == ["a", "n", "n/in", "n/in/x", "n/in/y", "n/z", "b"]


def test_invalid_graphs_and_unknown_types_have_no_nested_nodes() -> None:
    data = [{"body": "x"}, {"body": {"nodes": 1}}, {"flow": {"id": "f"}}, {}]
    nodes = [Node(f"n{i}", "loop", "n", data=each) for i, each in enumerate(data)]
    strange = Node("s", "strange", "s", data={"body": graph_document(node_document("x", "end"))})
    assert places(Graph((*nodes, strange), ())) == ["n0", "n1", "n2", "n3", "s"]


class TwoData(NodeData):
    first: dict[str, Any] | None = graph_field()
    second: dict[str, Any] | None = graph_field()


class Two(NodeType):
    """A type with two graphs."""

    node_type = "two"
    Data = TwoData

    async def run(self, data: Any, inputs: Any, context: Any) -> Any: ...


def test_graphs_of_one_node_come_in_the_order_of_its_fields() -> None:
    inside = [
        graph_document(node_document(f"a{n}", "end"), node_document(f"b{n}", "end"))
        for n in range(2)
    ]
    graph, _ = read_graph(
        graph_document(node_document("n", "two", second=inside[1], first=inside[0]))
    )
    assert places(graph, Two) == ["n", "n/a0", "n/b0", "n/a1", "n/b1"]


def test_effects_count_inside_and_what_a_run_decides_must_not_happen_twice() -> None:
    body = graph_document(node_document("x", "fetch", url="https://a.test/", method="POST"))
    graph, _ = read_graph(
        graph_document(
            node_document("given", "loop", body=body),
            node_document("named", "loop", flow={"name": "f"}),
            node_document("wired", "loop"),
            node_document("source", "json", value={}),
            edges=[("source", "wired", "output", "body")],
        )
    )
    catalogue = registry_with()

    def effects(name: str) -> set[str]:
        return set(effects_of(graph.by_id[name], graph, catalogue))

    assert "write" in effects("given")
    assert "once" in effects("named")
    assert "once" in effects("wired")
    strange = Node("s", "strange", "s")
    assert list(effects_of(strange, Graph((strange,), ()), catalogue)) == ["once"]
