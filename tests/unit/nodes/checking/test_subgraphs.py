"""Nested graphs are checked with the outer graph: every error with its pointer."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.nodes.authoring.data_fields import graph_field
from planwave.nodes.authoring.node_type import NodeData, NodeType
from planwave.settings import Limits
from tests.support.nodes.nested_graphs import (
    WorkNode,
    diagnostics_of,
    errors_of,
    graph_document,
    node_document,
)


def loop(body: dict[str, Any], node_id: str = "n") -> dict[str, Any]:
    return node_document(node_id, "loop", items=[1], body=body)


def test_errors_in_a_nested_graph_are_reported_with_pointers_below_the_node() -> None:
    inside = graph_document(
        node_document("a", "text", text="{{ itm }}", colour="red"), node_document("b", "nonsense"),
        edges=[("a", "ghost")],
    )  # fmt: skip
    graph = graph_document(
        node_document("first", "text", text="ok"), loop(inside), node_document("last", "nonsense")
    )
    below = "/nodes/1/data/body"
    assert errors_of(graph) == [
        ("invalid-data", f"{below}/nodes/0/data/colour"),
        ("template-undefined", f"{below}/nodes/0/data/text"),
        ("unknown-node-type", f"{below}/nodes/1/type"),
        ("dangling-edge", f"{below}/edges/0/target"),
        ("unknown-node-type", "/nodes/2/type"),
    ]


def test_a_finding_in_a_nested_graph_names_the_outer_node() -> None:
    (found,) = diagnostics_of(graph_document(loop(loop_in_loop())))
    assert found.node == "n"
    assert found.pointer == "/nodes/0/data/body/nodes/0/data/body/nodes/0/type"
    assert found.message.startswith("node 'n', data.body: node 'in', data.body: node 'x' has the ")


def loop_in_loop() -> dict[str, Any]:
    return graph_document(loop(graph_document(node_document("x", "nonsense")), "in"))


def test_a_cycle_in_a_nested_graph_is_found() -> None:
    inside = graph_document(
        node_document("a", "end"), node_document("b", "end"), edges=[("a", "b"), ("b", "a")]
    )
    (found,) = diagnostics_of(graph_document(loop(inside)))
    assert (found.code, found.pointer) == ("flow-cycle", "/nodes/0/data/body/nodes/0")
    assert "a -> b -> a" in found.message


def test_a_nested_graph_sees_outer_variables_but_not_outer_nodes() -> None:
    deep = graph_document(
        node_document("t", "text", text="{{ item }}{{ index }}{{ goal }}{{ value | default(1) }}")
    )
    assert errors_of(graph_document(loop(graph_document(loop(deep, "in"))))) == []
    outside = graph_document(node_document("t", "text", text='{{ nodes["first"].output }}'))
    graph = graph_document(
        node_document("first", "text", text="x"), loop(outside), edges=[("first", "n")]
    )
    assert errors_of(graph) == [("not-an-ancestor", "/nodes/1/data/body/nodes/0/data/text")]
    assert errors_of(graph_document(node_document("t", "text", text="{{ item }}"))) == [
        ("template-undefined", "/nodes/0/data/text")
    ]


def test_nested_graphs_are_checked_down_to_the_depth_limit() -> None:
    def nested(levels: int) -> dict[str, Any]:
        graph = graph_document(node_document("x", "nonsense"))
        for _ in range(levels):
            graph = graph_document(loop(graph))
        return graph

    limits = Limits(nested_depth=2)
    below = "/nodes/0/data/body"
    assert errors_of(nested(2), limits=limits) == [
        ("unknown-node-type", f"{below}{below}/nodes/0/type")
    ]
    assert errors_of(nested(3), limits=limits) == [("limit-exceeded", f"{below}{below}{below}")]
    (found,) = diagnostics_of(nested(3), limits=limits)
    assert "limit nested_depth is 2, met 3" in found.message


def test_limits_apply_to_nested_graphs() -> None:
    wide = graph_document(*(node_document(f"t{n}", "text", text="x") for n in range(3)))
    assert errors_of(graph_document(loop(wide)), limits=Limits(nodes=3)) == []
    assert errors_of(graph_document(loop(wide)), limits=Limits(nodes=2)) == [
        ("limit-exceeded", "/nodes/0/data/body/nodes")
    ]


class TwiceData(NodeData):
    first: dict[str, Any] | None = graph_field("one")
    second: dict[str, Any] | None = graph_field(names_of="named")
    named: dict[str, int] | None = None


class Twice(NodeType):
    """A foreign type with two graphs."""

    node_type = "twice"
    purpose = "Has two graphs."
    Data = TwiceData

    async def run(self, data: Any, inputs: Any, context: Any) -> Any: ...


@pytest.mark.parametrize(
    ("field", "name", "known"),
    [("first", "one", True), ("first", "two", False), ("second", "two", True), ("second", "one", False)],
)  # fmt: skip
def test_any_type_may_declare_graph_fields_and_their_variables(
    field: str, name: str, known: bool
) -> None:
    inside = graph_document(node_document("t", "text", text=f"{{{{ {name} }}}}"))
    found = errors_of(
        graph_document(node_document("n", "twice", named={"two": 2}, **{field: inside})), Twice
    )
    place = f"/nodes/0/data/{field}/nodes/0/data/text"
    assert found == ([] if known else [("template-undefined", place)])


def test_an_unreadable_nested_graph_is_reported_once() -> None:
    assert errors_of(
        graph_document(node_document("n", "loop", items=[1], body={"nodes": 5})), WorkNode()
    ) == [
        ("invalid-field", "/nodes/0/data/body/nodes"),
        ("missing-field", "/nodes/0/data/body/edges"),
    ]


@pytest.mark.parametrize(("body", "kind"), [("text", "text"), (5, "a number"), ([1], "an array")])
def test_a_body_that_is_no_object_is_reported_with_its_json_type(body: Any, kind: str) -> None:
    (found,) = diagnostics_of(graph_document(loop(body)))
    assert found.message == f"node 'n': data.body has to be an object, not {kind}"
