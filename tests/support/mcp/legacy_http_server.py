"""An HTTP server that speaks the older MCP with sessions, or answers each request in one wrong way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

TOOL = {"name": "act", "inputSchema": {"type": "object", "properties": {}}}


@dataclass
class LegacyServer:
    """What the server has seen, and what it does next.

    Attributes:
        refuses: Whether it answers calls with the error -32000.
        wrong: A whole response that it gives to each request; None where it answers as it should.
        sessions: The ids of the sessions that it knows.
        calls: The sessions of the calls that it has carried out.
        headers: The heads of all requests, as text.
    """

    url: str = ""
    refuses: bool = False
    wrong: bytes | None = None
    started: int = 0
    sessions: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    def answer(self, head: str, body: bytes) -> bytes:
        """Return the response to a request."""
        self.heads.append(head)
        if self.wrong is not None:
            return self.wrong
        fields = (line.partition(": ") for line in head.split("\r\n")[1:])
        session = next((text for name, _, text in fields if name.lower() == "mcp-session-id"), "")
        message = json.loads(body) if body else {}
        if session and session not in self.sessions:
            return response(b"", status="404 Not Found")
        if "id" not in message:
            return response(b"", status="202 Accepted")
        if self.refuses and message["method"] == "tools/call":
            error = {"code": -32000, "message": "the backend said no"}
            refusal = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            return response(json.dumps(refusal).encode())
        result = self._result_of(message["method"], session)
        if result is None:
            return response(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {
                "code": -32601, "message": "unknown"}}).encode())  # fmt: skip
        extra = ""
        if message["method"] == "initialize":
            self.started += 1
            self.sessions.add(f"s{self.started}")
            extra = f"Mcp-Session-Id: s{self.started}\r\n"
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return response(text.encode(), extra=extra)

    def _result_of(self, method: str, session: str) -> dict[str, Any] | None:
        match method:
            case "initialize":
                info = {"name": "legacy", "version": "1"}
                return {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
            case "tools/list":
                return {"tools": [TOOL]}
            case "tools/call":
                self.calls.append(session)
                return {"content": [{"type": "text", "text": session}]}
        return None


def response(body: bytes, *, status: str = "200 OK", extra: str = "") -> bytes:
    """Return a response with a JSON body."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def legacy_http_server() -> AsyncIterator[LegacyServer]:
    """Serve on loopback."""
    state = LegacyServer()
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lengths = [
                    line for line in head.split("\r\n") if line.lower().startswith("content-l")
                ]
                size = int(lengths[0].partition(":")[2]) if lengths else 0
                writer.write(state.answer(head, await reader.readexactly(size)))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
