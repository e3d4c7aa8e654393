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


async def test_a_tool_that_models_cannot_be_given_is_left_out_and_odd_schemas_are_adapted(
    marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    table = McpServerSettings(**hostile_program(marks, "odd"))
    servers = open_mcp_servers(Settings(mcp={"box": table}))
    async with servers.connection("box") as connection:
        assert list(connection.listed.tools) == ["act", "too_long", "bad_schema", "leads_out"]
        assert len(connection.listed.problems) == 1
        assert len(connection.listed.notes) == 3
    assert sum("it is left out" in line for line in caplog.messages) == 1
    assert sum("is offered without" in line for line in caplog.messages) == 3


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


async def test_a_list_that_leads_back_to_itself_is_read_once(marks: Marks) -> None:
    table = hostile_program(marks, "circles")
    async with servers_of(box=table).connection("box") as connection:
        assert list(connection.listed.tools) == ["act"]
        assert connection.listed.problems == ()
        assert connection.listed.notes == (
            "its list of tools leads back to the page 'again'; the rest was not read",
        )


async def test_the_code_of_a_closed_connection_is_a_refusal_while_the_session_goes_on(
    marks: Marks,
) -> None:
    async with servers_of(box=hostile_program(marks, "refuses")).connection("box") as connection:
        for _ in range(2):
            with pytest.raises(McpError) as caught:
                await call(connection, "act")
            assert (caught.value.code, caught.value.message) == (
                "mcp-call-failed",
                "the MCP server 'box' refused the call: the backend said no",
            )
    assert len(marks.pids) == 1


async def test_a_result_of_several_mib_is_cut_and_not_lost(marks: Marks) -> None:
    async with servers_of(box=hostile_program(marks, "large")).connection("box") as connection:
        found = await call(connection, "act")
    assert found.startswith("xxx")
    assert "the result has 5242882 bytes" in found
    assert len(found) < 1024 * 1024
