"""Limits of MCP servers, with servers inside this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

# The SDK has no public transport to a server in the same process.
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer

from planwave.mcp.connection import Connection, ConnectionLimits
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import Refusal, case
from tests.support.mcp.servers import no_progress


async def _call(limits: Limits, server: MCPServer, **arguments: int) -> Any:
    """Connect to a server and call its tool ``act``, if it has one; give its result."""
    limited = ConnectionLimits.of(limits)
    async with Connection("box", lambda session: InMemoryTransport(server), limited) as connection:
        tool = connection.listed.tools.get("act")
        if tool is not None:
            return await connection.call(tool, arguments, key="k", progress=no_progress)
    return None


@case("mcp_connect_s", 20, at=19, past=21, code="mcp-start-failed", virtual=True, mentions=["20 s"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    @asynccontextmanager
    async def start(server: MCPServer) -> AsyncIterator[Any]:
        await asyncio.sleep(amount)
        yield None

    await _call(limits, MCPServer("slow", lifespan=start))
    return None


@case(
    "mcp_call_s", 20, at=19, past=21, code="mcp-timeout", virtual=True,
    mentions=["20 s", "mcp_call_s"],
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    server = MCPServer("slow")

    @server.tool(structured_output=False)
    async def act(seconds: int) -> str:
        await asyncio.sleep(seconds)
        return "done"

    await _call(limits, server, seconds=amount)
    return None


@case("mcp_result_bytes", 1000, code="cut")
async def _(limits: Limits, amount: int) -> Refusal | None:
    server = MCPServer("long")

    @server.tool(structured_output=False)
    def act(size: int) -> str:
        return "x" * (size - len('""'))

    found = await _call(limits, server, size=amount)
    return Refusal("cut", found) if "[cut: " in found else None


@case("mcp_tools", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    server = MCPServer("many")
    for number in range(amount):
        server.tool(name=f"tool_{number}")(lambda: "")
    await _call(limits, server)
    return None
