"""Programs that misbehave: none of them hangs a call, fills the memory, or stays behind."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import LimitExceeded, McpError
from planwave.mcp.servers import ServerReport
from tests.support.mcp.servers import (
    Marks,
    hostile_program,
    no_progress,
    servers_of,
)


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


async def start_failure(table: dict[str, Any], **limits: Any) -> McpError:
    with pytest.raises(McpError) as caught:
        async with servers_of(limits, box=table).connection("box"):
            pass
    assert caught.value.code == "mcp-start-failed"
    return caught.value


async def call(marks: Marks, mode: str, **limits: Any) -> Any:
    async with servers_of(limits, box=hostile_program(marks, mode)).connection("box") as connection:
        tool = connection.listed.tools["act"]
        return await connection.call(tool, {}, key="k", progress=no_progress)


async def test_other_output_between_messages_is_put_up_with(marks: Marks) -> None:
    assert await call(marks, "babble") == "done"


async def test_half_of_a_character_in_a_result_is_a_question_mark(marks: Marks) -> None:
    assert await call(marks, "halves") == "half ? of it"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("greets", "its answer does not follow the protocol: capabilities is required"),
        ("ancient", "Unsupported protocol version from the server: 1999-01-01"),
    ],
)
async def test_a_start_that_breaks_the_protocol_says_how(
    marks: Marks, mode: str, reason: str
) -> None:
    assert reason in (await start_failure(hostile_program(marks, mode))).message
    await marks.all_gone()


@pytest.mark.slow
async def test_a_message_without_end_ends_the_connection(marks: Marks) -> None:
    with pytest.raises(McpError, match="a message of more than 16777216 bytes") as caught:
        await call(marks, "endless")
    assert caught.value.code == "mcp-connection-lost"
    await marks.all_gone()


@pytest.mark.slow
async def test_a_flood_of_messages_ends_with_the_time_of_the_call(marks: Marks) -> None:
    with pytest.raises(McpError) as caught:
        await call(marks, "chatty", mcp_call_s=0.3)
    assert caught.value.code == "mcp-timeout"
    await marks.all_gone()


async def test_an_answer_that_breaks_the_protocol_says_where(marks: Marks) -> None:
    with pytest.raises(McpError, match="protocol: tools has to be an array") as caught:
        await call(marks, "unlisted")
    assert caught.value.code == "mcp-invalid-answer"
    await marks.all_gone()


async def test_a_tool_that_breaks_the_protocol_is_mended_or_left_out_and_the_others_can_be_used(
    marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    servers = servers_of(box=hostile_program(marks, "untyped"))
    said = (
        "the tool 'bare' does not follow the protocol: inputSchema has to be an object, not an array",
        "the tool '' does not follow the protocol: name is required",
        "the tool '' does not follow the protocol: it has to be an object, not text",
    )
    async with servers.connection("box") as connection:
        assert list(connection.listed.tools) == ["bare", "act"]
        assert connection.listed.tools["bare"].parameters == {"type": "object"}
        assert connection.listed.problems == said
    assert [line for line in caplog.messages if "left out" in line] == [
        f"MCP server box: {each}; it is left out" for each in said
    ]
    assert await call(marks, "untyped") == "done"
    assert await servers.report("box") == ServerReport("box", "stdio", 2, "; ".join(said))
    with pytest.raises(LimitExceeded, match="met 5"):
        await call(marks, "untyped", mcp_tools=4)
    await marks.all_gone()


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"command": "no-such-program-here"}, "No such file or directory"),
        ({"command": sys.executable, "cwd": "/no/such/directory"}, "No such file or directory"),
        ({"command": "/"}, "Permission denied"),
    ],
)
async def test_a_program_that_cannot_be_started_says_why(table: Any, reason: str) -> None:
    assert reason in (await start_failure(table)).message


async def test_a_program_that_exits_says_how_and_what_it_wrote_last(
    marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    error = await start_failure(hostile_program(marks, "exit"))
    assert "its program exited with status 7 (it wrote: cannot read [31m the file)" in error.message
    assert "MCP server box: cannot read [31m the file" in caplog.messages


async def test_a_program_gets_the_named_variables_and_a_few_usual_ones(
    marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-servers")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    table = hostile_program(marks, "environment", OWN="1") | {"pass_env": ["GIVEN"]}
    environment = {"GIVEN": "2", "OTHER": "3"}
    async with servers_of(environment=environment, box=table).connection("box") as connection:
        tool = connection.listed.tools["act"]
        names = await connection.call(tool, {}, key="k", progress=no_progress)
    assert isinstance(names, str)
    usual = {"HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "USER"}
    usual |= {"LANGUAGE", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
    assert set(names.split()) - usual == {"GIVEN", "OWN"}


async def test_values_of_variables_are_in_no_log_and_no_error(
    marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table = hostile_program(marks, "leak", SECRET="hunter-2-hunter")
    async with servers_of(box=table).connection("box") as connection:
        tool = connection.listed.tools["act"]
        with pytest.raises(McpError, match=r"bad value \[secret SECRET\]"):
            await connection.call(tool, {}, key="k", progress=no_progress)
    assert any("the value is [secret " in line for line in caplog.messages)
    assert "hunter-2" not in caplog.text
    assert "hunter-2" not in repr(servers_of(box=table)._tables)


async def test_a_program_that_ends_with_every_call_is_given_up(marks: Marks) -> None:
    codes: list[str] = []
    async with servers_of(box=hostile_program(marks, "dies")).connection("box") as connection:
        tool = connection.listed.tools["act"]
        for _ in range(7):
            with pytest.raises(McpError) as caught:
                await connection.call(tool, {}, key="k", progress=no_progress)
            codes.append(caught.value.code)
    assert codes == ["mcp-connection-lost"] * 6 + ["mcp-unavailable"]
    assert not caught.value.retryable
    assert len(marks.pids) == 6  # connected again five times


async def test_closing_twenty_connections_at_once_leaves_nothing(marks: Marks) -> None:
    async def use() -> None:
        assert await call(marks, "plain") == "done"

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(use())
    await marks.all_gone()
    assert len(marks.pids) == 20
