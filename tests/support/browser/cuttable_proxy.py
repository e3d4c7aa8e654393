"""A TCP proxy in front of a service: its address stays while the service restarts, and it can cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self


class CuttableProxy:
    """An async context manager that listens on a free port of loopback.

    Attributes:
        target_port: The port of the service; 0 while there is none.
    """

    def __init__(self) -> None:
        self.target_port = 0
        self._is_cut = False
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def host(self) -> str:
        """``127.0.0.1:port``."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)  # noqa: TID251 - all have ended

    def cut(self) -> None:
        """Reset all connections, and every new one, until ``restore``."""
        self._is_cut = True
        for task, client in self._connections.items():
            client.transport.abort()
            task.cancel()

    def restore(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            del self._connections[task]
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut or not self.target_port:
            raise ConnectionResetError
        service_reader, service = await asyncio.open_connection("127.0.0.1", self.target_port)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, service))
                tasks.create_task(_copy(service_reader, writer))
        except* OSError:
            writer.transport.abort()
        finally:
            service.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()
