"""Nodes of a graph and of the graphs inside them, in order, with their places."""

from __future__ import annotations

from planwave.graph.model import Graph, Node
from planwave.graph.read import read_graph
from planwave.graph.within import nodes_within
from tests.fakes.nested import document, node, registry


def places(graph: Graph) -> list[str]:
    return [placed.path for placed in nodes_within(graph, registry())]


def test_each_node_is_followed_by_those_inside_it() -> None:
    deep = document(node("x", "text", text="x"), node("y", "text", text="y"))
    middle = document(node("in", "inner", graph=deep), node("z", "end"))
    graph, _ = read_graph(
        document(node("a", "end"), node("n", "loop", body=middle), node("b", "end"))
    )
    assert places(graph) == ["a", "n", "n/in", "n/in/x", "n/in/y", "n/z", "b"]


def test_what_is_no_graph_and_types_that_are_not_there_hold_nothing() -> None:
    data = [{"body": "x"}, {"body": {"nodes": 1}}, {"flow": {"id": "f"}}, {}]
    nodes = [Node(f"n{i}", "loop", "n", data=each) for i, each in enumerate(data)]
    strange = Node("s", "strange", "s", data={"body": document(node("x", "end"))})
    assert places(Graph((*nodes, strange), ())) == ["n0", "n1", "n2", "n3", "s"]
