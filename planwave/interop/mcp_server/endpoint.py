"""The MCP server of an application: opened at the first request, closed with the service.

The SDK takes a second to import. It is imported in a thread, and only where a client comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from planwave.errors import ShuttingDown

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from planwave.interop.mcp_server.http import HttpServer
    from planwave.principals import Principal
    from planwave.service.service import Service

_HTTP: Final = "planwave.interop.mcp_server.http"
_GRACE_S: Final = 2.0
"""How long calls may take to return what they have when the service goes down."""


class CallerToken(Protocol):
    """An access token: for some flows, with some scopes."""

    @property
    def token_id(self) -> str: ...
    @property
    def flows(self) -> Sequence[str]: ...
    @property
    def scopes(self) -> Sequence[str]: ...


class ScopeGate(Protocol):
    """Identifies the client of a request by its ASGI scope, and counts the executions of each."""

    def principal(self, scope: Scope) -> Principal:
        """Return the principal of a request."""
        ...

    def token(self, scope: Scope) -> CallerToken | None:
        """Return the access token of a request; None for the operator."""
        ...

    def admit(self, scope: Scope) -> None:
        """Count an execution that is about to be created.

        Raises:
            TooManyRequests: The caller created too many.
        """
        ...


def is_installed() -> bool:
    """Return whether the extra ``planwave[mcp]`` is installed."""
    return find_spec("mcp") is not None


class McpEndpoint:
    """The MCP server of one application; an async context manager.

    Args:
        service: Plans, runs and stores.
        gate: Identifies the client of a request.
    """

    def __init__(self, service: Service, gate: ScopeGate) -> None:
        self._service = service
        self._gate = gate
        self._opened: asyncio.Future[HttpServer] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._requests = 0
        self._is_idle = asyncio.Event()
        self._is_closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._service.closing.append(self._is_closing.set)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._service.closing.remove(self._is_closing.set)
        self._is_closing.set()
        if self._serving is not None:
            await asyncio.wait([self._serving])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an authenticated request.

        Raises:
            ShuttingDown: The service accepts nothing new.
        """
        if self._is_closing.is_set():
            raise ShuttingDown
        server = await asyncio.shield(self._open())
        if scope["method"] != "POST":
            await server.app(scope, receive, send)
            return
        self._requests += 1
        self._is_idle.clear()
        try:
            await server.app(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._is_idle.set()

    def _open(self) -> asyncio.Future[HttpServer]:
        if self._opened is None:
            loop = asyncio.get_running_loop()
            self._opened = loop.create_future()
            # Not a TaskGroup: the SDK's own group has to be entered and left by one task.
            self._serving = loop.create_task(self._serve(self._opened))
        return self._opened

    async def _serve(self, opened: asyncio.Future[HttpServer]) -> None:
        """Serve until the service closes its streams, and a little longer for calls under way."""
        try:
            module: Any = await asyncio.to_thread(import_module, _HTTP)
            async with module.http_server(self._service, self._gate) as server:
                self._is_idle.set()
                opened.set_result(server)
                await self._is_closing.wait()
                server.end_streams()
                try:
                    await asyncio.wait_for(self._is_idle.wait(), _GRACE_S)
                except TimeoutError:
                    return
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)
