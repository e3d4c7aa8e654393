"""The floor: nothing but asyncio. A node's task is created the moment its last dependency ends."""

from __future__ import annotations

import asyncio
import sys

NAME = "raw"
MODE = "eager"
SKIP = {"w4": "the durable floor runs in turn with every peer"}


def version() -> str:
    return "CPython " + sys.version.split()[0]


def build(dag, body):
    return dag, body, {n: len(d) for n, d in dag.deps.items()}


async def run(built):
    dag, body, counts = built
    deps, succ, left = dag.deps, dag.succ, dict(counts)
    results = {}
    async with asyncio.TaskGroup() as group:

        async def one(n):
            results[n] = await body(n, [results[d] for d in deps[n]])
            for s in succ[n]:
                left[s] -= 1
                if not left[s]:
                    group.create_task(one(s))

        for n in dag.sources:
            group.create_task(one(n))
    return len(results)


def build_each(count, parallel, body):
    return count, parallel, body


async def each(built):
    """Go through a list, so many items at a time."""
    count, parallel, body = built
    gate, results = asyncio.Semaphore(parallel), [None] * count

    async def one(item):
        async with gate:
            results[item] = await body("body", [item])

    async with asyncio.TaskGroup() as group:
        for item in range(count):
            group.create_task(one(item))
    return results


async def stream(n):
    """Yield to the loop before each token, as a stream from a network does."""
    for _ in range(n):
        await asyncio.sleep(0)
        yield "tok"
