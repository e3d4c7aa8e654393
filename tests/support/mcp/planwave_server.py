"""planwave as the MCP server of a test, with the official client."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from tests.support.server.in_process_client import InProcessClient
from tests.support.server.running_server import RunningServer

MODES = ("auto", "legacy")
"""``auto`` finds 2026-07-28, which has no sessions; ``legacy`` is 2025-11-25, which has."""
SESSION_HEADER = "mcp-session-id"


@asynccontextmanager
async def mcp_client(
    server: RunningServer, mode: Any = "auto", token: str = "", **more: Any
) -> AsyncGenerator[Client]:
    """Connect the official client to a running server, with its token or another one."""
    headers = {"Authorization": f"Bearer {token}"} if token else server.headers
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{server.base_url}/mcp", http_client=http)
        async with Client(transport, mode=mode, **more) as own:
            yield own


async def mcp_session(calls: InProcessClient, credential: dict[str, str]) -> dict[str, str]:
    """Begin a session in process, with the headers of a credential; return those of its requests."""
    headers = {**credential, "accept": "application/json, text/event-stream"}
    handshake = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }  # fmt: skip
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake}
    answer = await calls.post("/mcp", json=opening, headers=headers)
    headers[SESSION_HEADER] = answer.headers[SESSION_HEADER]
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await calls.post("/mcp", json=begun, headers=headers)
    return headers


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool that succeeds; give its structured result."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def fail(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails; give the sentence."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return text_of(result)


def text_of(result: mcp_types.CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text
