"""What a server that gives no answer, and breaks no connection, must not do: keep a process from ending."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.service.service import Service
from planwave.storage.postgres.connection import connect
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.paths import ROOT
from tests.support.polling import until
from tests.support.scale.relay import Relay
from tests.support.service.dependencies import dependencies
from tests.support.storage.postgres_server import PostgresServer

AT = "2026-01-01T00:00:00.000000Z"
CLOSE_S = 0.3
SOON_S = 10.0
"""Well below the 30 s after which a test is ended, and above what a busy machine takes."""


def record(name: str = "x1") -> ExecutionRecord:
    return ExecutionRecord(name, None, "t", "g", "starting", AT)


def log(seq: int) -> Event:
    return Event("x1", seq, AT, "node.log", "a", 1, {})


async def outcome(of: Awaitable[Any]) -> Any:
    try:
        return await of
    except PlanwaveError as error:
        return error.code


@pytest.fixture
def relay(postgres: PostgresServer) -> Iterator[Relay]:
    with Relay(postgres.port) as running:
        yield running


@pytest.fixture
def relayed_url(postgres: PostgresServer, database_url: str, relay: Relay) -> str:
    """The URL of the database through the relay."""
    return database_url.replace(f":{postgres.port}/", f":{relay.port}/")


@pytest.fixture(autouse=True)
def _gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planwave.storage.postgres.store.CLOSE_S", CLOSE_S)


async def test_a_store_closes_while_writes_and_reads_wait_for_a_frozen_server(
    database_url: str, relayed_url: str, relay: Relay
) -> None:
    store = PostgresStore.open(f"{relayed_url}?connect_timeout=2")
    await store.create_execution(record(), [log(1)])
    await store.plans()
    relay.cut()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(outcome(store.append("x1", 1, [log(2)])))]
        # More than there are threads.
        waiting += [group.create_task(outcome(store.events("x1"))) for _ in range(9)]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < SOON_S
    assert {each.result() for each in waiting} == {"store-unreachable"}
    assert await outcome(store.events("x1")) == "store-closed"
    async with PostgresStore.open(database_url) as after:
        assert [each.seq for each in await after.events("x1")] in ([1], [1, 2])


async def test_a_store_closes_where_only_its_beat_waits_for_a_frozen_server(
    relayed_url: str, relay: Relay
) -> None:
    store = PostgresStore.open(relayed_url, lease_s=0.1)
    relay.cut()
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await store.close()
    assert time.monotonic() - began < SOON_S


async def test_what_waits_for_a_frozen_server_ends_where_a_close_is_expected(
    relayed_url: str, relay: Relay
) -> None:
    store = PostgresStore.open(relayed_url)
    await store.create_execution(record(), [])
    await store.append("x1", 1, [log(1)])
    store.expect_close()
    await asyncio.sleep(2 * CLOSE_S)
    await store.append("x1", 1, [log(2)])  # a server that answers is not given up
    relay.cut()
    async with asyncio.timeout(SOON_S):
        assert await outcome(store.append("x1", 1, [log(3)])) == "store-unreachable"
        await store.close()


async def test_a_service_is_left_while_the_document_of_an_execution_waits_for_a_frozen_server(
    relayed_url: str, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore.open(relayed_url)
    written = store.set_document_seqs

    async def set_document_seqs(*args: Any) -> list[str]:
        relay.cut()
        return await written(*args)

    monkeypatch.setattr(store, "set_document_seqs", set_document_seqs)
    graph = make_graph(text_node("a"))
    async with Service(dependencies(graph, store=store)) as service:
        await service.executions.execute(make_plan(graph))
        await until(lambda: service.executions.driver.running == 0)
        began = time.monotonic()
    assert time.monotonic() - began < SOON_S


async def test_a_frozen_server_counts_as_unreachable_until_it_answers(
    relayed_url: str, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("SILENT_S", 0.3), ("READ_S", 0.5)):
        monkeypatch.setattr(f"planwave.storage.postgres.store.{name}", seconds)
    async with PostgresStore.open(relayed_url) as store:
        await store.create_execution(record(), [log(1)])
        await store.plans()
        relay.cut()
        async with asyncio.TaskGroup() as group:
            appended = group.create_task(store.append("x1", 1, [log(2)]))
            await until(lambda: store.stats.status == "store-unreachable")
            assert await outcome(store.plans()) == "store-unreachable"
            reads = [group.create_task(outcome(store.events("x1"))) for _ in range(9)]
            for each in reads:
                assert await each == "store-unreachable"
            assert not appended.done()
            relay.restore()
        assert store.stats.status == "ok"
        while await outcome(store.plans()) == "store-unreachable":
            pass  # each takes some time
        assert [each.seq for each in await store.events("x1")] == [1, 2]


async def test_a_frozen_server_counts_as_unreachable_also_where_nothing_is_written(
    relayed_url: str, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.storage.postgres.store.SILENT_S", 0.2)
    async with PostgresStore.open(relayed_url, lease_s=0.3) as store:
        assert store.stats.status == "ok"
        relay.cut()
        await until(lambda: store.stats.status == "store-unreachable")
        relay.restore()
        await until(lambda: store.stats.status == "ok")


async def test_what_is_queued_is_stored_while_the_server_answers(database_url: str) -> None:
    store = PostgresStore.open(database_url)
    await store.create_execution(record(), [])
    async with asyncio.TaskGroup() as group:
        for seq in range(1, 51):
            group.create_task(store.append("x1", 1, [log(seq)]))
        await asyncio.sleep(0)
        await store.close()
    async with PostgresStore.open(database_url) as after:
        assert len(await after.events("x1")) == 50


READS_AND_ENDS = """
import asyncio, sys
from planwave.storage.postgres import store as module
from planwave.storage.postgres.store import PostgresStore

module.CLOSE_S = 0.3

async def main() -> None:
    async with PostgresStore.open(sys.argv[1], read_only=True) as store:
        await store.plans()
        print("ready", flush=True)
        sys.stdin.readline()
        async with asyncio.timeout(0.2):
            await store.plans()

try:
    asyncio.run(main())
except TimeoutError:
    print("ended", flush=True)
"""


def test_a_process_ends_whose_reads_wait_for_a_frozen_server(
    relayed_url: str, relay: Relay
) -> None:
    command = [sys.executable, "-c", READS_AND_ENDS, relayed_url]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        relay.cut()
        process.stdin.write("\n")
        process.stdin.flush()
        try:
            assert process.wait(2 * SOON_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("own", "used"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_commits_are_as_durable_as_the_operator_wants_and_on_disk_at_least(
    database_url: str, own: str, used: str
) -> None:
    connection = connect(f"{database_url}?options=-csynchronous_commit%3D{own}")
    assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == used
    connection.close()
    connection.engine.dispose()


def test_transactions_see_what_was_committed_before_each_statement(database_url: str) -> None:
    """Locks are of no use in a transaction that sees what was there before it waited."""
    own = "default_transaction_isolation%3Dserializable"
    connection = connect(f"{database_url}?options=-c{own}")
    connection.exec_driver_sql("BEGIN")
    assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
    connection.exec_driver_sql("ROLLBACK")
    connection.close()
    connection.engine.dispose()
