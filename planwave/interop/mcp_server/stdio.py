"""The MCP server on standard input and output; what answers may change while it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types
from mcp.server.stdio import stdio_server

from planwave.interop.mcp_server.protocol import Handlers, Request, ToolChanges, sdk_server

if TYPE_CHECKING:
    import anyio

_CHUNK_BYTES: Final = 65_536
_Page = mcp_types.PaginatedRequestParams | None


class StdioServer:
    """The server for the one client that has started this process.

    Requests wait until ``answer_with`` says what answers them.

    Attributes:
        changes: Tells the client that the tools may have changed.
        is_over: Set when the client has closed the input.
    """

    def __init__(self) -> None:
        self.changes = ToolChanges()
        self.is_over = asyncio.Event()
        self._handlers: asyncio.Future[Handlers] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve until the client closes the input."""
        server = sdk_server(self, self.changes)
        try:
            stdin = cast("anyio.AsyncFile[str]", _InputLines())
            async with stdio_server(stdin=stdin) as (requests, responses):
                await server.run(requests, responses, server.create_initialization_options())
        finally:
            self.is_over.set()

    def answer_with(self, handlers: Handlers | None) -> None:
        """Answer requests with these handlers from now on; None holds them back."""
        if self._handlers.done():
            self._handlers = asyncio.get_running_loop().create_future()
        if handlers is not None:
            self._handlers.set_result(handlers)

    async def list_tools(self, context: Request, params: _Page) -> mcp_types.ListToolsResult:
        return await (await self._ready()).list_tools(context, params)

    async def call_tool(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        return await (await self._ready()).call_tool(context, params)

    async def cancelled(
        self, context: Request, params: mcp_types.CancelledNotificationParams
    ) -> None:
        await (await self._ready()).cancelled(context, params)

    async def list_resources(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourcesResult:
        return await (await self._ready()).list_resources(context, params)

    async def list_templates(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourceTemplatesResult:
        return await (await self._ready()).list_templates(context, params)

    async def read_resource(
        self, context: Request, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        return await (await self._ready()).read_resource(context, params)

    async def _ready(self) -> Handlers:
        while True:
            waiting: asyncio.Future[Any] = self._handlers
            if waiting.done():
                return waiting.result()
            await asyncio.wait([waiting])


class _InputLines:
    """The lines of standard input, read by a thread that ends with the process.

    The SDK's own reader cannot be cancelled while it waits, so a signal would not stop the process.
    Other readers of standard input see its end.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        own, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        Thread(target=self._read, args=(own,), name="stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncGenerator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    def _read(self, file: int) -> None:
        begun = b""
        while chunk := os.read(file, _CHUNK_BYTES):
            *lines, begun = (begun + chunk).split(b"\n")
            for line in lines:
                self._pass_on(line.decode(errors="replace"))
        if begun:
            self._pass_on(begun.decode(errors="replace"))
        self._pass_on(None)

    def _pass_on(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
