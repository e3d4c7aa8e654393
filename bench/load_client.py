"""What load needs of a client: a server in a process of its own, bare HTTP, bare WebSockets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent


@contextmanager
def server(script="load_server.py"):
    """Start a server for load over a new directory; gives its process and address."""
    with tempfile.TemporaryDirectory(prefix="bench-load-") as directory:
        command = [sys.executable, str(HERE / script), directory]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()


def cpu_s(process):
    """Give the CPU time a process has used, user and system."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_mb(process):
    """Give how much memory a process holds."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


class Http:
    """Kept-alive HTTP connections, one a call at a time."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._free = []

    async def ask(self, method, path, body=None):
        """Give the JSON of an answer to a request; its body is JSON, or the text of some."""
        if self._free:
            reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        content = b"" if body is None else body
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(size)
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(answer.decode())
        self._free.append((reader, writer))
        return json.loads(answer)

    async def close(self):
        for _, writer in self._free:
            writer.close()
            await writer.wait_closed()


class Subscriber(asyncio.Protocol):
    """One WebSocket that counts what it is told; ``last_at`` is when it was told last."""

    def __init__(self, host, path):
        self._host, self._path = host, path
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._open = False
        self.messages = self.bytes = 0
        self.last_at = 0.0
        self.opened = self._loop.create_future()
        self.closed = self._loop.create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )

    def data_received(self, data):
        buffer = self._buffer + data if self._buffer else data
        at = 0
        if not self._open:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            assert buffer.startswith(b"HTTP/1.1 101"), buffer[:end]
            self._open, at = True, end + 4
        while len(buffer) - at >= 2:
            size, start = buffer[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                size, start = int.from_bytes(buffer[at + 2 : at + 10], "big"), at + 10
            if len(buffer) < start + size:
                break
            self._take(buffer[at] & 0x0F, buffer, start, size)
            at = start + size
        self._buffer = buffer[at:]

    def _take(self, opcode, buffer, start, size):
        if opcode == 1:
            self.messages += 1
            self.bytes += size
            self.last_at = self._loop.time()
            if not self.opened.done():
                self.opened.set_result(None)
        elif opcode == 9:
            self.transport.write(
                b"\x8a" + bytes([0x80 | size]) + bytes(4) + buffer[start : start + size]
            )
        elif opcode == 8:
            code = int.from_bytes(buffer[start : start + 2], "big")
            self.transport.write(b"\x88\x82" + bytes(4) + buffer[start : start + 2])
            if not self.closed.done():
                self.closed.set_result(code)

    def connection_lost(self, error):
        for future in (self.opened, self.closed):
            if not future.done():
                future.set_exception(error or ConnectionResetError())


async def watch(url, execution_id, query="mode=events"):
    """Open a subscriber; it has been told the first message when this returns."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    _, subscriber = await loop.create_connection(
        lambda: Subscriber(parts.netloc, f"/ws/{execution_id}?{query}"), parts.hostname, parts.port
    )
    await subscriber.opened
    return subscriber


def seconds_between(first, last):
    """Give the time between two UTC times as the service writes them."""
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def graph_of(dag, node):
    """Give a workload's graph as a document; ``node(name)`` gives type and data."""
    return {
        "nodes": [{"id": n, **node(n)} for n in dag.nodes],
        "edges": [
            {"source": d, "target": n, "data": {"channel": "flow"}}
            for n in dag.nodes
            for d in dag.deps[n]
        ],
    }
