"""An MCP server made with the official SDK whose tools do what tests need.

``python scripted_server.py`` speaks over standard input and output; with ``LISTENING`` in its environment, the
number of a socket, over streamable HTTP. ``MARK`` names a file: the server appends a line for what it does, its
process id first.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("scripted")
MARK = os.environ.get("MARK", os.devnull)


def mark(text: str) -> None:
    """Append a line to the file of marks."""
    with open(MARK, "a") as file:
        file.write(f"{text}\n")


mark(f"pid {os.getpid()}")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False, annotations=ToolAnnotations(idempotent_hint=True))
def save(text: str, idempotency_key: str) -> str:
    """Save a text."""
    mark(f"save {text} {idempotency_key}")
    return f"saved {text}"


@server.tool(structured_output=False)
def fail(text: str) -> str:
    """Fail with a text."""
    raise ToolError(text)


@server.tool(structured_output=False)
async def count(n: int, ctx: Context[Any, Any]) -> str:
    """Count, and say how far it is."""
    for i in range(n):
        await ctx.report_progress(i + 1, n, f"step {i + 1}")
    return f"counted to {n}"


@server.tool(structured_output=False)
async def hang(text: str) -> str:
    """Never answer; mark the start, and the cancellation."""
    mark(f"hang {text}")
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        mark(f"cancelled {text}")
        raise
    return "late"


@server.tool(structured_output=False)
async def die(status: int) -> str:
    """End the process at once."""
    os._exit(status)


@server.tool(structured_output=False)
def long(chars: int) -> str:
    """Return a long text."""
    return "x" * chars


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """Return a text and a picture."""
    return ["seen", Image(data=b"\x89PNG1234", format="png")]


if __name__ == "__main__":
    if "LISTENING" in os.environ:
        import uvicorn  # not needed by the other kind

        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        listening = socket.socket(fileno=int(os.environ["LISTENING"]))
        uvicorn.Server(config).run(sockets=[listening])
    else:
        server.run("stdio")
