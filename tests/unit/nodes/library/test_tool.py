"""The types ``tool`` and ``toolset``: what they give, and what their checks find."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave.errors import NodeError
from planwave.graph.checking.checker import check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import LINK, Graph, Node, Port
from planwave.graph.protocols import FlowContext, effect_of
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.tool import RegisteredToolNode
from planwave.nodes.library.toolset import Toolset
from planwave.nodes.registry import Registry
from planwave.nodes.tools.tool_node import stricter_approval
from tests.support.graph.builders import make_edge, make_graph
from tests.support.nodes.node_context import FakeRuntime
from tests.support.nodes.tool_calls import call_tool


class TakesTools:
    """A type that tools can be linked to."""

    node_type = "taker"
    inputs = (Port("tools", "tool", channel=LINK, multiple=True),)

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


REGISTRY = Registry((*LIBRARY, TakesTools()))


@tool(effect="read", registry=REGISTRY)
def look_up(number: int) -> str:
    """Look an order up."""
    return f"order {number}"


@tool(effect="write", approval="write", registry=REGISTRY)
def cancel(number: int) -> str:
    """Cancel an order."""
    return "cancelled"


class _Runtime(FakeRuntime):
    @property
    def catalogue(self) -> Registry:
        return REGISTRY


def context_of(node_type: str) -> FlowContext:
    runtime = _Runtime(Graph((Node("t", node_type, "T"),), ()))
    return FlowContext("t", "r", "t", 1, None, None, runtime, None)


def linked(*nodes: Node, edges: list[Any] | None = None) -> Graph:
    """Return a graph in which each of these nodes is linked to a node ``a``."""
    links = [
        make_edge(each.id, "a", source_handle="tools", target_handle="tools", channel=LINK)
        for each in nodes
    ]
    return make_graph(*nodes, Node("a", "taker", "A"), edges=links if edges is None else edges)


def findings(graph: Graph) -> list[Diagnostic]:
    return list(check(graph, REGISTRY))


def node(node_id: str, *names: str, **data: Any) -> Node:
    """Return a node of the type ``tool`` with one name, or else ``toolset``."""
    if len(names) == 1:
        return Node(node_id, "tool", node_id, data={"name": names[0], **data})
    return Node(node_id, "toolset", node_id, data={"names": list(names), **data})


async def test_a_node_gives_the_registered_tool() -> None:
    made = await RegisteredToolNode().materialize({"name": "look_up"}, "tools", context_of("tool"))
    assert made == look_up.tool
    assert await call_tool(made, number=3) == "order 3"


async def test_description_and_approval_can_be_changed() -> None:
    data = {"name": "look_up", "description": "Only for orders.", "approval": "always"}
    made = await RegisteredToolNode().materialize(data, "tools", context_of("tool"))
    assert (made.description, made.approval) == ("Only for orders.", "always")


async def test_a_graph_cannot_make_the_approval_of_a_tool_laxer() -> None:
    data = {"name": "cancel", "approval": "never"}
    made = await RegisteredToolNode().materialize(data, "tools", context_of("tool"))
    assert made.approval == "write"


@pytest.mark.parametrize(
    ("first", "second", "strict"),
    [
        ("never", None, "never"), ("never", "write", "write"), ("always", "write", "always"),
        ("write", "never", "write"), ("write", "always", "always"),
    ],
)  # fmt: skip
def test_the_stricter_rule_holds(first: Any, second: Any, strict: str) -> None:
    assert stricter_approval(first, second) == strict


async def test_a_toolset_gives_its_tools_in_order() -> None:
    data = {"names": ["cancel", "look_up"], "approval": "write"}
    made = await Toolset().materialize(data, "tools", context_of("toolset"))
    assert [(each.name, each.approval) for each in made] == [
        ("cancel", "write"), ("look_up", "write"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data"),
    [(RegisteredToolNode(), {"name": "lookup"}), (Toolset(), {"names": ["cancel", "lookup"]})],
)
async def test_an_unknown_tool_fails_the_node_with_the_nearest_name(kind: Any, data: Any) -> None:
    with pytest.raises(NodeError) as caught:
        await kind.materialize(data, "tools", context_of(kind.node_type))
    assert caught.value.code == "unknown-tool"
    assert caught.value.message == "node 't': there is no tool 'lookup'"
    assert caught.value.hint == "did you mean 'look_up'?"


def test_sound_tools_have_no_findings() -> None:
    assert findings(linked(node("one", "look_up"), node("two", "cancel", "look_up"))) == []


def test_an_unknown_tool_is_found_with_a_correction() -> None:
    (found,) = findings(linked(node("one", "lookup")))
    assert (found.code, found.pointer, found.severity) == (
        "unknown-tool", "/nodes/0/data/name", "error",
    )  # fmt: skip
    assert found.hint == "did you mean 'look_up'?"
    assert found.suggestion is not None
    (found,) = findings(linked(node("one", "cancel", "nothing like it")))
    assert (found.pointer, found.hint) == (
        "/nodes/0/data/names/1", "there are: cancel, look_up; a tool of your own, declared with @planwave.tool(), is known when its "
        "module is imported; the command line and the service import the node_modules of planwave.toml",
    )  # fmt: skip
    (found,) = Registry(LIBRARY).check(node("n", "x"), linked(node("n", "x")))
    assert "@planwave.tool()" in (found.hint or "")


def test_a_tool_that_is_linked_to_nothing_is_a_warning() -> None:
    (found,) = findings(linked(node("one", "look_up"), edges=[]))
    assert (found.code, found.severity, found.node) == ("unused-tool", "warning", "one")


@pytest.mark.parametrize(
    ("nodes", "first", "second"),
    [
        ([node("one", "look_up", "look_up")], "one", "one"),
        ([node("x", "look_up"), node("y", "look_up"), node("z", "look_up", "look_up")], "z", "z"),
        ([node("o.1", "cancel"), node("o_1", "cancel")], "o.1", "o_1"),
    ],
)
def test_tools_that_cannot_be_told_apart_are_found_once(
    nodes: list[Node], first: str, second: str
) -> None:
    (found,) = findings(linked(*nodes))
    assert (found.code, found.severity) == ("duplicate-tool", "error")
    assert f"of the links from {first!r} and from {second!r}" in found.message
    assert found.edge == f"{second}.tools-a.tools"


def test_the_effect_of_a_node_is_that_of_its_tools() -> None:
    for each, effect in (
        (node("n", "look_up"), "read"),
        (node("n", "cancel"), "write"),
        (node("n", "unknown"), "once"),
        (node("n", "look_up", "cancel"), "write"),
        (node("n", "look_up", "unknown"), "once"),
    ):
        facts = REGISTRY.type_info(each.type)
        assert facts is not None
        assert effect_of(each, facts, linked(each)) == effect


def test_a_tool_that_is_connected_with_a_flow_edge_says_how_it_is_linked() -> None:
    g = planwave.GraphBuilder()
    desk = g.node("tool", id="desk", data={"name": "look_up"})
    g.edge(desk, g.node("agent", id="a", user_prompt="Hi"))
    with pytest.raises(planwave.GraphInvalid) as caught:
        planwave.build(g, registry=REGISTRY)
    assert (caught.value.message, caught.value.hint) == (
        "edge 'e1' (desk to a): a tool never runs, so no data can flow out of it",
        "connect it with a link to the node that uses it; "
        "in Python, pass the node as a keyword: tools=node",
    )


def test_the_name_of_the_node_is_not_taken_for_that_of_the_tool() -> None:
    g = planwave.GraphBuilder()
    g.node("tool", name="look_up")
    with pytest.raises(planwave.GraphInvalid) as caught:
        planwave.build(g, registry=REGISTRY)
    assert (caught.value.message, caught.value.hint) == (
        "node 'tool': data.name is required",
        "write it in data; the name beside data is that of the node",
    )


def test_tools_in_the_data_of_an_agent_are_refused_with_the_way_to_link_them() -> None:
    g = planwave.GraphBuilder()
    g.node("agent", user_prompt="Hi", tools=["look_up"])
    with pytest.raises(planwave.GraphInvalid) as caught:
        planwave.build(g, registry=REGISTRY)
    assert caught.value.message == (
        "node 'agent': data.tools: tools are linked to an agent: add a node of the type 'tool' or "
        "'toolset', and a link from its handle 'tools' to the handle 'tools' of the agent"
    )
