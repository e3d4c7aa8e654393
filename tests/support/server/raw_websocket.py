"""A WebSocket client that reads only on request, and answers no ping by itself."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9


class WebSocketFrame(NamedTuple):
    """One frame from the server."""

    opcode: int
    payload: bytes

    @property
    def close(self) -> tuple[int, str]:
        """Code and reason of a close frame."""
        assert self.opcode == CLOSE
        return struct.unpack("!H", self.payload[:2])[0], self.payload[2:].decode()

    @property
    def json(self) -> Any:
        assert self.opcode == TEXT
        return json.loads(self.payload)


class RawWebSocket:
    """Frames over a plain TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> WebSocketFrame:
        """Give the next frame."""
        first, second = await self._reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
        return WebSocketFrame(first & 0x0F, await self._reader.readexactly(size))

    async def read_to_close(self) -> list[WebSocketFrame]:
        """Give all frames up to the close frame, pings left out."""
        frames: list[WebSocketFrame] = []
        while not frames or frames[-1].opcode != CLOSE:
            frame = await self.read()
            if frame.opcode != PING:
                frames.append(frame)
        return frames

    def send(self, *payloads: str | bytes, opcode: int | None = None) -> None:
        """Send a frame for each, masked with zeros, all in one write.

        What is written after the other side has closed can lose its last frames.
        """
        self._writer.write(b"".join(_encode_frame(each, opcode) for each in payloads))

    def abort(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()


def _encode_frame(payload: str | bytes, opcode: int | None) -> bytes:
    data = payload.encode() if isinstance(payload, str) else payload
    head = bytes([0x80 | (opcode or (TEXT if isinstance(payload, str) else BINARY))])
    if len(data) < 126:
        head += bytes([0x80 | len(data)])
    elif len(data) < 65_536:
        head += struct.pack("!BH", 0x80 | 126, len(data))
    else:
        head += struct.pack("!BQ", 0x80 | 127, len(data))
    return head + bytes(4) + data


@asynccontextmanager
async def raw_websocket(
    url: str, headers: dict[str, str] | None = None
) -> AsyncGenerator[RawWebSocket]:
    """Connect; nothing is read beyond a few kilobytes unless asked for."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (parts.hostname, parts.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
        lines = [
            f"GET {parts.path}?{parts.query} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {os.urandom(16).hex()[:22]}==",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        try:
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 101"), answer
            yield RawWebSocket(reader, writer)
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
