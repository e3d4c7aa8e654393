"""Chats that are open at once, each streamed at 20 tokens a second, through ``/v1/chat/completions``.

    python bench/open_chats.py [--chats 100] [--tokens 100] [--proxy PYTHON]

The provider, each service and the client are a process each. The provider puts the time of sending into each token,
so the delay of a token is measured by the one clock of the machine. planwave is measured beside a bare relay
(Starlette and httpx2, which parses and writes each chunk) and, with ``--proxy``, beside LiteLLM's proxy: a Python with
``litellm[proxy]``. The CPU time of opening and ending a chat comes from a second round of chats of a tenth of the tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
from first_token import MODEL, litellm, planwave, process

TOKENS_PER_S = 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


# -- the provider ----------------------------------------------------------------------------------


async def serve_provider() -> None:
    """Answer each request with as many tokens as its message says, 20 a second; print the address."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=2_000)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            request = json.loads(await reader.readexactly(size))
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            await _stream(writer, int(_text(request["messages"][-1]["content"])))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _text(content: Any) -> str:
    return content if isinstance(content, str) else content[0]["text"]


async def _stream(writer: asyncio.StreamWriter, tokens: int) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(tokens):
        await asyncio.sleep(began + number / TOKENS_PER_S - loop.time())
        _send(writer, {"delta": {"content": f"{time.monotonic():.6f} "}, "finish_reason": None})
    _send(writer, {"delta": {}, "finish_reason": "stop"})
    last = b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))


def _send(writer: asyncio.StreamWriter, choice: dict[str, Any]) -> None:
    chunk = {
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
        "choices": [{"index": 0, **choice}],
    }  # fmt: skip
    line = b"data: %b\n\n" % json.dumps(chunk).encode()
    writer.write(b"%x\r\n%b\r\n" % (len(line), line))


# -- the bare relay --------------------------------------------------------------------------------


def serve_relay(provider: str) -> None:
    """Pass requests on to the provider and its chunks back, each parsed and written; print the address."""
    import socket

    import httpx2
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx2.AsyncClient(timeout=120, limits=unlimited, trust_env=False)

    async def chunks(body: dict[str, Any]) -> AsyncIterator[bytes]:
        async with client.stream("POST", f"{provider}/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    yield b"data: %b\n\n" % json.dumps(json.loads(line[6:])).encode()
        yield b"data: [DONE]\n\n"

    async def complete(request: Any) -> StreamingResponse:
        return StreamingResponse(chunks(await request.json()), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
    listener = socket.create_server(("127.0.0.1", 0), backlog=2_000)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


# -- the client ------------------------------------------------------------------------------------


@dataclass
class Round:
    """What the chats of one round measured, in seconds."""

    first: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    wall_s: float = 0.0


async def talk(url: str, chats: int, tokens: int) -> Round:
    """Open so many chats within a second and read them to their end."""
    measured, loop = Round(), asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(chats):
            tasks.create_task(_chat(url, number / chats, tokens, measured))
    measured.wall_s = loop.time() - began
    return measured


async def _chat(url: str, after_s: float, tokens: int, measured: Round) -> None:
    await asyncio.sleep(after_s)
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=1 << 20)
    body = json.dumps(
        {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": str(tokens)}]}
    ).encode()
    asked_at = time.monotonic()
    writer.write(
        b"POST %b/chat/completions HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer sk-test\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
        % (at.path.encode(), at.netloc.encode(), len(body), body)
    )
    seen = 0
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        choices = json.loads(line[6:])["choices"]
        text = choices[0]["delta"].get("content") if choices else None
        now = time.monotonic()
        for sent_at in (text or "").split():
            measured.delays.append(now - float(sent_at))
            if not seen:
                measured.first.append(now - asked_at)
            seen += 1
    writer.close()
    if seen != tokens:
        raise RuntimeError(f"{url} gave {seen} of {tokens} tokens")


# -- the processes ---------------------------------------------------------------------------------


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _tree(int(child))


def _cpu_s(pid: int) -> float:
    """Return the CPU time that a process and its children have used."""
    ticks = 0
    for each in _tree(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_S


def _resident(pid: int) -> int:
    """Return the resident bytes of a process and its children."""
    return sum(
        int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE for each in _tree(pid)
    )


async def _measured(url: str, pid: int, chats: int, tokens: int) -> tuple[Round, float, float]:
    """Return a round, its CPU time, and the kilobytes that each open chat took."""
    before, cpu = _resident(pid), _cpu_s(pid)
    talking = asyncio.create_task(talk(url, chats, tokens))
    await asyncio.sleep(tokens / TOKENS_PER_S * 0.8)
    kilobytes = (_resident(pid) - before) / chats / 1_000
    measured = await talking
    await asyncio.sleep(1)  # what follows the end of a chat is work of that chat
    return measured, _cpu_s(pid) - cpu, kilobytes


async def report(name: str, url: str, pid: int, chats: int, tokens: int) -> None:
    """Measure one service and print its line."""
    await talk(url, 10, 5)
    _, short_cpu, _ = await _measured(url, pid, chats, tokens // 10)
    measured, cpu, kilobytes = await _measured(url, pid, chats, tokens)
    per_token = (cpu - short_cpu) / (chats * (tokens - tokens // 10))
    per_chat = short_cpu / chats - per_token * (tokens // 10)
    p99 = sorted(measured.delays)[int(len(measured.delays) * 0.99)]
    print(
        f"{name:<10} delay p50 {statistics.median(measured.delays) * 1e3:7.0f} ms  p99 {p99 * 1e3:7.0f} ms"
        f"  first token p50 {statistics.median(measured.first):6.2f} s"
        f"  {len(measured.delays) / measured.wall_s:6.0f} tokens/s"
        f"  CPU {per_token * 1e6:5.0f} µs/token, {per_chat * 1e3:5.1f} ms/chat  {kilobytes:5.0f} kB/chat",
        flush=True,
    )


def main() -> None:
    """Measure one service after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--proxy", help="a Python with litellm[proxy]")
    parser.add_argument("--provider", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--relay", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.provider:
        asyncio.run(serve_provider())
        return
    if chosen.relay:
        serve_relay(chosen.relay)
        return
    with ExitStack() as opened:
        directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-chats-"))
        provider = opened.enter_context(process(sys.executable, __file__, "--provider"))
        assert provider.stdout is not None
        floor = provider.stdout.readline().strip()
        services = {
            "relay": _relay(floor),
            "planwave": planwave(floor, directory, concurrency=1_000),
        }
        if chosen.proxy:
            services["litellm"] = litellm(chosen.proxy, floor, directory)
        for name, service in services.items():
            with service as (url, pid):
                asyncio.run(report(name, url, pid, chosen.chats, chosen.tokens))


@contextmanager
def _relay(provider: str) -> Iterator[tuple[str, int]]:
    with process(sys.executable, __file__, "--relay", provider) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), running.pid


if __name__ == "__main__":
    main()
