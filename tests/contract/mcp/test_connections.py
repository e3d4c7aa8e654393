"""Connections to real servers, made with the official SDK: as a program, and over streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import McpError, PlanwaveError
from planwave.mcp.connection import Connection
from tests.support.mcp.servers import (
    HttpServer,
    Marks,
    http_server,
    no_progress,
    scripted_program,
    servers_of,
)
from tests.support.polling import until


class Server:
    """A scripted server of either kind."""

    def __init__(self, marks: Marks, http: HttpServer | None) -> None:
        self.marks = marks
        self.http = http

    @asynccontextmanager
    async def connected(self, **limits: Any) -> AsyncIterator[Connection]:
        table = scripted_program(self.marks) if self.http is None else self.http.table
        async with servers_of(limits, box=table).connection("box") as connection:
            yield connection

    def kill(self) -> None:
        os.kill(self.marks.pids[-1], signal.SIGKILL)
        if self.http is not None:
            self.http.stop()

    def restart(self) -> None:
        """Start it again where nobody else does."""
        if self.http is not None:
            self.http.stop()
            self.http.start()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    marks = Marks(tmp_path / "marks")
    if request.param == "stdio":
        yield Server(marks, None)
        return
    with http_server(marks) as http:
        yield Server(marks, http)


async def call(
    connection: Connection, tool: str, timeout_s: float | None = None, **args: Any
) -> Any:
    return await connection.call(
        connection.listed.tools[tool], args, key="key-1", progress=no_progress, timeout_s=timeout_s
    )


async def failure(connection: Connection, tool: str, **args: Any) -> PlanwaveError:
    with pytest.raises(PlanwaveError) as caught:
        await call(connection, tool, **args)
    return caught.value


async def test_a_server_lists_its_tools_and_they_answer(server: Server) -> None:
    async with server.connected(mcp_result_bytes=1000) as connection:
        tools = connection.listed.tools
        assert (tools["add"].reads_only, tools["save"].is_repeatable) == (True, True)
        assert (tools["fail"].reads_only, tools["fail"].is_repeatable) == (False, False)
        assert tools["add"].description == "Add two numbers."
        assert await call(connection, "add", a=1, b=2) == {"result": 3}
        assert await call(connection, "picture") == {
            "content": [
                {"type": "text", "text": "seen"},
                {"type": "image", "mimeType": "image/png", "bytes": 8},
            ]
        }
        assert list(tools["save"].parameters["properties"]) == ["text"]
        assert await call(connection, "save", text="a") == "saved a"
        assert "save a key-1" in server.marks.lines

        failed = await failure(connection, "fail", text="no such order")
        assert (failed.code, "no such order" in failed.message) == ("mcp-tool-error", True)
        assert await call(connection, "long", chars=998) == "x" * 998
        assert "limit mcp_result_bytes" in await call(connection, "long", chars=999)


@pytest.mark.slow
async def test_a_call_says_how_far_it_is(server: Server) -> None:
    said: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, total, message))

    async with server.connected() as connection:
        tool = connection.listed.tools["count"]
        answer = await connection.call(tool, {"n": 3}, key="k", progress=note)
    assert answer == "counted to 3"
    assert said == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.slow
async def test_a_cancelled_call_and_one_out_of_time_end_on_the_server_too(server: Server) -> None:
    async with server.connected() as connection:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(call(connection, "hang", text="first"))
            await server.marks.seen("hang first")
            waiting.cancel()
        await server.marks.seen("cancelled first")

        late = await failure(connection, "hang", timeout_s=0.2, text="second")
        assert late.code == "mcp-timeout"
        await server.marks.seen("cancelled second")
        assert await call(connection, "add", a=1, b=1) == {"result": 2}
        assert len(server.marks.pids) == 1


@pytest.mark.slow
async def test_when_a_server_dies_the_calls_in_flight_fail_and_the_next_call_connects_again(
    server: Server,
) -> None:
    async with server.connected() as connection:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(failure(connection, "hang", text="a"))
            await server.marks.seen("hang a")
            died = group.create_task(failure(connection, "die", status=3))
        assert {waiting.result().code, died.result().code} == {"mcp-connection-lost"}
        if server.http is None:
            assert "exited with status 3" in died.result().message
        server.restart()
        assert await call(connection, "add", a=1, b=2) == {"result": 3}
        assert server.marks.lines.count("hang a") == 1


@pytest.mark.slow
async def test_a_server_that_is_killed_between_two_calls_costs_no_call(server: Server) -> None:
    async with server.connected() as connection:
        await call(connection, "add", a=1, b=2)
        server.kill()
        if server.http is None:
            await until(lambda: not connection.is_connected)
        server.restart()
        assert await call(connection, "add", a=1, b=2) == {"result": 3}
        assert len(server.marks.pids) == 2


@pytest.mark.slow
@pytest.mark.parametrize("server", ["http"], indirect=True)
async def test_a_server_that_stays_away_is_given_up(server: Server) -> None:
    """A program that ends again and again is given up too: ``tests/unit/mcp/test_program.py``."""
    async with server.connected() as connection:
        server.kill()
        lost = await failure(connection, "add", a=1, b=2)
        assert lost.code == "mcp-connection-lost"
        for _ in range(4):
            assert (await failure(connection, "add", a=1, b=2)).code == "mcp-start-failed"
        for _ in range(2):
            given_up = await failure(connection, "add", a=1, b=2)
        assert given_up.code == "mcp-unavailable"
        assert not given_up.retryable


async def test_nothing_is_left_of_a_program_after_its_connection_was_closed(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    server = Server(marks, None)
    async with server.connected() as connection:
        await call(connection, "add", a=1, b=2)
        (pid,) = marks.pids
    await marks.all_gone()
    assert pid not in (int(each) for each in os.listdir("/proc") if each.isdecimal())
    with pytest.raises(McpError, match="the run has ended"):
        await call(connection, "add", a=1, b=2)


@pytest.mark.slow
async def test_a_cancelled_run_ends_the_program_and_its_calls(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")

    async def run() -> None:
        async with Server(marks, None).connected() as connection:
            await call(connection, "hang", text="x")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run())
        await marks.seen("hang x")
        running.cancel()
    await marks.all_gone()
    assert running.cancelled()
