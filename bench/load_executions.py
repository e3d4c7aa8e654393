"""Many executions at once, started over HTTP, each with a WebSocket subscriber.

::

    python bench/load_executions.py --executions 200 --rounds 5
    python bench/load_executions.py --connections 20 --pause 0

Each is made and started by one ``POST /api/execute`` with ``start: true`` and a graph of 30 nodes
that sleep 50 ms; a subscriber (``mode=events``) is opened as soon as its id is known. The requests come
over as many connections as there are executions, all at once as in cell W3, or over fewer. Two
shapes: the plan of 6 levels of W3 (ideal 0.3 s) and a chain (ideal 1.5 s). What is timed is all of
it, from the first request to the last subscriber's last message. Between two rounds the documents of
the first one are written; with ``--pause 0`` that falls into the next.

The floor (``load_floor.py``), the same stack without planwave, has its rounds in turn: where others
share the machine, the ratio of the two holds better than either. Before and after each round a turn
of a bare loop is timed too, which says how fast the machine was meanwhile.
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
        subscriber = await watch(url, made["execution_id"])
        assert await subscriber.closed == 1000

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


class Side:
    """One of the two servers, and how long its rounds of a shape took."""

    def __init__(self, name, process, url):
        self.name, self.process, self.url = name, process, url
        self.http = Http(url)
        self.walls = []

    async def round(self, shape, given):
        dag, ideal = SHAPES[shape]
        connections = given.connections or given.executions
        before = turn_ns()
        wall, cpu, accepted = await once(
            self.url, self.http, self.process, dag, given.executions, connections
        )
        machine = max(before, turn_ns())
        self.walls.append(wall)
        print(
            f"{shape}, {self.name}: {wall:.2f} s ({wall / ideal:.2f} x ideal), all accepted after "
            f"{accepted:.2f} s; {cpu:.2f} CPU s, {rss_mb(self.process):.0f} MB, {machine:.0f} ns a turn"
        )


async def measure(sides, given):
    for shape, (dag, ideal) in SHAPES.items():
        for side in sides:
            side.walls.clear()
            await once(side.url, side.http, side.process, dag, 20, 20)
        for _ in range(given.rounds):
            for side in sides:
                await asyncio.sleep(given.pause)
                await side.round(shape, given)
        own, floor = (statistics.median(side.walls) for side in sides)
        print(
            f"{shape}: {own / ideal:.2f} x ideal, {own / floor:.2f} x the floor, which took "
            f"{floor / ideal:.2f} x ideal (medians of {given.rounds})"
        )
    for side in sides:
        await side.http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, help="for the requests; one each by default")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two rounds")
    given = parser.parse_args()
    with server("load_server.py") as own, server("load_floor.py") as floor:
        asyncio.run(measure([Side("planwave", *own), Side("the floor", *floor)], given))


if __name__ == "__main__":
    main()
