"""Several processes are one service: with clocks that jump, two that serve, thousands of executions that wait."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from planwave.storage.postgres.store import PostgresStore
from tests.support.scale.faults import driven_by_all, settle_accounts
from tests.support.scale.installation import FAULTS, GRAPH, Installation
from tests.support.scale.jumping_clock import JUMPING_PLANWAVE, ahead_file
from tests.support.scale.role_process import RoleProcess, children_of, cpu_s
from tests.support.storage.postgres_server import PostgresServer

pytestmark = pytest.mark.scale

PARKED = int(os.environ.get("SCALE_PARKED", "200"))
"""How many executions wait for a person; 10,000 in the closing note."""
WOKEN = min(PARKED // 2, 500)
DAY_S, BACK_S = 86_400.0, -600.0
EVERY_S = 10
ANSWER_S = 15.0
LATE_S = 60.0
"""On a busy machine; a clock that is ten minutes behind would make it ten minutes."""


def asking(**data: Any) -> dict[str, Any]:
    """Return a graph that asks a person."""
    node = {"id": "ask", "type": "approval", "data": {"prompt": "Go on?", **data}}
    return {"nodes": [node], "edges": []}


SCHEDULED: dict[str, Any] = {
    "nodes": [
        {"id": "at", "type": "schedule", "data": {"everyS": EVERY_S}},
        {"id": "text", "type": "text", "data": {"text": "{{ input.slot }}"}},
    ],
    "edges": [{"source": "at", "target": "text", "data": {"channel": "flow"}}],
}


async def test_the_clock_of_a_worker_jumps(installation: Installation) -> None:
    """Nobody takes over; no time of a schedule comes twice or early, and no time for an answer ends early."""
    # The first to start leads: it keeps the schedules, by its own clock.
    env = {"PLANWAVE_LIMIT_SCHEDULE_GAP_S": str(EVERY_S)}
    wrong = installation.start("worker", program=JUMPING_PLANWAVE, env=env)
    api = installation.start("serve", env=env)
    workers = [wrong, installation.start("worker", env=env)]
    ahead = ahead_file(installation.group.run_log)
    trigger_id = await schedule(api)
    began = time.time()
    asked: list[str] = []
    for turn in range(FAULTS):
        await driven_by_all(installation, api, workers)
        ahead.write_text(str((DAY_S, BACK_S)[turn % 2]), "utf-8")
        graph = asking(timeoutS=ANSWER_S, timeoutAction="reject")
        asked += await installation.create(api, 4, graph)
        await asyncio.sleep(1.0)
        if turn % 4 == 3:
            ahead.write_text("0", "utf-8")
    account, _ = await settle_accounts(installation, api)
    assert account.run_again == 0, "somebody took over"
    for events in (await installation.ended(api, asked)).values():
        at = {each.type: datetime.fromisoformat(each.at) for each in events}
        waited_s = (at["node.answered"] - at["node.waiting"]).total_seconds()
        assert ANSWER_S <= waited_s <= ANSWER_S + LATE_S, [f"{e.type} {e.at}" for e in events]
    await asyncio.sleep(EVERY_S)
    async with PostgresStore.open(installation.url, read_only=True) as store:
        found = (await store.triggers.deliveries([trigger_id], 10_000))[trigger_id]
        slots = Counter(datetime.fromisoformat(each.key).timestamp() for each in found)
        runs = await store.executions(limit=1_000, as_flow=True)
    ended = time.time()
    most = math.ceil((ended - began) / EVERY_S) + 1
    print(f"times of the schedule: {len(slots)}, at most {most}")  # noqa: T201 - for the closing note
    assert all(began - EVERY_S <= each <= ended for each in slots), "one that has not come"
    assert most - 3 <= len(slots) == slots.total() <= most
    # On a busy machine an execution may still run when the next time comes, which is then skipped.
    assert len(runs) == sum(each.outcome == "started" for each in found)


async def schedule(api: RoleProcess) -> str:
    """Make a flow that starts every some seconds; return its trigger."""
    async with httpx2.AsyncClient(base_url=api.url, timeout=45) as client:
        made = await client.post("/api/flows", json={"name": "Clock", "graph": SCHEDULED})
        assert made.is_success, made.text
        answer = await client.post("/api/triggers", json={"plan_id": made.json()["plan_id"]})
        assert answer.is_success, answer.text
        return answer.json()["trigger_id"]


async def test_two_processes_that_serve_are_one_service(installation: Installation) -> None:
    """A request that reaches both makes one execution, and both give the same events, also while it runs."""
    both = [installation.start("serve") for _ in range(2)]
    installation.start("worker")
    body = {"graph": GRAPH, "start": True}

    async def request(client: httpx2.AsyncClient, key: str) -> str:
        while True:
            answer = await client.post("/api/execute", json=body, headers={"Idempotency-Key": key})
            if answer.status_code != httpx2.codes.CONFLICT:  # the other one is at it
                assert answer.status_code == httpx2.codes.ACCEPTED, answer.text
                return answer.json()["execution_id"]
            await asyncio.sleep(0.1)

    streams: dict[str, list[asyncio.Task[list[int]]]] = {}
    async with asyncio.TaskGroup() as streaming, AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=each.url, timeout=45))
            for each in both
        ]
        for turn in range(5 * FAULTS):
            async with asyncio.TaskGroup() as tasks:
                made = [tasks.create_task(request(each, f"key {turn}")) for each in clients]
            (own,) = {each.result() for each in made}
            installation.ids.append(own)
            streams[own] = [
                streaming.create_task(installation.follow(api, own, [])) for api in both
            ]
        await settle_accounts(installation, both[0])
        histories = await installation.ended(both[0])
        for execution_id, events in histories.items():
            for client in clients:
                url = f"/api/executions/{execution_id}/events"
                answer = await client.get(url, params={"format": "json"})
                assert [each["seq"] for each in answer.json()["events"]] == [
                    each.seq for each in events
                ]
            live = [await each for each in streams[execution_id]]
            assert live == [[each.seq for each in events]] * 2
    async with PostgresStore.open(installation.url, read_only=True) as store:
        assert sum((await store.count_executions()).values()) == len(histories)


async def test_parked_executions_cost_nothing_and_wake_together(
    installation: Installation, durable_postgres: PostgresServer
) -> None:
    api, worker = installation.start("serve"), installation.start("worker")

    async def used() -> list[float]:
        """Return what is used each second: cores of the worker and of PostgreSQL, and transactions."""
        await asyncio.sleep(10)  # what was done last is done with
        before = worker.cpu_s(), database_cpu_s(durable_postgres), transactions(installation)
        began = time.monotonic()
        await asyncio.sleep(10)
        after = worker.cpu_s(), database_cpu_s(durable_postgres), transactions(installation)
        took_s = time.monotonic() - began
        return [(b - a) / took_s for a, b in zip(before, after, strict=True)]

    idle = await used()
    began = time.monotonic()
    ids = await installation.create(api, PARKED, asking())
    within_s = 120 + PARKED / 4
    async with PostgresStore.open(installation.url, read_only=True) as store:
        await settle(store, {"paused": PARKED}, within_s)
        parked_s = time.monotonic() - began
        parked = await used()
        began = time.monotonic()
        woken = ids[:WOKEN]
        async with httpx2.AsyncClient(base_url=api.url, timeout=120) as client:
            async with asyncio.TaskGroup() as tasks:
                for each in woken:
                    tasks.create_task(approve(client, each))
            answered_s = time.monotonic() - began
        await settle(store, {"completed": len(woken), "paused": PARKED - len(woken)}, within_s)
    print(  # noqa: T201 - for the closing note
        f"{PARKED} parked in {parked_s:.0f} s; then worker {parked[0]:.1%}, PostgreSQL {parked[1]:.1%} of a core, "
        f"{parked[2]:.1f} transactions a second, {idle[2]:.1f} before; "
        f"{WOKEN} answered in {answered_s:.1f} s, completed in {time.monotonic() - began:.1f} s"
    )
    assert max(parked[:2]) < 0.3
    assert parked[2] < 2 * idle[2], "something asks for each execution that waits"


def transactions(installation: Installation) -> int:
    """Return how many transactions the database has had, those of beats and of readers at intervals included."""
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    with psycopg.connect(installation.url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def database_cpu_s(server: PostgresServer) -> float:
    """Return how long the processes of a database server have computed; those that live."""
    pid = int(Path(server.directory, "postmaster.pid").read_text("utf-8").split("\n")[0])
    used_s = 0.0
    for each in children_of(pid):
        with suppress(FileNotFoundError):  # it has ended
            used_s += cpu_s(each)
    return used_s


async def approve(client: httpx2.AsyncClient, execution_id: str) -> None:
    """Answer the one request of an execution."""
    own = f"/api/executions/{execution_id}"
    found = await asked_again(lambda: client.get(own))
    (request,) = found.json()["requests"]
    url = f"{own}/requests/{request['request_id']}"
    answer = await asked_again(lambda: client.post(url, json={"decision": "approve"}))
    assert answer.is_success, answer.text


async def asked_again(ask: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
    """Return the answer of a service, which tells so many at once to come again."""
    while (answer := await ask()).status_code in (429, 503):  # noqa: ASYNC110 - the service tells nobody
        await asyncio.sleep(1)
    return answer


async def settle(store: PostgresStore, counts: Mapping[str, int], within_s: float) -> None:
    """Wait until there are so many executions in each status."""
    async with asyncio.timeout(within_s):
        while await store.count_executions() != counts:  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(0.2)
