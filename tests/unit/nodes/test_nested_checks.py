"""Graphs in nodes are checked with the graph around them: every fault, and where it is."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.nodes.fields import graph_field
from planwave.nodes.node_type import NodeData, NodeType
from planwave.settings import Limits
from tests.fakes.nested import Work, document, faults_of, findings_of, node


def loop(body: dict[str, Any], node_id: str = "n") -> dict[str, Any]:
    return node(node_id, "loop", items=[1], body=body)


def test_every_fault_is_told_with_its_place_below_the_node() -> None:
    inside = document(
        node("a", "text", text="{{ itm }}", colour="red"), node("b", "nonsense"),
        edges=[("a", "ghost")],
    )  # fmt: skip
    graph = document(node("first", "text", text="ok"), loop(inside), node("last", "nonsense"))
    below = "/nodes/1/data/body"
    assert faults_of(graph) == [
        ("invalid-data", f"{below}/nodes/0/data/colour"),
        ("template-undefined", f"{below}/nodes/0/data/text"),
        ("unknown-node-type", f"{below}/nodes/1/type"),
        ("dangling-edge", f"{below}/edges/0/target"),
        ("unknown-node-type", "/nodes/2/type"),
    ]


def test_a_finding_names_the_node_of_the_graph_that_is_checked() -> None:
    (found,) = findings_of(document(loop(loop_in_loop())))
    assert found.node == "n"
    assert found.pointer == "/nodes/0/data/body/nodes/0/data/body/nodes/0/type"
    assert found.message.startswith("node 'n', data.body: node 'in', data.body: node 'x' has the ")


def loop_in_loop() -> dict[str, Any]:
    return document(loop(document(node("x", "nonsense")), "in"))


def test_a_cycle_inside_is_found() -> None:
    inside = document(node("a", "end"), node("b", "end"), edges=[("a", "b"), ("b", "a")])
    (found,) = findings_of(document(loop(inside)))
    assert (found.code, found.pointer) == ("flow-cycle", "/nodes/0/data/body/nodes/0")
    assert "a -> b -> a" in found.message


def test_a_graph_inside_sees_the_names_around_it_but_not_its_nodes() -> None:
    deep = document(
        node("t", "text", text="{{ item }}{{ index }}{{ goal }}{{ value | default(1) }}")
    )
    assert faults_of(document(loop(document(loop(deep, "in"))))) == []
    outside = document(node("t", "text", text='{{ nodes["first"].output }}'))
    graph = document(node("first", "text", text="x"), loop(outside), edges=[("first", "n")])
    assert faults_of(graph) == [("not-an-ancestor", "/nodes/1/data/body/nodes/0/data/text")]
    assert faults_of(document(node("t", "text", text="{{ item }}"))) == [
        ("template-undefined", "/nodes/0/data/text")
    ]


def test_graphs_in_graphs_are_checked_down_to_the_limit_and_no_deeper() -> None:
    def nested(levels: int) -> dict[str, Any]:
        graph = document(node("x", "nonsense"))
        for _ in range(levels):
            graph = document(loop(graph))
        return graph

    limits = Limits(nested_depth=2)
    below = "/nodes/0/data/body"
    assert faults_of(nested(2), limits=limits) == [
        ("unknown-node-type", f"{below}{below}/nodes/0/type")
    ]
    assert faults_of(nested(3), limits=limits) == [("limit-exceeded", f"{below}{below}{below}")]
    (found,) = findings_of(nested(3), limits=limits)
    assert "limit nested_depth is 2, met 3" in found.message


def test_limits_hold_inside_too() -> None:
    wide = document(*(node(f"t{n}", "text", text="x") for n in range(3)))
    assert faults_of(document(loop(wide)), limits=Limits(nodes=3)) == []
    assert faults_of(document(loop(wide)), limits=Limits(nodes=2)) == [
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
def test_any_type_may_declare_graphs_and_what_they_may_name(
    field: str, name: str, known: bool
) -> None:
    inside = document(node("t", "text", text=f"{{{{ {name} }}}}"))
    found = faults_of(document(node("n", "twice", named={"two": 2}, **{field: inside})), Twice)
    place = f"/nodes/0/data/{field}/nodes/0/data/text"
    assert found == ([] if known else [("template-undefined", place)])


def test_a_graph_that_cannot_be_read_at_all_is_told_once() -> None:
    assert faults_of(document(node("n", "loop", items=[1], body={"nodes": 5})), Work()) == [
        ("invalid-field", "/nodes/0/data/body/nodes"),
        ("missing-field", "/nodes/0/data/body/edges"),
    ]


@pytest.mark.parametrize(("body", "kind"), [("text", "text"), (5, "a number"), ([1], "an array")])
def test_a_body_that_is_no_object_is_told_in_words_of_json(body: Any, kind: str) -> None:
    (found,) = findings_of(document(loop(body)))
    assert found.message == f"node 'n': data.body has to be an object, not {kind}"
