"""One process on a database: it is killed again and again, and its successor goes on where it stopped."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.events import Event
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.postgres.store import PostgresStore
from tests.support.scale.account import account_of
from tests.support.scale.installation import FAULTS
from tests.support.scale.logging_nodes import RunLog
from tests.support.scale.role_process import processes
from tests.support.storage.postgres_server import IS_THERE, SKIP_REASON, running_postgres

NODES = [f"n{i}" for i in range(6)]
GRAPH: dict[str, Any] = {
    "nodes": [{"id": each, "type": "logged-step", "data": {"ms": 300}} for each in NODES],
    "edges": [
        {"source": a, "target": b, "data": {"channel": "flow"}}
        for a, b in itertools.pairwise(NODES)
    ],
}


@pytest.fixture
def durable_database() -> Iterator[str]:
    """A database of a server that loses nothing when it is killed."""
    if not IS_THERE:
        pytest.skip(SKIP_REASON)
    with (
        running_postgres("fsync=on", "full_page_writes=on") as server,
        server.new_database() as url,
    ):
        yield url


@pytest.mark.scale
async def test_a_killed_process_loses_nothing_and_does_nothing_twice(
    durable_database: str, tmp_path: Path
) -> None:
    ids: list[str] = []
    with processes(tmp_path) as group:
        run_log = RunLog(group.run_log)
        server = group.start("serve", "--port", "0", PLANWAVE_DATABASE_URL=durable_database)
        for _ in range(FAULTS):
            begun = [start(server.url) for _ in range(4)]
            await all_run_twice(run_log, begun)
            server.kill()
            server.start()
            ids += begun
        async with PostgresStore.open(durable_database, read_only=True) as store:
            histories = {each: await ended(store, each) for each in ids}
    account = account_of(histories, run_log.runs(), NODES)
    assert account.faults() == {}, account
    assert account.run_again > 0, "no fault met a running node"


def start(url: str) -> str:
    answer = httpx2.post(f"{url}/api/execute", json={"graph": GRAPH, "start": True}, timeout=45)
    return answer.json()["execution_id"]


async def all_run_twice(run_log: RunLog, ids: list[str]) -> None:
    """Wait until each execution runs its second node: one that never gets on is set aside as a crash loop."""
    async with asyncio.timeout(60):
        while True:
            runs = Counter(run.execution_id for run in run_log.runs())
            if all(runs[each] > 1 for each in ids):
                return
            await asyncio.sleep(0.02)


async def ended(store: PostgresStore, execution_id: str) -> list[Event]:
    """Return the events of an execution once it has ended."""
    async with asyncio.timeout(120):
        while True:
            record = await store.execution(execution_id)
            if record is not None and record.status in ENDED_STATUSES:
                return await store.events(execution_id)
            await asyncio.sleep(0.1)
