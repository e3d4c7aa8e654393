"""Measures ONE cell for ONE peer in this process and prints one JSON line; see README.md.

python worker.py PEER CELL [KIND] [--rounds N] [--budget SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import inspect
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import environments  # noqa: E402
import workloads  # noqa: E402

Json = dict[str, Any]


@dataclass
class Task:
    """What to measure: a peer, and the floor that runs in turn with it."""

    peer: Any
    raw: Any
    kind: str
    rounds: int
    budget_s: float

    def each_round(self) -> Iterator[int]:
        """Count rounds until there were enough or the budget is spent; at least one."""
        start = time.perf_counter()
        for number in range(self.rounds):
            yield number
            if time.perf_counter() - start > self.budget_s:
                return


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def timed(call: Callable[[], Any]) -> tuple[Any, list[float]]:
    """Give a call's result, and its seconds: wall, and CPU of all threads of this process."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    result = await settled(call())
    return result, [time.perf_counter() - wall, time.process_time() - cpu]


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


async def check(peer: Any, dag: workloads.Dag) -> None:
    """See that every node runs once, after its dependencies, with their values; also warms up."""
    given: dict[str, int] = {}

    async def body(name: str, inputs: list[Any]) -> int:
        assert name not in given, f"{name} ran twice"
        missing = [d for d in dag.deps[name] if d not in given]
        assert not missing, f"{name} ran before {missing}"
        expected = [given[d] for d in dag.deps[name]]
        assert sorted(inputs) == sorted(expected), f"{name} got {inputs}, not {expected}"
        given[name] = len(given) + 1
        return given[name]

    await settled(peer.run(await settled(peer.build(dag, body))))
    assert len(given) == len(dag), f"{len(given)} of {len(dag)} nodes ran"


async def built_and_run(peer: Any, dag: workloads.Dag) -> tuple[list[float], list[float]]:
    built, build = await timed(lambda: peer.build(dag, workloads.no_op))
    _, run = await timed(lambda: peer.run(built))
    return build, run


async def overhead(task: Task, dag: workloads.Dag) -> Json:
    """Build and run a graph anew, in turn with the floor."""
    rounds: list[Json] = []
    before = peak_mb()
    await built_and_run(task.raw, dag)
    for _ in task.each_round():
        build, run = await built_and_run(task.peer, dag)
        peak = peak_mb()
        raw_build, raw = await built_and_run(task.raw, dag)
        rounds.append({"build": build, "run": run, "raw": raw, "raw_build": raw_build})
    return {"nodes": len(dag), "rounds": rounds, "memory_mb": round(peak - before, 1)}


async def cell_w1(task: Task) -> Json:
    dag = workloads.w1(task.kind)
    await check(task.peer, dag)
    return await overhead(task, dag)


async def cell_w5(task: Task) -> Json:
    await check(task.peer, workloads.w5(100))
    return await overhead(task, workloads.w5(int(task.kind)))


async def cell_w2(task: Task) -> Json:
    await check(task.peer, workloads.w4())
    rounds: list[Json] = []
    for dag in workloads.w2(task.kind):
        built = await settled(task.peer.build(dag, workloads.sleeper(dag)))
        _, run = await timed(lambda: task.peer.run(built))  # noqa: B023 - called at once
        rounds.append({"run": run, "limit": dag.critical_path_s(), "barriers": dag.barriers_s()})
    return {"rounds": rounds}


async def cell_w3(task: Task) -> Json:
    """200 executions at once, each of a graph of its own, as a planner makes them."""
    dag, executions = workloads.w3(), 200
    body = workloads.sleeper(dag)

    async def one(peer: Any) -> None:
        await settled(peer.run(await settled(peer.build(dag, body))))

    async def many(peer: Any) -> None:
        await asyncio.gather(*(one(peer) for _ in range(executions)))

    await one(task.peer)
    rounds: list[Json] = []
    for _ in task.each_round():
        _, run = await timed(lambda: many(task.peer))
        _, raw = await timed(lambda: many(task.raw))
        rounds.append({"run": run, "raw": raw, "limit": dag.critical_path_s()})
    return {"nodes": executions * len(dag), "rounds": rounds}


async def cell_w4(task: Task) -> Json:
    """Durable executions one after the other, then 50 at once, in turn with the durable floor."""
    dag, sequential, at_once = workloads.w4(), 10, 50
    floor = importlib.import_module("peer_raw_sqlite_full")
    numbers = iter(range(1_000_000))
    folders: list[Path] = []

    async def opened(peer: Any) -> Callable[[], Awaitable[None]]:
        folders.append(Path(tempfile.mkdtemp(prefix=f"bench-{peer.NAME}-")))
        store = await settled(peer.durable_open(str(folders[-1])))
        stores.append((peer, store))

        async def one() -> None:
            uid = f"exec-{os.getpid()}-{next(numbers)}"
            await settled(peer.durable_run(store, dag, workloads.text_1k, uid))

        await one()
        return one

    async def in_turn(one: Callable[[], Awaitable[None]]) -> None:
        for _ in range(sequential):
            await one()

    async def together(one: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*(one() for _ in range(at_once)))

    stores: list[tuple[Any, Any]] = []
    rounds: list[Json] = []
    try:
        peer, raw = await opened(task.peer), await opened(floor)
        for _ in task.each_round():
            _, run = await timed(lambda: in_turn(peer))
            _, run_raw = await timed(lambda: in_turn(raw))
            _, con = await timed(lambda: together(peer))
            _, con_raw = await timed(lambda: together(raw))
            rounds.append({"seq": run, "seq_raw": run_raw, "con": con, "con_raw": con_raw})
    finally:
        for opener, store in stores:
            await settled(opener.durable_close(store))
        stored = [sum(f.stat().st_size for f in d.rglob("*") if f.is_file()) for d in folders]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    executed = 1 + len(rounds) * (sequential + at_once)
    return {
        "nodes": {"seq": sequential * len(dag), "con": at_once * len(dag)},
        "rounds": rounds,
        "bytes_per_node": round(stored[0] / (executed * len(dag))),
    }


async def cell_w6(task: Task) -> Json:
    """Tokens from one node to the caller."""
    tokens = 10_000

    async def drain(peer: Any) -> None:
        count = 0
        async for _ in peer.stream(tokens):
            count += 1
        assert count == tokens, f"{count} of {tokens} tokens came"

    await drain(task.peer)
    rounds: list[Json] = []
    for _ in task.each_round():
        _, run = await timed(lambda: drain(task.peer))
        _, raw = await timed(lambda: drain(task.raw))
        rounds.append({"run": run, "raw": raw})
    return {"tokens": tokens, "rounds": rounds}


async def cell_w7(task: Task) -> Json:
    """A loop over 1,000 items, 50 at a time, in turn with a semaphore's."""
    count, parallel = 1_000, 50

    async def body(name: str, inputs: list[Any]) -> Any:
        return inputs[0]

    async def looped(peer: Any) -> Any:
        return await peer.each(peer.build_each(count, parallel, body))

    for peer in (task.peer, task.raw):
        assert await looped(peer) == list(range(count))
    built, raw_built = (p.build_each(count, parallel, body) for p in (task.peer, task.raw))
    rounds: list[Json] = []
    for _ in task.each_round():
        _, run = await timed(lambda: task.peer.each(built))
        _, raw = await timed(lambda: task.raw.each(raw_built))
        rounds.append({"run": run, "raw": raw})
    return {"items": count, "rounds": rounds}


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """Run a fake provider in a process of its own; give the base URL of its OpenAI API."""
    script = str(HERE / "fake_provider.py")
    process = await asyncio.create_subprocess_exec(
        str(environments.own_python()), script, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def cell_w8(task: Task) -> Json:
    """Turns of an agent that calls one tool, in turn with those of a bare pydantic-ai agent."""
    turns = 20
    floor = importlib.import_module("peer_pydantic_ai")
    async with provider() as url, AsyncExitStack() as folders:
        given = (url, workloads.AGENT_MODEL, workloads.AGENT_PROMPT, workloads.add)
        if task.kind == "durable":
            folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
            opened = await settled(task.peer.agent_open_durable(folder, *given))
        else:
            opened = await settled(task.peer.agent_open(*given))
        raw_opened = await settled(floor.agent_open(*given))

        async def some(peer: Any, agent: Any) -> None:
            for _ in range(turns):
                text = await peer.agent_turn(agent)
                assert text == "It is 3.", text

        await some(task.peer, opened)
        await some(floor, raw_opened)
        rounds: list[Json] = []
        for _ in task.each_round():
            _, run = await timed(lambda: some(task.peer, opened))
            _, raw = await timed(lambda: some(floor, raw_opened))
            rounds.append({"run": run, "raw": raw})
        await task.peer.agent_close(opened)
        await floor.agent_close(raw_opened)
    return {"turns": turns, "rounds": rounds, "floor": floor.version()}


async def cell_w11(task: Task) -> Json:
    """No-op nodes through the service: over PostgreSQL, and in turn over a directory."""
    import servers

    if missing := servers.missing_postgres():
        return {"skip": missing}
    dag, executions = workloads.w4(), 100
    rounds: list[Json] = []
    with servers.postgres() as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with (
            task.peer.service_open(folder, server.new_database()) as own,
            task.peer.service_open(f"{folder}/embedded") as embedded,
        ):
            for service in (own, embedded):
                await task.peer.service_run(service, dag, 1)
            for _ in task.each_round():
                before = server.cpu_s()
                _, run = await timed(lambda: task.peer.service_run(own, dag, executions))
                beside = server.cpu_s() - before
                _, raw = await timed(lambda: task.peer.service_run(embedded, dag, executions))
                rounds.append({"run": run, "server_cpu": beside, "embedded": raw})
    return {"nodes": executions * len(dag), "rounds": rounds}


CELLS = {
    "w1": cell_w1, "w2": cell_w2, "w3": cell_w3, "w4": cell_w4, "w5": cell_w5, "w6": cell_w6,
    "w7": cell_w7, "w8": cell_w8, "w11": cell_w11,
}  # fmt: skip
NEEDS = {
    "w4": "durable_run", "w6": "stream", "w7": "build_each", "w8": "agent_open",
    "w8:durable": "agent_open_durable", "w11": "service_open",
}  # fmt: skip


async def measure(name: str, cell: str, kind: str, rounds: int, budget_s: float) -> Json:
    peer = importlib.import_module(f"peer_{name}")
    skip = getattr(peer, "SKIP", {})
    needed = NEEDS.get(f"{cell}:{kind}", NEEDS.get(cell, "run"))
    if cell in skip or not hasattr(peer, needed):
        return {"skip": skip.get(cell, "it has no such feature")}
    raw = importlib.import_module("peer_raw")
    found = await CELLS[cell](Task(peer, raw, kind, rounds, budget_s))
    return found | {"version": peer.version(), "mode": peer.MODE, "peak_mb": round(peak_mb(), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer")
    parser.add_argument("cell", choices=CELLS)
    parser.add_argument("kind", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=3.0)
    args = parser.parse_args()
    sys.setrecursionlimit(20_000)  # some peers walk their graph recursively
    stdout = os.dup(1)
    os.dup2(2, 1)  # whatever a peer prints goes to stderr
    try:
        found = asyncio.run(measure(args.peer, args.cell, args.kind, args.rounds, args.budget))
    except BaseException as error:  # noqa: BLE001 - becomes the result
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    os.write(stdout, json.dumps(found).encode() + b"\n")
    os._exit(0)  # a peer's threads must not keep the process


if __name__ == "__main__":
    main()
