"""Many subscribers of one execution: by how much do they stretch its makespan?

::

    python bench/load_subscribers.py --subscribers 1000 --rounds 5
    python bench/load_subscribers.py --subscribers 50 --deaf

One execution after the other, in turn with subscribers and without. Two kinds: a chain of 40 nodes
that sleep 50 ms, where every delay between two nodes shows; and the same chain with nodes that
stream 100 tokens a second meanwhile, so that subscribers are told something 20 times a second.
With ``--deaf`` a node logs 20,000 lines and no subscriber reads: they are dropped, and their memory is.
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


async def once(url, http, process, kind, subscribers, deaf):
    """Run one execution; give its makespan, and what the server spent on it."""
    dag, node = kind
    body = {"graph": graph_of(dag, lambda _: node)}
    execution_id = (await http.ask("POST", "/api/execute", body))["execution_id"]
    opened = []
    for first in range(0, subscribers, 50):
        async with asyncio.TaskGroup() as tasks:
            opened += [
                tasks.create_task(watch(url, execution_id))
                for _ in range(min(50, subscribers - first))
            ]
    told = [task.result() for task in opened]
    await asyncio.sleep(0.5)
    if deaf:
        for subscriber in told:
            subscriber.transport.pause_reading()
    before = cpu_s(process)
    await http.ask("POST", f"/api/execute/{execution_id}/start", {})
    for subscriber in told if not deaf else ():
        assert await subscriber.closed == 1000
    while True:
        found = await http.ask("GET", f"/api/executions/{execution_id}")
        if found["status"] == "completed":
            break
        await asyncio.sleep(0.1)
    for subscriber in told if deaf else ():
        subscriber.transport.resume_reading()
        assert await subscriber.closed == 4408
    messages = {subscriber.messages for subscriber in told}
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
            within = await once(url, http, process, kind, given.subscribers, given.deaf)
            rounds.append((without, within))
            print(
                f"{name}: {without['makespan']:.3f} s without, {within['makespan']:.3f} s with "
                f"{given.subscribers} subscribers; {within['cpu']:.2f} CPU s, "
                f"{within['messages']} messages each, {rss_mb(process):.0f} MB"
            )
        ratio = statistics.median(w["makespan"] / wo["makespan"] for wo, w in rounds)
        print(f"{name}: makespan x {ratio:.3f} (median of {given.rounds})")
    await http.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deaf", action="store_true", help="subscribers that do not read")
    given = parser.parse_args()
    with server() as (process, url):
        asyncio.run(measure(url, process, given))


if __name__ == "__main__":
    main()
