"""Many executions at once, started over HTTP, each with a WebSocket watcher.

::

    python bench/load_executions.py --executions 200 --rounds 5
    python bench/load_executions.py --connections 20 --pause 0

Each is made and started by one ``POST /api/execute`` with ``start: true`` and a graph of 30 nodes
that sleep 50 ms; a watcher (``mode=events``) is opened as soon as its id is known. The requests come
over as many connections as there are executions, all at once as in cell W3, or over fewer. Two
shapes: the plan of 6 levels of W3 (ideal 0.3 s) and a chain (ideal 1.5 s). What is timed is all of
it, from the first request to the last watcher's last message. Between two rounds the documents of
the first one are written; with ``--pause 0`` that falls into the second.

Before and after each round a turn of a bare loop is timed: where others share the machine, that says
how fast it was meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time

from load_client import Http, cpu_s, graph_of, rss_mb, server, watch
from workloads import chain, w3

TURNS = 1_000_000
SHAPES = {"plan of 6 levels": (w3(), 0.3), "chain": (chain(30), 1.5)}


async def once(url, http, process, dag, executions, connections):
    graph = graph_of(dag, lambda _: {"type": "nap", "data": {"s": 0.05}})
    body = json.dumps({"graph": graph, "start": True}).encode()
    turn = asyncio.Semaphore(connections)
    accepted = []

    async def one():
        async with turn:
            made = await http.ask("POST", "/api/execute", body)
        accepted.append(time.perf_counter() - begun)
        watcher = await watch(url, made["execution_id"])
        assert await watcher.closed == 1000

    before, begun = cpu_s(process), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(executions):
            tasks.create_task(one())
    wall = time.perf_counter() - begun
    return wall, cpu_s(process) - before, max(accepted)


def turn_ns():
    """Give how long a turn of a bare loop takes just now."""
    began = time.perf_counter()
    for _ in range(TURNS):
        pass
    return (time.perf_counter() - began) / TURNS * 1e9


async def measure(url, process, given):
    http = Http(url)
    for name, (dag, ideal) in SHAPES.items():
        connections = given.connections or given.executions
        await once(url, http, process, dag, 20, 20)
        walls = []
        for _ in range(given.rounds):
            await asyncio.sleep(given.pause)
            before = turn_ns()
            wall, cpu, accepted = await once(url, http, process, dag, given.executions, connections)
            machine = max(before, turn_ns())
            walls.append(wall)
            print(
                f"{name}: {wall:.2f} s ({wall / ideal:.2f} x ideal), all accepted after "
                f"{accepted:.2f} s; {cpu:.2f} CPU s, {rss_mb(process):.0f} MB, {machine:.0f} ns a turn"
            )
        print(f"{name}: {statistics.median(walls) / ideal:.2f} x ideal (median of {given.rounds})")
    await http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, help="for the requests; one each by default")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two rounds")
    parser.add_argument("--floor", action="store_true", help="the stack alone, without planwave")
    given = parser.parse_args()
    with server("load_floor.py" if given.floor else "load_server.py") as (process, url):
        asyncio.run(measure(url, process, given))


if __name__ == "__main__":
    main()
