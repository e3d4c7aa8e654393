from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import DataValue
from planwave.graph.reading.documents import read_graph
from planwave.graph.result import LastNodes, Result, main_output
from tests.support.nodes.nested_graphs import graph_document, node_document


def last_nodes_of(*nodes: dict[str, Any], edges: Any = ()) -> LastNodes:
    document = graph_document(*nodes, edges=edges)
    graph, _ = read_graph(document)
    found = LastNodes.of(graph)
    assert found == LastNodes.of_document(graph.to_document())
    return found


def text(value: str, handle: str = "output") -> dict[str, DataValue]:
    return {handle: DataValue("text", value)}


ERROR = {"error": DataValue("json", {"code": "no"})}


def test_end_nodes_that_delivered_come_before_other_last_nodes() -> None:
    last = last_nodes_of(
        node_document("a", "text"), node_document("b", "text"), node_document("e", "end"), node_document("f", "end"),
        edges=[("a", "e"), ("a", "f")],
    )  # fmt: skip
    assert last.result({"a": text("x"), "b": text("y"), "e": text("z")}).values == {"e": "z"}
    assert last.result({"a": text("x"), "b": text("y")}).values == {"b": "y"}
    assert last.result({"a": text("x"), "b": text("y"), "e": {}}).values == {"b": "y"}
    assert last.result({"a": text("x"), "b": {}}) == Result({})
    assert set(last.deliverers) == {"b", "e", "f"}


def test_an_error_edge_that_is_not_taken_leaves_the_node_last() -> None:
    last = last_nodes_of(
        node_document("a", "text"), node_document("h", "text"), edges=[("a", "h", "error")]
    )
    assert last.result({"a": text("fine")}).values == {"a": "fine"}
    assert last.result({"a": ERROR, "h": text("mended")}).values == {"h": "mended"}


def test_a_node_with_another_edge_beside_its_error_edge_is_not_last() -> None:
    last = last_nodes_of(
        node_document("a", "text"), node_document("h", "text"), node_document("b", "text"),
        edges=[("a", "h", "error"), ("a", "b")],
    )  # fmt: skip
    assert last.sinks == ("h", "b")


def test_an_error_that_a_node_delivers_is_not_its_result() -> None:
    last = last_nodes_of(node_document("a", "text"))
    assert last.result({"a": ERROR}) == Result({})
    assert last.result({"a": {**ERROR, **text("x", "left")}}).value == DataValue("text", "x")


def test_the_value_of_several_nodes_is_an_object() -> None:
    last = last_nodes_of(node_document("b", "text"), node_document("a", "text"))
    assert last.result({"a": text("x")}).value == DataValue("text", "x")
    assert last.result({"a": text("x"), "b": text("y")}).value == DataValue(
        "json", {"b": "y", "a": "x"}
    )
    assert last.result({}).value == DataValue("json", None)


def test_the_text_has_a_blank_line_between_nodes() -> None:
    last = last_nodes_of(*(node_document(each, "text") for each in "bac"))
    outputs = {"a": text("x"), "b": {"output": DataValue("json", {"n": 1})}, "c": text("")}
    assert last.result(outputs).text == '{"n":1}\n\nx'
    assert last.result({}).text == ""


def test_the_value_of_a_node_is_its_output_or_its_first_handle() -> None:
    assert main_output({**text("x", "left"), **text("y")}).value == "y"
    assert main_output({**text("x", "left"), **text("y", "right")}).value == "x"


@pytest.mark.parametrize("channel", ["flow", "link"])
def test_only_flow_edges_make_a_node_not_last(channel: str) -> None:
    document = graph_document(node_document("a", "text"), node_document("b", "text"))
    document["edges"] = [{"source": "a", "target": "b", "data": {"channel": channel}}]
    assert LastNodes.of_document(document).sinks == (("b",) if channel == "flow" else ("a", "b"))
