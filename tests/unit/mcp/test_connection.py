"""The list of tools of a connection, its limit, and what is checked when it is connected again."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from planwave.bootstrap import open_mcp_servers
from planwave.errors import LimitExceeded, McpError
from planwave.mcp.connection import Connection
from planwave.settings import McpServerSettings, Settings
from tests.support.mcp.servers import Marks, hostile_program, no_progress, servers_of
from tests.support.polling import until


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


async def call(connection: Connection, tool: str) -> Any:
    tools = connection.listed.tools
    return await connection.call(tools[tool], {}, key="k", progress=no_progress)


async def test_more_tools_than_the_limit_are_refused(marks: Marks) -> None:
    table = hostile_program(marks, "many")
    with pytest.raises(LimitExceeded, match=r"limit mcp_tools .*'box' is 200, met 201"):
        async with servers_of(box=table).connection("box"):
            pass
    async with servers_of({"mcp_tools": 300}, box=table).connection("box") as connection:
        assert len(connection.listed.tools) == 201
    await marks.all_gone()


async def test_tools_that_models_cannot_be_given_are_left_out(
    marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    table = McpServerSettings(**hostile_program(marks, "odd"))
    servers = open_mcp_servers(Settings(mcp={"box": table}))
    async with servers.connection("box") as connection:
        assert list(connection.listed.tools) == ["act"]
        assert len(connection.listed.problems) == 4
    assert sum("it is left out" in line for line in caplog.messages) == 4


async def test_a_tool_that_has_changed_while_the_server_was_away_is_not_called(
    marks: Marks,
) -> None:
    table = hostile_program(marks, "renamed")
    async with servers_of(box=table).connection("box") as connection:
        os.kill(marks.pids[0], signal.SIGKILL)
        await until(lambda: not connection.is_connected)
        for name in ("old", "changed"):
            with pytest.raises(McpError, match=f"has no tool '{name}' as it was") as caught:
                await call(connection, name)
            assert (caught.value.code, caught.value.retryable) == ("mcp-tool-changed", False)
        assert await call(connection, "act") == "done"
        assert len(marks.pids) == 2
