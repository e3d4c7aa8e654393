"""Requests passed on to the MCP server of the process that owns the storage directory.

Each request opens a session, so a service that was started again is found. A call that its
client cancels is cancelled there too; where the client or this process is gone, it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import httpx2
import mcp_types
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from planwave.errors import Unreachable
from planwave.interop.mcp_server.protocol import Request, ToolChanges
from planwave.interop.mcp_server.results import error_result

_Result = TypeVar("_Result")
_Page = mcp_types.PaginatedRequestParams | None
_CANCEL_S: Final = 10.0
"""How long a cancellation may take to reach the service, in seconds."""
_CLOSE_S: Final = 1.0
_TIMEOUT: Final = httpx2.Timeout(None, connect=10.0)
_CALL_RESULT: Final = TypeAdapter(mcp_types.CallToolResult)


class Bridge:
    """Answers requests with the MCP server at a URL, see ``Handlers``; an async context manager.

    Args:
        url: The address of the service.
        token: Its bearer token.
        changes: Where a change of its tools is announced.

    Attributes:
        is_lost: Set when the service cannot be reached any more.
        was_connected: Whether it could be reached before.
    """

    def __init__(self, url: str, token: str | None, changes: ToolChanges) -> None:
        self._url = f"{url}/mcp"
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._changes = changes
        self._connections = set[httpx2.AsyncClient]()
        self._calls: dict[str, asyncio.Task[mcp_types.CallToolResult]] = {}
        self._listening: asyncio.Task[None] | None = None
        self.is_lost = asyncio.Event()
        self.was_connected = False

    async def __aenter__(self) -> Bridge:
        self._listening = asyncio.get_running_loop().create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        # Without a connection no call can be cancelled: their executions go on.
        for each in list(self._connections):
            await each.aclose()
        if self._calls:
            waited = await asyncio.wait(self._calls.values(), timeout=_CLOSE_S)
            for call in waited[1]:
                call.cancel()

    async def list_tools(self, context: Request, params: _Page) -> mcp_types.ListToolsResult:
        return await self._read(lambda session: session.list_tools(params=params))

    async def call_tool(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        key = str(context.request_id)
        # A task of its own: it is cancelled by a notification only.
        call = asyncio.get_running_loop().create_task(self._call(context, params))
        self._calls[key] = call
        call.add_done_callback(lambda _: self._calls.pop(key, None))
        return await asyncio.shield(call)

    async def cancelled(
        self, context: Request, params: mcp_types.CancelledNotificationParams
    ) -> None:
        call = self._calls.get(str(params.request_id))
        if call is not None:
            call.cancel()

    async def list_resources(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourcesResult:
        return await self._read(lambda session: session.list_resources(params=params))

    async def list_templates(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourceTemplatesResult:
        return await self._read(lambda session: session.list_resource_templates(params=params))

    async def read_resource(
        self, context: Request, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        return await self._read(lambda session: session.read_resource(params.uri))

    async def _call(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(name=params.name, arguments=params.arguments)
        )
        report = context.session.report_progress
        try:
            # Not session.call_tool(): that lists the tools, to check the result.
            return await self._ask(
                lambda session: session.send_request(
                    request, _CALL_RESULT, progress_callback=report
                )
            )
        except Unreachable as error:
            return error_result(error)

    async def _read(self, ask: Callable[[ClientSession], Awaitable[_Result]]) -> _Result:
        """Make a request that is no call; every failure is an error of the protocol."""
        try:
            return await self._ask(ask)
        except Unreachable as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, f"{error.message}; {error.hint}") from error

    async def _ask(self, ask: Callable[[ClientSession], Awaitable[_Result]]) -> _Result:
        """Make a request in a new session.

        Raises:
            Unreachable: The service has ended, or ends now.
            MCPError: The service has refused the request.
        """
        answer: list[_Result | MCPError] = []
        # The SDK raises what its transports raise, alone or in groups, also after the answer.
        with suppress(Exception):
            async with self._session("legacy") as client:
                try:
                    answer.append(await ask(client.session))
                except asyncio.CancelledError:
                    # The SDK posts the cancellation in the background, before any later request. An
                    # answer to a ping shows that the service has it, so that the session may end.
                    with suppress(Exception):
                        async with asyncio.timeout(_CANCEL_S):
                            await client.session.send_ping()
                    raise
                except MCPError as error:
                    if error.code != mcp_types.CONNECTION_CLOSED:
                        answer.append(error)
        if not answer:
            self.is_lost.set()
            error = Unreachable("the planwave process that was to do this has ended")
            error.hint = "an execution that it has begun continues: see its status, then call again"
            raise error
        if isinstance(answer[0], MCPError):
            raise answer[0]
        return answer[0]

    @asynccontextmanager
    async def _session(self, mode: Any) -> AsyncGenerator[Client]:
        async with httpx2.AsyncClient(
            headers=self._headers, timeout=_TIMEOUT, trust_env=False
        ) as http:
            self._connections.add(http)
            try:
                transport = streamable_http_client(self._url, http_client=http)
                async with Client(transport, mode=mode, cache=None) as client:
                    yield client
            finally:
                self._connections.discard(http)

    async def _listen(self) -> None:
        """Announce changes of the tools until the service cannot be reached."""
        is_connected = True
        while is_connected:
            is_connected = False
            with suppress(Exception):
                async with (
                    self._session("auto") as client,
                    client.listen(tools_list_changed=True) as changes,
                ):
                    is_connected = self.was_connected = True
                    async for _ in changes:
                        await self._changes.announce()
        self.is_lost.set()
