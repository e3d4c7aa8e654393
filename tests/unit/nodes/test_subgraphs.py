"""How nested graphs are loaded and prepared, and what their results are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.json_values import MAX_VALUE_DEPTH
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult
from planwave.graph.reading.documents import read_graph
from planwave.nodes.subgraphs import Subgraph, input_value, load, prepare
from tests.support.graph.json_values import nested_lists
from tests.support.nodes.nested_graphs import (
    graph_document,
    node_document,
    registry_with,
    run_to_end,
)
from tests.support.nodes.node_context import context_for, make_inputs


def subgraph_of(*nodes: dict[str, Any], edges: Any = ()) -> Subgraph:
    graph, _ = read_graph(graph_document(*nodes, edges=edges))
    return prepare(graph, registry_with())


def text(value: str, handle: str = "output") -> dict[str, DataValue]:
    return {handle: DataValue("text", value)}


def test_the_input_becomes_the_first_output_of_every_entry_node() -> None:
    nested = subgraph_of(
        node_document("s", "start"),
        node_document("u", "user_input"),
        node_document("t", "text", text="x"),
    )
    assert nested.entries == (("s", "output"), ("u", "output"))


def test_the_result_is_that_of_the_end_node_or_the_last_nodes() -> None:
    nested = subgraph_of(
        node_document("a", "text"), node_document("b", "text"), node_document("e", "end"), node_document("f", "end"),
        edges=[("a", "e"), ("a", "f")],
    )  # fmt: skip
    assert nested.result({"a": text("x"), "b": text("y"), "e": text("z")}).value == "z"
    both = {"e": text("1"), "f": text("2"), "b": text("y")}
    assert nested.result(both) == DataValue("json", {"e": "1", "f": "2"})
    assert nested.result({"a": text("x"), "b": text("y")}) == DataValue("text", "y")
    assert nested.result({"a": text("x"), "b": {}}) == DataValue("json", None)
    without_end = subgraph_of(node_document("a", "text"), node_document("b", "text"))
    assert without_end.result({"a": text("x"), "b": text("y")}).value == {"a": "x", "b": "y"}


def test_an_error_handler_does_not_hide_the_result_of_a_success() -> None:
    nested = subgraph_of(
        node_document("a", "text"), node_document("h", "text"), edges=[("a", "h", "error")]
    )
    assert nested.result({"a": text("fine")}) == DataValue("text", "fine")
    failed = {"error": DataValue("json", {"code": "no"})}
    assert nested.result({"a": failed, "h": text("mended")}) == DataValue("text", "mended")
    assert nested.result({"a": failed}) == DataValue("json", None)


def test_several_values_at_the_input_are_a_list() -> None:
    assert input_value(make_inputs()) is None
    assert input_value(make_inputs(5)) == DataValue("any", 5)
    assert input_value(make_inputs("a", {"b": 1})) == DataValue("json", ["a", {"b": 1}])


async def test_equal_documents_share_one_graph() -> None:
    body = graph_document(node_document("t", "text", text="x"))
    context = context_for(Node("n", "loop", "n", data={"body": body}))
    first = await load("body", dict(body), None, (), context)
    again = await load("body", body, None, (), context)
    assert first.graph is again.graph


async def test_only_a_graph_that_is_not_in_the_data_is_checked_when_loaded() -> None:
    faulty = graph_document(node_document("t", "nonsense"))
    written = context_for(Node("n", "loop", "n", data={"body": faulty}))
    await load("body", faulty, None, (), written)
    with pytest.raises(NodeError) as caught:
        await load("body", faulty, None, (), context_for(Node("n", "loop", "n")))
    assert caught.value.code == "graph-invalid"


async def test_a_node_without_a_graph_fails_with_a_hint() -> None:
    with pytest.raises(NodeError) as caught:
        await load("body", None, None, (), context_for(Node("n", "loop", "n")))
    assert caught.value.code == "missing-required-input"
    assert "data.body" in str(caught.value.hint)


class Gives:
    """Returns one value of any kind."""

    node_type = "gives"

    def __init__(self, value: Any) -> None:
        self.value = value

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        return ExecutionResult({"output": DataValue("any", self.value)})


THROUGH = graph_document(node_document("s", "start"), node_document("e", "end"), edges=[("s", "e")])
NESTING: dict[str, dict[str, Any]] = {
    "inner": {"graph": THROUGH},
    "loop": {"body": THROUGH},
    "while": {"condition": "index < 1", "body": THROUGH},
}


@pytest.mark.parametrize("kind", NESTING)
@pytest.mark.parametrize(
    "value",
    [
        ["a\0b"], [(1, 2)], [{"a\0": ({},)}], [10**400], nested_lists(65), nested_lists(90), nested_lists(MAX_VALUE_DEPTH)
    ],
    ids=["NUL", "tuple", "both", "large", "65 deep", "90 deep", "200 deep"],
)  # fmt: skip
async def test_any_result_of_a_node_may_enter_a_nested_graph(kind: str, value: Any) -> None:
    result = await run_to_end(
        graph_document(
            node_document("a", "gives"),
            node_document("n", kind, **NESTING[kind]),
            edges=[("a", "n", "output", "items" if kind == "loop" else "input")],
        ),
        Gives(value),
    )
    assert result.error is None
    passed = result.outputs["a"]["output"].value
    assert passed == listed(value)
    assert result.outputs["n"]["output"].value == passed


def listed(value: Any) -> Any:
    """Return a value with its tuples replaced by lists."""
    if isinstance(value, Mapping):
        return {name: listed(each) for name, each in value.items()}
    return [listed(each) for each in value] if isinstance(value, list | tuple) else value
