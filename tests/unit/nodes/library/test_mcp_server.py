"""The tools that an ``mcp_server`` node gives to agents, and the check of its data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import McpError, NodeError, PermanentError, ToolError
from planwave.graph.model import Json, Node
from planwave.graph.protocols import FlowContext
from planwave.mcp.servers import McpServers
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.library.mcp_server import McpServer
from planwave.nodes.registry import Registry
from tests.support.graph.builders import make_graph
from tests.support.mcp.servers import Marks, hostile_program, scripted_program, servers_of
from tests.support.nodes.node_context import context_for, services_with

NODE = Node("box_tools", "mcp_server", "Tools")


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


def context_with(servers: McpServers) -> FlowContext:
    return context_for(NODE, services=services_with(lambda request: "", mcp=servers)[0])


@asynccontextmanager
async def opened(servers: McpServers, **data: Any) -> AsyncIterator[dict[str, Tool]]:
    made = await McpServer().materialize({"server": "box", **data}, "tools", context_with(servers))
    async with made as tools:
        yield {tool.name: tool for tool in tools}


async def call(tool: Tool, emitted: list[Any] | None = None, **arguments: Json) -> Json:
    events = [] if emitted is None else emitted
    flow = replace(context_with(servers_of()), emit=lambda kind, data: events.append((kind, data)))
    return await tool.call(arguments, ToolCallContext(flow, "call-1", "run/agent/0"))


def findings(
    data: dict[str, Any], servers: tuple[str, ...] | None = ("box", "tickets")
) -> list[Any]:
    """Check a node; what is said of its links is left out."""
    known = None if servers is None else dict.fromkeys(servers)
    registry = Registry([McpServer], mcp_servers=known)
    node = Node("m", "mcp_server", "M", data=data)
    found = registry.check(node, make_graph(node))
    return [each for each in found if each.pointer.startswith("/data/") or each.severity == "error"]


async def test_a_node_gives_the_tools_of_its_server_with_effect_and_approval(marks: Marks) -> None:
    async with opened(servers_of(box={**scripted_program(marks), "trust_hints": True})) as tools:
        add, save, fail = (tools[f"box_{name}"] for name in ("add", "save", "fail"))
        assert (add.effect, save.effect, fail.effect) == ("read", "write", "once")
        assert {tool.approval for tool in tools.values()} == {"write"}
        assert (add.kind, add.node_id) == ("mcp", "box_tools")
        assert add.details == {"server": "box", "tool": "add"}
        assert add.description == "Add two numbers."
        assert set(add.parameters["properties"]) == {"a", "b"}

        assert await call(add, a=1, b=2) == {"result": 3}
        await call(save, text="hello")
        assert "save hello run/agent/0" in marks.lines
        with pytest.raises(ToolError, match="no such order") as caught:
            await call(fail, text="no such order")
        assert caught.value.code == "mcp-tool-error"

        emitted: list[Any] = []
        assert await call(tools["box_count"], emitted, n=3) == "counted to 3"
        event = {"call_id": "call-1", "progress": 1.0, "total": 3.0, "message": "step 1"}
        assert emitted == [("tool_call_progress", event)]
    await marks.all_gone()


async def test_allow_deny_and_prefix_choose_and_name_the_tools(marks: Marks) -> None:
    servers = servers_of(
        box=hostile_program(marks, "plain"), **{"b-2": hostile_program(marks, "x")}
    )
    async with (
        opened(servers, allow=["act"], prefix="mine") as allowed,
        opened(servers, deny=["act"]) as denied,
        opened(servers, prefix="", approval="always", callTimeoutS=5) as plain,
        opened(servers, server="b-2") as other,
    ):
        assert list(allowed) == ["mine_act"]
        assert list(denied) == []
        assert list(other) == ["b-2_act"]
        assert (plain["act"].approval, plain["act"].timeout_s) == ("always", 5)
        assert await call(plain["act"]) == "done"


async def test_a_tool_that_is_allowed_and_not_there_is_an_error(marks: Marks) -> None:
    servers = servers_of(box=hostile_program(marks, "plain"))
    with pytest.raises(McpError) as caught:
        async with opened(servers, allow=["acts"]):
            pass
    assert (caught.value.code, caught.value.hint) == ("unknown-mcp-tool", "did you mean 'act'?")
    await marks.all_gone()


async def test_names_are_made_for_models_and_never_two_the_same(marks: Marks) -> None:
    table = hostile_program(marks, "names")
    async with opened(servers_of(box=table), allow=["a.b", "n" * 80, "n" * 79 + "m"]) as tools:
        dotted, first, second = tools
        assert dotted == "box_a_b"
        assert len(first) == len(second) == 64
        assert first != second
    with pytest.raises(PermanentError, match=r"'a\.b' and 'a_b'") as caught:
        async with opened(servers_of(box=table)):
            pass
    assert caught.value.code == "duplicate-tool"


async def test_a_server_that_does_not_start_fails_the_node_and_may_be_tried_again(
    marks: Marks,
) -> None:
    with pytest.raises(NodeError) as caught:
        async with opened(servers_of(box=hostile_program(marks, "exit"))):
            pass
    assert (caught.value.code, caught.value.retryable) == ("mcp-start-failed", True)


async def test_without_servers_the_error_says_how_to_run_it() -> None:
    context = context_for(NODE, services=services_with(lambda request: "")[0])
    made = await McpServer().materialize({"server": "box"}, "tools", context)
    with pytest.raises(PermanentError) as caught:
        async with made:
            pass
    assert caught.value.code == "no-mcp"


# -- the check


@pytest.mark.parametrize(
    ("server", "hint"),
    [
        ("ticket", "did you mean 'tickets'?"),
        ("zzz", "there are: box, tickets; the operator sets one up with a table [mcp.zzz]"),
    ],
)
def test_an_unknown_server_is_found_with_the_nearest_name_or_the_way_to_set_it_up(
    server: str, hint: str
) -> None:
    (found,) = findings({"server": server})
    assert (found.code, found.pointer) == ("unknown-mcp-server", "/data/server")
    assert hint in found.hint
    is_near = server == "ticket"
    assert (found.suggestion is not None) == is_near


def test_a_tool_that_is_allowed_and_denied_is_found() -> None:
    (found,) = findings({"server": "box", "allow": ["a", "b"], "deny": ["b"]})
    assert (found.code, found.pointer) == ("invalid-data", "/data/deny")
    assert findings({"server": "box", "allow": ["a"], "deny": ["b"]}) == []


def test_the_names_of_its_tools_are_known_before_a_run_where_the_node_lists_them() -> None:
    data = {"server": "box", "allow": ["a.b", "c", "d"], "deny": ["d"]}
    assert McpServer().tool_names(data) == ["box_a_b", "box_c"]
    assert McpServer().tool_names(data | {"prefix": ""}) == ["a_b", "c"]
    assert McpServer().tool_names({"server": "box"}) == []
    assert McpServer().tool_names({"server": 5}) == ()


def test_without_settings_no_server_is_looked_up() -> None:
    assert findings({"server": "any"}, servers=None) == []
