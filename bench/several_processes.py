"""Several processes over one PostgreSQL and one Temporal: workers, events, streamed text and commands between them.

    python bench/several_processes.py [--parts workers,events,deltas,commands] [--rounds 3]

Both servers, each worker and each process that follows executions are processes of this machine, over loopback.

* ``workers``: 80 executions of 30 nodes that wait 500 ms, 5 executions at a time in each worker: wall time with 1 worker ÷ with 4.
* ``events``: 100 chains of nodes that wait 250 to 750 ms in 2 workers, each followed by 2 other processes: from the
  commit, as PostgreSQL dates it before it waits for the disk, until the event is with a subscriber there.
* ``deltas``: 100 executions in 2 workers stream 20 tokens a second each, followed by 2 other processes. A token is the
  time at which the node has it.
* ``commands``: 60 executions in a worker are paused, resumed, lose a node and are cancelled by another process, 20 to
  40 at once, until each command is carried out and stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import servers
from load_client import graph_of
from workloads import Dag, chain, layered

from planwave.bootstrap import open_service
from planwave.config.files import load_settings
from planwave.service.executions.execution_service import UnstoredPlan
from planwave.service.service import Service

HERE = Path(__file__).resolve().parent
PLANWAVE = "from planwave.main import main; main()"
TOKENS_PER_S, STREAM_S, FOLLOWERS = 20, 10.0, 2
COMMITTED = """
    SELECT e.execution_id, b.first, b.last, extract(epoch FROM pg_xact_commit_timestamp(b.xmin))
    FROM batches b JOIN executions e ON e.key = b.execution"""


@dataclass
class Installation:
    """Workers over a database of their own, and what another process needs to belong to them."""

    postgres: servers.Postgres
    temporal: servers.Temporal
    url: str
    workers: list[int]
    go: Path
    """Once it is there, executions stream their text."""

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU time used so far."""
        workers = sum(map(servers.process_cpu_s, self.workers))
        return {
            "workers": workers,
            "PostgreSQL": self.postgres.cpu_s(),
            "Temporal": servers.process_cpu_s(self.temporal.pid),
            "this process": time.process_time(),
        }


@contextmanager
def installation(
    postgres: servers.Postgres, temporal: servers.Temporal, workers: int, slots: int
) -> Iterator[Installation]:
    """Start workers, each with so many executions at a time; end them at the end."""
    url = postgres.new_database()
    env = {
        "PLANWAVE_DATABASE_URL": url,
        "PLANWAVE_CARRIER": "temporal",
        "PLANWAVE_TEMPORAL": json.dumps(
            # A long lease: on a busy machine workers would lose executions in the middle of a measurement.
            {"address": temporal.address, "task_queue": url.rpartition("/")[2], "lease_s": 10}
        ),
        "PLANWAVE_NODE_MODULES": "load_steps",
        "PLANWAVE_LOG_LEVEL": "WARNING",
        "PLANWAVE_LIMIT_CONCURRENT_EXECUTIONS": str(slots),
        "PLANWAVE_LIMIT_BURST_EXECUTIONS": "0",
        "PYTHONPATH": str(HERE),
    }  # fmt: skip
    os.environ.update(env)  # of the services of this process and those that it starts
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-several-")))
        os.environ["PLANWAVE_STORAGE_DIR"] = str(folder / "own")
        running = [
            stack.enter_context(process("worker", folder / f"worker{n}")) for n in range(workers)
        ]
        yield Installation(postgres, temporal, url, running, folder / "go")


@contextmanager
def process(role: str, folder: Path) -> Iterator[int]:
    """Run ``planwave ROLE`` in a folder; give its process id once it is ready."""
    folder.mkdir()
    env = os.environ | {"PLANWAVE_STORAGE_DIR": str(folder)}
    command = [sys.executable, "-c", PLANWAVE, "--json", role, "--port", "0"]
    started = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        first = started.stdout.readline()
        if not first.endswith("}\n"):
            sys.exit(first + started.stdout.read())
        wait_for_ready(json.loads(first)["url"])
        yield started.pid
    finally:
        started.kill()
        started.wait()


def wait_for_ready(url: str) -> None:
    import httpx2

    for _ in range(600):
        if httpx2.get(f"{url}/readyz").is_success:
            return
        time.sleep(0.1)
    raise TimeoutError(url)


async def start(service: Service, document: dict[str, Any], count: int) -> list[str]:
    """Start so many executions of a graph; give their ids."""
    plan = UnstoredPlan(await service.plans.read(document))
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(service.executions.execute(plan)) for _ in range(count)]
    return [each.result().execution_id for each in started]


def waits(dag: Dag, seconds: float, spread: float = 0.0) -> dict[str, Any]:
    data = {"s": seconds, "spread": spread}
    return graph_of(dag, lambda _: {"type": "pause", "data": data})


def percentiles(times: list[float]) -> str:
    ordered = sorted(times)
    p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"p50 {p50 * 1e3:.1f}, p99 {p99 * 1e3:.1f}, longest {ordered[-1] * 1e3:.1f} ms"


def shares(before: dict[str, float], after: dict[str, float], seconds: float) -> str:
    spent = {name: (after[name] - before[name]) / seconds for name in after}
    return "CPU " + ", ".join(f"{name} {share:.0%}" for name, share in spent.items())


# -- workers ---------------------------------------------------------------------------------------


async def drained(executions: int, document: dict[str, Any]) -> float:
    """Return the time from the first start of executions to the end of all."""
    async with open_service(load_settings()) as service:
        began = time.perf_counter()
        ids = await start(service, document, executions)
        async with asyncio.TaskGroup() as group:
            for each in ids:
                group.create_task(service.executions.wait(each))
        taken = time.perf_counter() - began
        records = [await service.executions.get(each) for each in ids]
    assert {each.status for each in records} == {"completed"}
    return taken


def measure_workers(postgres: servers.Postgres, temporal: servers.Temporal) -> tuple[str, float]:
    document = waits(layered(6, 5), 0.5)
    taken = {}
    for workers in (1, 4):
        with installation(postgres, temporal, workers, slots=5):
            taken[workers] = asyncio.run(drained(80, document))
    ratio = taken[1] / taken[4]
    return f"1 worker {taken[1]:.1f} s, 4 workers {taken[4]:.1f} s: {ratio:.2f} times", ratio


# -- events and streamed text at other processes ---------------------------------------------------


def follow(ids: list[str], ready: Any, found: Any) -> None:
    """Watch executions in this process; send back what came when: execution, number, text, time."""
    found.put(asyncio.run(_follow(ids, ready)))


async def _follow(ids: list[str], ready: Any) -> tuple[float, list[tuple[str, int, str, float]]]:
    seen: list[tuple[str, int, str, float]] = []
    async with open_service(load_settings()) as service:

        async def watch(execution_id: str) -> None:
            async for event in service.executions.watch(execution_id):
                text = event.data["text"] if event.type == "node.delta" else ""
                seen.append((execution_id, event.seq, text, time.time()))

        before = time.process_time()
        async with asyncio.TaskGroup() as group:
            for each in ids:
                group.create_task(watch(each))
            await asyncio.sleep(2)
            ready.release()
        return time.process_time() - before, seen


@dataclass
class Followed:
    """What followers saw of executions."""

    seen: list[list[tuple[str, int, str, float]]]
    began: float
    cpu: str


async def all_run(service: Service, ids: list[str]) -> None:
    """Wait until workers drive all executions."""
    for each in ids:
        while (await service.executions.get(each)).status != "executing":  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def followed(own: Installation, document: dict[str, Any]) -> Followed:
    """Run 100 executions that other processes follow to their ends."""
    spawn = multiprocessing.get_context("spawn")
    ready, found = spawn.Semaphore(0), spawn.Queue()
    async with open_service(load_settings()) as service:
        ids = await start(service, document, 100)
        await all_run(service, ids)
    followers = [spawn.Process(target=follow, args=(ids, ready, found)) for _ in range(FOLLOWERS)]
    for each in followers:
        each.start()
    for _ in followers:
        await asyncio.to_thread(ready.acquire)
    before, began = own.cpu_s(), time.time()
    own.go.touch()
    results = [await asyncio.to_thread(found.get) for _ in followers]
    taken = time.time() - began
    cpu = shares(before, own.cpu_s(), taken)
    cpu += f", followers {sum(spent for spent, _ in results) / taken:.0%}"
    for each in followers:
        each.join()
    return Followed([seen for _, seen in results], began, cpu)


def measure_events(postgres: servers.Postgres, temporal: servers.Temporal) -> tuple[str, float]:
    with installation(postgres, temporal, workers=2, slots=50) as own:
        result = asyncio.run(followed(own, waits(chain(60), 0.5, spread=0.5)))
        committed = {
            (execution, seq): float(at)
            for execution, first, last, at in postgres.execute(COMMITTED, own.url)
            for seq in range(first, last + 1)
        }
    later = {key: at for key, at in committed.items() if at > result.began}
    times = [
        at - later[execution, seq]
        for seen in result.seen
        for execution, seq, _, at in seen
        if (execution, seq) in later
    ]
    assert len(times) == FOLLOWERS * len(later), "each event once at each process"
    rate = len(later) / (max(later.values()) - min(later.values()))
    return f"{percentiles(times)} at {rate:.0f} events/s; {result.cpu}", statistics.median(times)


def measure_deltas(postgres: servers.Postgres, temporal: servers.Temporal) -> tuple[str, float]:
    with installation(postgres, temporal, workers=2, slots=50) as own:
        data = {"go": str(own.go), "per_s": TOKENS_PER_S, "s": STREAM_S}
        document = {"nodes": [{"id": "speak", "type": "speak", "data": data}], "edges": []}
        result = asyncio.run(followed(own, document))
    times: list[float] = []
    for seen in result.seen:
        delays = [at - float(token) for _, _, text, at in seen for token in text.split()]
        assert len(delays) == 100 * TOKENS_PER_S * STREAM_S, "each token once at each process"
        times += delays
    text = f"{percentiles(times)} of {len(times):,} tokens; {result.cpu}"
    return text, sorted(times)[int(len(times) * 0.99)]


# -- commands --------------------------------------------------------------------------------------


async def commanded(own: Installation) -> tuple[str, float]:
    async with open_service(load_settings()) as service:
        executions = service.executions
        ids = await start(service, waits(layered(6, 5), 30.0), 60)
        await all_run(service, ids)
        took: dict[str, list[float]] = {}

        async def timed(name: str, command: Coroutine[Any, Any, object]) -> None:
            began = time.perf_counter()
            await command
            took.setdefault(name, []).append(time.perf_counter() - began)

        async def at_once(name: str, ids: list[str], command: Callable[[str], Any]) -> None:
            async with asyncio.TaskGroup() as group:
                for each in ids:
                    group.create_task(timed(name, command(each)))

        for each in ids[:10]:
            await timed("alone", executions.pause(each))
            await timed("alone", executions.resume(each))
        before, began = own.cpu_s(), time.perf_counter()
        await at_once("pause", ids[:20], executions.pause)
        await at_once("resume", ids[:20], executions.resume)
        await at_once("cancel a node", ids[20:40], lambda own: executions.cancel(own, node="n0"))
        await at_once("cancel", ids[20:60], executions.cancel)
        cpu = shares(before, own.cpu_s(), time.perf_counter() - began)
    each_kind = "; ".join(f"{name} {percentiles(times)}" for name, times in took.items())
    every = sorted(time for times in took.values() for time in times)
    p99 = every[int(len(every) * 0.99)]
    return f"all {percentiles(every)}; {each_kind}; {cpu}", p99


def measure_commands(postgres: servers.Postgres, temporal: servers.Temporal) -> tuple[str, float]:
    with installation(postgres, temporal, workers=1, slots=60) as own:
        return asyncio.run(commanded(own))


PARTS = {
    "workers": (measure_workers, "1 worker ÷ 4 workers, wall", "≥ 3.2", 1),
    "events": (measure_events, "ms to another process, p50", "≤ 10", 1e3),
    "deltas": (measure_deltas, "ms to another process, p99", "≤ 100", 1e3),
    "commands": (measure_commands, "ms a command, p99", "≤ 250", 1e3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it started ends with it
    if missing := servers.missing_postgres() or servers.missing_temporal():
        sys.exit(missing)
    with servers.postgres("track_commit_timestamp=on") as postgres, servers.temporal() as temporal:
        for part in given.parts.split(","):
            measure, label, target, scale = PARTS[part]
            figures = []
            for number in range(given.rounds):
                load = os.getloadavg()[0]
                text, figure = measure(postgres, temporal)
                figures.append(figure * scale)
                print(f"{part} {number + 1}, load {load:.1f}: {text}", flush=True)
            middle = statistics.median(figures)
            print(f"{part}: {label} {middle:.2f} (median of {given.rounds}), target {target}")


if __name__ == "__main__":
    main()
