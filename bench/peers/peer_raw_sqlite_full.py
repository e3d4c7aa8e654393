"""The durable floor: SQLite, WAL, synchronous=FULL, group commit.

A node's result is on disk before its successors start; one writer thread commits all that queued.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from peer_raw import version  # noqa: F401 - part of a peer's interface

NAME = "raw_sqlite_full"
MODE = "eager, durable before release"


class Sink:
    def __init__(self, folder):
        self.loop = asyncio.get_running_loop()
        self.thread = ThreadPoolExecutor(1)
        self.queue = []
        self.draining = None
        self.db = sqlite3.connect(Path(folder, "db"), isolation_level=None, check_same_thread=False)
        self.db.execute("pragma journal_mode=WAL")
        self.db.execute("pragma synchronous=FULL")
        self.db.execute("create table r(exec text, node text, v text, primary key(exec, node))")

    def put(self, uid, node, value):
        future = self.loop.create_future()
        self.queue.append((uid, node, value, future))
        if self.draining is None:
            self.draining = self.loop.create_task(self._drain())
        return future

    async def _drain(self):
        while self.queue:
            batch, self.queue = self.queue, []
            await self.loop.run_in_executor(self.thread, self._write, batch)
            for *_, future in batch:
                future.set_result(None)
        self.draining = None

    def _write(self, batch):
        self.db.execute("begin immediate")
        rows = [(uid, node, json.dumps(value)) for uid, node, value, _ in batch]
        self.db.executemany("insert into r values(?,?,?)", rows)
        self.db.execute("commit")

    def close(self):
        self.thread.shutdown()
        self.db.close()


async def durable_open(folder):
    return Sink(folder)


async def durable_run(sink, dag, body, uid):
    deps, succ = dag.deps, dag.succ
    left = {n: len(d) for n, d in deps.items()}
    results = {}
    async with asyncio.TaskGroup() as group:

        async def one(n):
            value = results[n] = await body(n, [results[d] for d in deps[n]])
            await sink.put(uid, n, value)
            for s in succ[n]:
                left[s] -= 1
                if not left[s]:
                    group.create_task(one(s))

        for n in dag.sources:
            group.create_task(one(n))


def durable_close(sink):
    sink.close()
