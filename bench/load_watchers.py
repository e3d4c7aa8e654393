"""Many watchers of one execution: by how much do they stretch its makespan?

::

    python bench/load_watchers.py --watchers 1000 --rounds 5
    python bench/load_watchers.py --watchers 50 --deaf

One execution after the other, in turn with watchers and without. Two kinds: a chain of 40 nodes
that sleep 50 ms, where every delay between two nodes shows; and the same chain with nodes that
stream 100 tokens a second meanwhile, so that watchers are told something 20 times a second.
With ``--deaf`` a node logs 20,000 lines and no watcher reads: they are dropped, and their memory is.
Server and clients are a process each. The makespan is the one the execution's own events show.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

from load_client import Http, cpu_s, graph_of, rss_mb, seconds_between, server, watch
from workloads import chain

KINDS = {
    "chain of naps": (chain(40), {"type": "nap", "data": {"s": 0.05}}),
    "chain that streams": (chain(40), {"type": "teller", "data": {"s": 0.01, "tokens": 5}}),
}
DEAF = {"20,000 lines to nobody": (chain(1), {"type": "logger", "data": {"lines": 20_000}})}


async def once(url, http, process, kind, watchers, deaf):
    """Run one execution; give its makespan, and what the server spent on it."""
    dag, node = kind
    body = {"graph": graph_of(dag, lambda _: node)}
    execution_id = (await http.ask("POST", "/api/execute", body))["execution_id"]
    opened = []
    for first in range(0, watchers, 50):
        async with asyncio.TaskGroup() as tasks:
            opened += [
                tasks.create_task(watch(url, execution_id))
                for _ in range(min(50, watchers - first))
            ]
    told = [task.result() for task in opened]
    await asyncio.sleep(0.5)
    if deaf:
        for watcher in told:
            watcher.transport.pause_reading()
    before = cpu_s(process)
    await http.ask("POST", f"/api/execute/{execution_id}/start", {})
    for watcher in told if not deaf else ():
        assert await watcher.closed == 1000
    while True:
        found = await http.ask("GET", f"/api/executions/{execution_id}")
        if found["status"] == "completed":
            break
        await asyncio.sleep(0.1)
    for watcher in told if deaf else ():
        watcher.transport.resume_reading()
        assert await watcher.closed == 4408
    messages = {watcher.messages for watcher in told}
    return {
        "makespan": seconds_between(found["started_at"], found["completed_at"]),
        "cpu": cpu_s(process) - before,
        "messages": f"{min(messages)}-{max(messages)}" if messages else "-",
    }


async def measure(url, process, given):
    http = Http(url)
    for name, kind in (DEAF if given.deaf else KINDS).items():
        await once(url, http, process, kind, 0, False)
        rounds = []
        for _ in range(given.rounds):
            without = await once(url, http, process, kind, 0, False)
            within = await once(url, http, process, kind, given.watchers, given.deaf)
            rounds.append((without, within))
            print(
                f"{name}: {without['makespan']:.3f} s without, {within['makespan']:.3f} s with "
                f"{given.watchers} watchers; {within['cpu']:.2f} CPU s, "
                f"{within['messages']} messages each, {rss_mb(process):.0f} MB"
            )
        ratio = statistics.median(w["makespan"] / wo["makespan"] for wo, w in rounds)
        print(f"{name}: makespan x {ratio:.3f} (median of {given.rounds})")
    await http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deaf", action="store_true", help="watchers that do not read")
    given = parser.parse_args()
    with server() as (process, url):
        asyncio.run(measure(url, process, given))


if __name__ == "__main__":
    main()
