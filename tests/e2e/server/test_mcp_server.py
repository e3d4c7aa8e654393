"""planwave as an MCP server in processes of its own: killed, left by its client, beside a service."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from tests.support.cli.command_process import PLANWAVE, isolated_directory, run_command
from tests.support.mcp.planwave_server import call, fail
from tests.support.paths import ROOT
from tests.support.polling import until
from tests.support.server.server_process import ServerProcess, start_server

NODES = """
import asyncio
from pathlib import Path
import planwave

@planwave.node(effect="none")
async def sleeps() -> str:
    Path("begun").touch()
    while not Path("woken").exists():
        await asyncio.sleep(0.01)
    return "rested"
"""


@asynccontextmanager
async def stdio(directory: Path, *more: str) -> AsyncGenerator[Client]:
    """Start ``planwave mcp`` as MCP clients do."""
    started = StdioServerParameters(
        command=sys.executable,
        args=["-c", PLANWAVE, "mcp", "--storage", str(directory), *more],
        cwd=directory.parent,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{directory.parent}"},
    )
    async with Client(stdio_client(started)) as client:
        yield client


async def newest(client: Client) -> str:
    """Return the id of the newest execution, from the list of resources."""
    return (await client.list_resources()).resources[0].uri.split("/")[3]


async def test_execution_of_a_call_continues_after_the_server_was_killed(tmp_path: Path) -> None:
    arguments = {"goal": "naps", "idempotency_key": "k1"}
    with start_server(tmp_path) as server:
        killed = _killer(server)
        with suppress(Exception):
            async with Client(f"{server.url}/mcp") as client:
                with pytest.raises(MCPError):
                    await client.call_tool("run", arguments, progress_callback=killed)
        assert server.wait_for_exit() == -signal.SIGKILL
    with start_server(tmp_path) as server:
        async with Client(f"{server.url}/mcp") as client:
            own = await newest(client)
            assert (await call(client, "status", execution_id=own))["status"] == "executing"
            again = await call(client, "run", **arguments, wait_s=0)
            assert again["execution_id"] == own
            server.release_nodes()
            done = await call(client, "result", execution_id=own, wait_s=60)
            assert done["node_results"] == {"n": "rested", "after": "after"}


def _killer(server: ServerProcess):  # type: ignore[no-untyped-def]
    async def kill(number: float, total: float | None, message: str | None) -> None:
        if message == "Wave 1 of 2: n":
            server.signal(signal.SIGKILL)

    return kill


@pytest.mark.slow  # a process takes three seconds; the page and the bridge have tests that are quicker
async def test_command_runs_alone_and_then_with_the_service_that_holds_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    storage = tmp_path / "storage"
    with start_server(storage) as server:
        async with stdio(storage) as client:
            done = await call(client, "run", goal="texts")
            assert done["result"] == "two"
            server.signal(signal.SIGTERM)
            assert server.wait_for_exit() == 0
            # It opens the directory itself now; a call that comes meanwhile waits, or says what to do.
            found = await client.call_tool("result", {"execution_id": done["execution_id"]})
            if found.is_error:
                found = await client.call_tool("result", {"execution_id": done["execution_id"]})
            assert found.structured_content["result"] == "two"
            assert "give one of goal" in await fail(client, "run")


@pytest.mark.slow
async def test_execution_continues_after_the_client_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_LIMIT_DRAIN_S", "0.2")
    (tmp_path / "own_nodes.py").write_text(NODES)
    storage = tmp_path / "storage"
    graph = {"nodes": [{"id": "s", "type": "sleeps"}], "edges": []}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    saved = run_command("--import", "own_nodes", "flow", "save", "naps", "graph.json")
    assert saved.returncode == 0, saved.stderr
    async with stdio(storage, "--import", "own_nodes") as client:
        own = (await call(client, "run", flow="naps", wait_s=0))["execution_id"]
        await until((tmp_path / "begun").exists)
    async with stdio(storage, "--import", "own_nodes") as client:
        assert (await call(client, "status", execution_id=own))["status"] == "executing"
        (tmp_path / "woken").touch()
        done = await call(client, "result", execution_id=own, wait_s=60)
        assert done["result"] == "rested"
