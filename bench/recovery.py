"""A start over 10,000 stored executions of which 500 are open: how long the store takes for it.

::

    python bench/recovery.py                    # fills a directory, is killed, measures the start
    python bench/recovery.py --stored 50000 --open 2000 --directory DIR

Executions are of 10 nodes with results of 2 kB. Of those that are open a half stands mid-run, a
quarter waits for an answer, a quarter is queued. The process that keeps them is killed, so that the
start finds a log as a crash leaves it. Reading the events of what is open is shown beside: it is
done one execution at a time, after the service is ready.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planwave.events import Event
from planwave.ids import new_id
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore

STORED, OPEN, NODES = 10_000, 500, 10
AT_ONCE = 250
GRAPH = {
    "nodes": [{"id": f"n{n}", "type": "text", "data": {"text": "x" * 100}} for n in range(NODES)],
    "edges": [
        {"source": f"n{n}", "target": f"n{n + 1}", "data": {"channel": "flow"}}
        for n in range(NODES - 1)
    ],
}


def at(second: int) -> str:
    days = f"2026-{1 + second // 2_419_200:02}-{1 + second // 86_400 % 28:02}"
    return f"{days}T{time.strftime('%T', time.gmtime(second))}.000000+00:00"


def events_of(name: str, when: str, stands: str) -> list[list[Event]]:
    """Give the batches of an execution: all of it, or as far as it came."""
    batches: list[list[tuple[str, str | None, dict[str, Any]]]] = [
        [("execution.created", None, {"goal": "a goal", "title": "A title", "graph": GRAPH})]
    ]
    if stands != "queued":
        batches.append([("execution.started", None, {}), ("node.started", "n0", {"wave": 1})])
        results = {"output": {"type": "text", "value": "x" * 2_000}}
        for n in range(NODES if stands == "ended" else NODES // 2):
            done = ("node.completed", f"n{n}", {"outputs": results, "duration_s": 0.1})
            batches.append([done, ("node.started", f"n{n + 1}", {"wave": n + 2})])
        if stands == "waits":
            request = {"request_id": "r1", "request": {"kind": "approval", "prompt": "Shall it?"}}
            batches.append([("node.waiting", f"n{NODES // 2}", request)])
            batches[-1].append(("execution.paused", None, {"reason": "waiting for an answer"}))
        if stands == "ended":
            batches[-1][-1] = ("execution.completed", None, {})
    seq = 0
    made: list[list[Event]] = []
    for batch in batches:
        made.append([])
        for kind, path, data in batch:
            seq += 1
            made[-1].append(Event(name, seq, when, kind, path, 1 if path else None, data))
    return made


async def fill(directory: Path, stored: int, open_: int) -> None:
    """Keep executions; the open ones are spread over all of them."""
    store = SqliteStore.open(directory)
    every = max(1, stored // max(1, open_))

    async def keep(n: int) -> None:
        name, when = new_id(), at(n * 60)
        stands = ("mid-run", "waits", "mid-run", "queued")[n // every % 4]
        stands = stands if n % every == 0 else "ended"
        record = ExecutionRecord(
            name, f"plan-{n % 500}", "A title", "a goal", "starting", when, queued=True
        )
        first, *later = events_of(name, when, stands)
        await store.create_execution(record, first)
        for batch in later:
            await store.append(name, 1, batch)
        if stands in ("ended", "waits"):
            await store.set_document_seqs({name: later[-1][-1].seq})

    for begun in range(0, stored, AT_ONCE):
        async with asyncio.TaskGroup() as group:
            for n in range(begun, min(begun + AT_ONCE, stored)):
                group.create_task(keep(n))
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def timed(taken: dict[str, list[float]], what: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    taken.setdefault(what, []).append(time.perf_counter() - begun)


async def measure(directory: Path, taken: dict[str, list[float]]) -> int:
    """Start over a directory, and give how many executions are open."""
    with timed(taken, "open the store"):
        store = SqliteStore.open(directory)
    ask: dict[str, Callable[[], Awaitable[list[Any]]]] = {
        "open_executions": store.open_executions,
        "lagging_documents": store.lagging_documents,
    }
    found: list[Any] = []
    for what, query in ask.items():
        with timed(taken, what):
            found.append(await query())
    with timed(taken, "events of all that are open, one by one"):
        for record in found[0]:
            await store.events(record.execution_id)
    await store.close()
    return len(found[0])


def main() -> None:
    """Fill a directory where none is given, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stored", type=int, default=STORED)
    parser.add_argument("--open", type=int, default=OPEN)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="is filled where nothing is stored in it")
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fill:
        asyncio.run(fill(asked.directory, asked.stored, asked.open))
    with tempfile.TemporaryDirectory() as temporary:
        directory = asked.directory or Path(temporary)
        if not (directory / "planwave.db").exists():
            sizes = ["--stored", str(asked.stored), "--open", str(asked.open)]
            command = [sys.executable, __file__, "--fill", "--directory", str(directory), *sizes]
            subprocess.run(command, check=False)  # it kills itself
        taken: dict[str, list[float]] = {}
        count = 0
        for _ in range(asked.reps):
            count = asyncio.run(measure(directory, taken))
        size = (directory / "planwave.db").stat().st_size
        print(f"{count} open; {size / 1e6:.0f} MB")
        for what, times in taken.items():
            print(f"{what:42}{times[0]:8.3f} s after the kill{statistics.median(times):8.3f} s")


if __name__ == "__main__":
    main()
