"""An HTTP service on loopback, in a thread of its own, that notes what requests do in the file of acts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from tests.support.recovery.acting_tools import WORK_S
from tests.support.recovery.acts import Act, write_act


@contextmanager
def acting_service(log: Path) -> Iterator[str]:
    """Answer ``GET /look?item=…&text=…`` and ``POST /save``; give ``host:port``."""
    ready, running = threading.Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            act = await _read_act(reader)
            write_act(log, act)
            await asyncio.sleep(WORK_S)
            body = json.dumps(f"{act.tool} {act.item} {act.text}").encode()
            head = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            )
            writer.write(head.encode() + b"\r\nconnection: close\r\n\r\n" + body)
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def serve() -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        running.append((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="acting-service")
    thread.start()
    try:
        assert ready.wait(10), "the service did not start"
        yield f"127.0.0.1:{running[0][2]}"
    finally:
        loop, stop, _ = running[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


async def _read_act(reader: asyncio.StreamReader) -> Act:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(first.split(" ")[1])
    given: Mapping[str, str] = json.loads(body) if body else dict(parse_qsl(url.query))
    tool = f"http_{url.path[1:]}"
    return Act(tool, given["item"], given["text"], headers.get("idempotency-key", ""))
