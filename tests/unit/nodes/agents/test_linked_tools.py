"""The tools of a node: in edge order, of any number of links, each under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planwave.errors import LimitExceeded, NodeError
from planwave.graph.model import LINK, Graph, Json, Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.linked_tools import linked_tools
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.settings import Limits
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import FakeRuntime, services_with


async def _nothing(arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
    return None


def tool(name: str, **more: Any) -> Tool:
    return Tool(name, "", {"type": "object"}, _nothing, **more)


def context_with(*links: tuple[str, Any], limits: Limits | None = None) -> FlowContext:
    """Return the context of an agent; each link is a node id and what the node gives."""
    edges = [
        make_edge(source, "a", source_handle="tools", target_handle="tools", channel=LINK)
        for source, _ in links
    ]
    runtime = FakeRuntime(
        Graph((Node("a", "agent", "A"),), tuple(edges)),
        {("a", "tools"): [made for _, made in links]},
    )
    services, _ = services_with(lambda _: "", limits=limits)
    return FlowContext("a", "r", "a", 1, None, None, runtime, services)


async def names(*links: tuple[str, Any]) -> list[str]:
    return [each.name for each in await linked_tools(context_with(*links))]


async def test_one_tool_or_a_list_of_them_come_in_edge_order_with_their_node() -> None:
    found = await linked_tools(
        context_with(("x", tool("one")), ("y", [tool("two"), tool("three")]), ("z", []))
    )
    assert [(each.name, each.node_id) for each in found] == [
        ("one", "x"), ("two", "y"), ("three", "y"),
    ]  # fmt: skip


async def test_a_node_without_links_has_no_tools() -> None:
    assert await linked_tools(context_with()) == []


async def test_a_tool_may_name_the_node_that_it_comes_from() -> None:
    (found,) = await linked_tools(context_with(("x", tool("one", node_id="inside"))))
    assert found.node_id == "inside"


async def test_only_tools_of_one_name_get_the_ids_of_their_nodes() -> None:
    links = ("a.1", tool("search")), ("b", [tool("search"), tool("read")])
    assert await names(*links) == ["search_a_1", "search_b", "read"]


async def test_names_have_only_characters_that_models_may_use() -> None:
    assert await names(("x", [tool("files.read/größe"), tool("n" * 80)])) == [
        "files_read_gr__e",
        "n" * 64,
    ]


async def test_a_long_name_keeps_the_id_of_its_node() -> None:
    found = await names(("left", tool("n" * 64)), ("right", tool("n" * 64)))
    assert found == ["n" * 59 + "_left", "n" * 58 + "_right"]


@pytest.mark.parametrize(
    "links",
    [
        [("x", [tool("one"), tool("one")])],
        [("x", tool("one")), ("y", tool("one")), ("z", tool("one_y"))],
        [("x.1", tool("one")), ("x_1", tool("one"))],
    ],
)
async def test_tools_that_cannot_be_told_apart_are_an_error_that_names_both_links(
    links: list[tuple[str, Any]],
) -> None:
    with pytest.raises(NodeError) as caught:
        await linked_tools(context_with(*links))
    assert caught.value.code == "duplicate-tool"
    for source in (links[0][0] if len(links) < 3 else "y", links[-1][0]):
        assert repr(source) in caught.value.message


@pytest.mark.parametrize(
    ("made", "kind"), [("text", "str"), ([tool("a"), {}], "dict"), (None, "NoneType")]
)
async def test_what_is_no_tool_is_an_error_that_names_both_nodes(made: Any, kind: str) -> None:
    with pytest.raises(NodeError) as caught:
        await linked_tools(context_with(("x", made)))
    assert caught.value.code == "channel-mismatch"
    assert caught.value.message == (
        f"node 'x' is linked into 'tools' of 'a', but gives {kind}, which is no tool"
    )


async def test_a_tool_without_a_name_is_an_error() -> None:
    with pytest.raises(NodeError, match="node 'x' gives a tool without a name"):
        await linked_tools(context_with(("x", tool(""))))


async def test_the_number_of_tools_is_limited() -> None:
    limits = Limits(agent_tools=2)
    many = [tool("one"), tool("two"), tool("three")]
    assert len(await linked_tools(context_with(("x", many[:2]), limits=limits))) == 2
    with pytest.raises(LimitExceeded, match="limit agent_tools for the tools of 'a' is 2, met 3"):
        await linked_tools(context_with(("x", many), limits=limits))
