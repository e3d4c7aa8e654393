"""The first use of the SDK of MCP: it is imported, and its models are built, which takes a second or more.

Pydantic builds the models of the protocol when a message of theirs is first read. So a session is held once with a
server that is a function, in a thread, before the first real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

# Imported with this module, so that the first real session imports nothing.
from planwave.mcp import address, program
from planwave.mcp.connection import Connection
from planwave.mcp.session import Session

LOADED: Final = (address, program)
_TOOL: Final[Mapping[str, Any]] = {
    "name": "act",
    "description": "Acts.",
    "inputSchema": {"type": "object", "properties": {}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
_RESULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "tools/list": {"tools": [_TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "done"}], "structuredContent": {}},
}


def build_models() -> None:
    """Build the models of the protocol; call it in a thread."""
    asyncio.run(_hold_session())


async def _hold_session() -> None:
    async with Connection("first", _transport) as connection:
        await connection.call(connection.listed.tools["act"], {}, key="k", progress=_ignore)


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Ignore how far the call is."""


@asynccontextmanager
async def _transport(session: Session) -> AsyncGenerator[Any]:
    to_client, incoming = anyio.create_memory_object_stream[Any](8)
    outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](8)
    async with anyio.create_task_group() as group, to_client, incoming, outgoing, from_client:
        group.start_soon(_answer, from_client, to_client)
        yield incoming, outgoing
        group.cancel_scope.cancel()


async def _answer(
    requests: MemoryObjectReceiveStream[SessionMessage], answers: MemoryObjectSendStream[Any]
) -> None:
    async for item in requests:
        message = item.message
        if not isinstance(message, mcp_types.JSONRPCRequest):
            continue
        result = _RESULTS.get(message.method)
        if message.method == "initialize":
            version = (message.params or {}).get("protocolVersion")
            info = {"name": "first", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        unknown = {"error": {"code": -32601, "message": "unknown"}}
        rest = unknown if result is None else {"result": result}
        text = mcp_types.jsonrpc_message_adapter.validate_python(
            {"jsonrpc": "2.0", "id": message.id, **rest}, by_name=False
        )
        await answers.send(SessionMessage(text))
