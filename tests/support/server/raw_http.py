"""HTTP by hand: for requests that no client library would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.server.running_server import RunningServer

WEBSOCKET_UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
"""Headers of a request that becomes a WebSocket."""
SHORT_WAIT_S = 0.1


@dataclass
class RawResponse:
    """One answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class RawConnection:
    """One connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.host = host

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def send(self, method: str, path: str, *headers: str, body: bytes = b"") -> None:
        """Send a request; ``Host`` comes by itself unless it is among the headers."""
        lines = [f"{method} {path} HTTP/1.1", *headers]
        if not any(each.lower().startswith("host:") for each in headers):
            lines.insert(1, f"Host: {self.host}")
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    async def read_response(self) -> RawResponse:
        """Read one answer whole."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        if headers.get("transfer-encoding") == "chunked":
            body = await self._read_chunks()
        elif "content-length" not in headers and headers.get("connection") == "close":
            body = await self.reader.read()
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return RawResponse(int(first.split()[1]), headers, body)

    async def _read_chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return body

    async def is_closed(self, within_s: float = 25.0) -> bool:
        """Say whether the server ends the connection in that time.

        A server may be slow: who expects the end waits for it, though less long than a server keeps
        connections that ask nothing. Who expects none can only look for a moment
        (``SHORT_WAIT_S``), which may miss an end but never sees one that is not there.
        """
        try:
            return await asyncio.wait_for(self.reader.read(1), within_s) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


@asynccontextmanager
async def raw_connection(server: RunningServer) -> AsyncGenerator[RawConnection]:
    """Open a connection."""
    host = urlsplit(server.base_url).netloc
    address, _, port = host.rpartition(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    try:
        yield RawConnection(reader, writer, host)
    finally:
        writer.transport.abort()
