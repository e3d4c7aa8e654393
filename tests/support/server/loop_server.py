"""A service over these parts on a real socket, on the event loop of the test."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from planwave.api.app import create_app
from planwave.api.server import Server
from planwave.service.dependencies import ServiceDependencies
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.running_server import NO_RATE_LIMITS


@dataclass
class LoopServer:
    """A server under way, and a client of it."""

    base_url: str
    client: httpx2.AsyncClient

    @property
    def ws_url(self) -> str:
        return self.base_url.replace("http", "ws", 1)


@asynccontextmanager
async def loop_server(parts: ServiceDependencies) -> AsyncGenerator[LoopServer]:
    """Serve until the block ends."""
    settings = Settings(limits=NO_RATE_LIMITS)
    app = create_app(settings, lambda _: Service(parts))
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(app, settings, [listener])
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as client,
    ):
        await server.open()
        try:
            yield LoopServer(server.url, client)
        finally:
            app.state.planwave.service.close_streams()
            await server.close()
