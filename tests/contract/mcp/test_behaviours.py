"""The lines about the behaviour of MCP servers in the shared collection, each by its id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import McpError, PermanentError
from planwave.graph.model import Node
from planwave.nodes.agents.linked_tools import with_unique_names
from planwave.nodes.agents.tool import Tool
from planwave.nodes.library.mcp_server import McpServer
from tests.support.graph.bad_inputs import bad_inputs
from tests.support.mcp.servers import Marks, hostile_program, servers_of
from tests.support.nodes.node_context import context_for, services_with

LINES = [line for line in bad_inputs() if line["area"] == "mcp-behaviour"]


async def test_tools_of_one_name_from_two_servers_are_told_apart(marks: Marks) -> None:
    """MCP-439: they begin with the name of their server; what still collides is an error."""
    tables = {name: hostile_program(marks, "plain") for name in ("files", "web")}
    services = services_with(lambda request: "", mcp=servers_of(**tables))[0]

    async def tools_of(server: str, stack: AsyncExitStack, **data: Any) -> list[Tool]:
        context = context_for(Node(f"n-{server}", "mcp_server", server), services=services)
        data = {"server": server, **data}
        return await stack.enter_async_context(
            await McpServer().materialize(data, "tools", context)
        )

    async with AsyncExitStack() as stack:
        named = [*await tools_of("files", stack), *await tools_of("web", stack)]
        assert [tool.name for tool in with_unique_names(named, "agent")] == ["files_act", "web_act"]
        bare = [
            *await tools_of("files", stack, prefix=""),
            *await tools_of("web", stack, prefix=""),
        ]
        told_apart = with_unique_names(bare, "agent")
        assert [tool.name for tool in told_apart] == ["act_n-files", "act_n-web"]
        with pytest.raises(PermanentError, match="two tools of the name 'act_n'"):
            with_unique_names([replace(tool, node_id="n") for tool in bare], "agent")


async def test_a_server_that_never_answers_is_killed_with_its_group(marks: Marks) -> None:
    """MCP-442."""
    servers = servers_of({"mcp_connect_s": 0.5}, box=hostile_program(marks, "silent"))
    with pytest.raises(McpError) as caught:
        async with servers.connection("box"):
            pass
    assert caught.value.code == "mcp-start-failed"
    assert "did not answer within 0.5 s" in caught.value.message
    await marks.all_gone()
    assert len(marks.pids) == 1


async def test_a_child_that_outlives_its_server_ends_with_the_run(marks: Marks) -> None:
    """MCP-445."""
    async with servers_of(box=hostile_program(marks, "fork")).connection("box"):
        pass
    await marks.all_gone()
    assert len(marks.pids) == 2


TESTS: dict[str, Callable[[Marks], Awaitable[None]]] = {
    str(test.__doc__)[:7]: test
    for test in (
        test_tools_of_one_name_from_two_servers_are_told_apart,
        test_a_server_that_never_answers_is_killed_with_its_group,
        test_a_child_that_outlives_its_server_ends_with_the_run,
    )
}


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


@pytest.mark.skipif(not LINES, reason="no shared collection")
def test_each_line_of_the_collection_has_its_test() -> None:
    assert {line["id"] for line in LINES} == TESTS.keys()
