"""Lists over 10,000 stored executions, and checks: how long they take, in the store and over HTTP.

::

    python bench/listing.py                     # fills a directory, measures, prints a table
    python bench/listing.py --clients 50 --seconds 10

Every client sends its next request when it has the answer to the last, so this is the most that
many clients can ask. ``--every S`` lets each wait as long between two. Over HTTP the server is
``planwave serve`` in a process of its own; the clients are bare sockets, so that their own work,
which shares the machine, stays small. Limits on requests are raised, as they would hold this back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from planwave.events import Event
from planwave.ids import new_id
from planwave.storage.event_codec import search_key
from planwave.storage.execution_facts import ExecutionFacts
from planwave.storage.records import ExecutionRecord
from planwave.storage.search_signatures import merge_signatures, signature_of
from planwave.storage.sqlite.store import SqliteStore

STORED = 10_000
PLANS = 500
WORDS = [
    "analyse",
    "asyncio",
    "budget",
    "compare",
    "contract",
    "databases",
    "graph",
    "kernel",
    "market",
    "notes",
    "plan",
    "planning",
    "python",
    "recipe",
    "release",
    "report",
    "research",
    "series",
    "storage",
    "summary",
    "supplier",
    "time",
    "travel",
    "wave",
]

Queries = Mapping[str, dict[str, str]]
ASKED: Queries = {
    "the newest": {},
    "a status": {"status": "cancelled"},
    "since a time": {"since": "2026-01-05", "status": "failed"},
    "a text": {"q": "market"},
    "a text nobody wrote": {"q": "zebra"},
    "a word of a result": {"q": "lisbon"},
    "a word of ten results": {"q": "alfama"},
    "a word of all results": {"q": "paragraph"},
}
"""Queries of ``GET /api/executions``; an id is asked for, too."""
RESULTS = 200
"""Different ones."""
PARAGRAPHS = 40
"""Of a result, each of a sentence: 4 kB of what is searched of an execution."""

CHECKED = {
    "nodes": [{"id": f"n{n}", "type": "text", "data": {"text": "{{ input }}"}} for n in range(30)],
    "edges": [
        {"source": f"n{n}", "target": f"n{n + 5}", "data": {"channel": "flow"}} for n in range(25)
    ],
}
"""What ``POST /api/check`` is sent: 6 layers of 5 nodes."""


def at(second: int) -> str:
    return (
        f"2026-01-{1 + second // 86_400:02}T{time.strftime('%T', time.gmtime(second))}.000000+00:00"
    )


def result_text(rnd: random.Random) -> str:
    """Return a result of a few pages."""
    sentences = (" ".join(rnd.choices(WORDS, k=12)) for _ in range(PARAGRAPHS))
    return "\n".join(f"Paragraph {number}: {text}." for number, text in enumerate(sentences))


def searched(text: str) -> tuple[str, bytes]:
    """Return a text as it is searched, and its signature."""
    folded = text.casefold()
    return folded, signature_of(folded)


async def fill(directory: Path, number: int = STORED) -> str:
    """Keep executions of 30 log lines each, in 5 batches, over as many minutes; return the id of one of them."""
    rnd = random.Random(1)
    store = SqliteStore.open(directory)
    rare = set(rnd.sample(range(number), 10))
    results = [searched(result_text(rnd)) for _ in range(RESULTS)]
    named = {city: searched(f"{city}. {result_text(rnd)}") for city in ("alfama", "lisbon")}

    def result_of(n: int) -> tuple[str, bytes]:
        """Return a result: every twentieth names a city, ten a part of it."""
        city = "alfama" if n in rare else "lisbon" if n % 20 == 0 else None
        return named[city] if city else results[n % RESULTS]

    ids = [new_id() for _ in range(number)]

    async def keep(n: int) -> None:
        name, began = ids[n], at(n * 60)
        title, goal = (" ".join(rnd.choices(WORDS, k=k)) for k in (5, 30))
        end = rnd.choice(["completed"] * 8 + ["failed", "cancelled"])
        record = ExecutionRecord(name, f"plan-{n % PLANS}", title, goal, "starting", began)
        kinds = ["execution.created", "execution.started", *["node.log"] * 30, f"execution.{end}"]
        events = [
            Event(name, seq, began, kind, None, None, {"message": "x" * 200})
            for seq, kind in enumerate(kinds, 1)
        ]
        await store.create_execution(record, events[:1])
        for first in range(1, len(events), 8):
            await store.append(name, 1, events[first : first + 8])
        text, signature = result_of(n)
        signature = merge_signatures(signature, signature_of(search_key(title, goal), name))
        facts = ExecutionFacts(0, None, 1.0, text, signature, ())
        await store.set_document_seqs({name: len(events)}, {name: facts})

    for first in range(0, number, 500):
        async with asyncio.TaskGroup() as group:
            for n in range(first, min(first + 500, number)):
                group.create_task(keep(n))
    await store.close()
    return ids[number // 3]


async def load(
    ask: Callable[[], Awaitable[Any]], clients: int, seconds: float, every: float
) -> list[float]:
    """Have many clients ask; give how long each answer took, seconds."""
    taken: list[float] = []
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        await asyncio.sleep(every * number / clients)
        while (begun := time.perf_counter()) < until:
            await ask()
            taken.append(time.perf_counter() - begun)
            await asyncio.sleep(max(0.0, every - (time.perf_counter() - begun)))

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))
    return sorted(taken)


class Connections:
    """Kept-alive HTTP connections, one a client at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(self, path: str) -> bytes:
        """Return the body of an answer."""
        return await self.ask("GET", path)

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request, and give the body of its answer."""
        reader, writer = (
            self._free.pop()
            if self._free
            else await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        )
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}\r\n".encode() + body)
        told = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in told.split(b"\r\n", 1)[0]:
            raise RuntimeError(told.decode())
        answer = await reader.readexactly(int(told.split(b"content-length:")[1].split(b"\r\n")[0]))
        self._free.append((reader, writer))
        return answer

    async def close(self) -> None:
        """Close them."""
        for _, writer in self._free:
            writer.close()
            await writer.wait_closed()


def serve(directory: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server over a directory; give its process and address."""
    limits = {f"PLANWAVE_LIMIT_{name}": "100000" for name in ("REQUESTS_PER_S", "REQUESTS_BURST")}
    command = ["serve", "--port", "0", "--json", "--storage", str(directory)]
    server = subprocess.Popen(
        [sys.executable, "-c", "from planwave.main import main; main()", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **limits},
    )
    assert server.stdout is not None
    return server, json.loads(server.stdout.readline())["url"]


async def from_store(
    directory: Path, asked: Queries, clients: int, seconds: float, every: float
) -> None:
    """Measure the store by itself."""
    store = SqliteStore.open(directory)
    for name, query in asked.items():
        chosen: dict[str, Any] = {"text" if k == "q" else k: v for k, v in query.items()}
        taken = await load(lambda c=chosen: store.executions(**c), clients, seconds, every)
        show(f"store: {name}", taken, seconds)
    ids = [f"plan-{n}" for n in range(50)]
    show("store: statuses of 50 plans",
         await load(lambda: store.plan_statuses(ids), clients, seconds, every), seconds)  # fmt: skip
    await store.close()


async def over_http(url: str, asked: Queries, clients: int, seconds: float, every: float) -> None:
    """Measure ``GET /api/executions``, and ``POST /api/check`` beside it."""
    connections = Connections(url)
    for name, query in asked.items():
        path = f"/api/executions?{urlencode(query)}"
        taken = await load(lambda p=path: connections.get(p), clients, seconds, every)
        show(f"HTTP: {name}", taken, seconds)
    counted = f"/api/executions?{urlencode({'q': 'market', 'counts': '1', 'limit': '1'})}"
    taken = await load(lambda: connections.get(counted), clients, seconds, every)
    show("HTTP: the count of a text", taken, seconds)
    graph = json.dumps({"graph": CHECKED}).encode()
    taken = await load(
        lambda: connections.ask("POST", "/api/check", graph), clients, seconds, every
    )
    show("HTTP: a check of 30 nodes", taken, seconds)
    await connections.close()


def show(name: str, taken: list[float], seconds: float) -> None:
    """Print one line."""
    p50, p99 = (1_000 * taken[int(len(taken) * share)] for share in (0.5, 0.99))
    print(f"{name:30} {len(taken) / seconds:8,.0f}/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms")


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=STORED)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--every", type=float, default=0, help="seconds from request to request")
    given = parser.parse_args()
    how = (given.clients, given.seconds, given.every)
    with tempfile.TemporaryDirectory(prefix="bench-listing-") as directory:
        an_id = asyncio.run(fill(Path(directory), given.stored))
        asked = {**ASKED, "an id": {"q": an_id}}
        asyncio.run(from_store(Path(directory), asked, *how))
        server, url = serve(Path(directory))
        try:
            asyncio.run(over_http(url, asked, *how))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
