"""What one process at a time does, by two services over one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from planwave.service.leadership import Leader
from planwave.service.maintenance import retention_task
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.sqlite.memory import MemoryStore
from planwave.triggers.host import TriggerHost
from tests.contract.carriers.conftest import until_async
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.polling import until
from tests.support.service.dependencies import dependencies
from tests.support.storage.postgres_server import PostgresServer
from tests.unit.storage.postgres.test_leader_lock import end_leader
from tests.unit.triggers.test_host import Bell, Bells


class Work:
    """Notes when it is entered and left, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.log: list[str] = []
        self.failures = failures

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.log.append("open")
        if self.failures:
            self.failures -= 1
            raise ValueError("it broke")
        try:
            yield
        finally:
            self.log.append("closed")


async def test_a_process_of_its_own_does_its_work_at_once_and_its_errors_reach_the_caller() -> None:
    leader, work = Leader(MemoryStore()), Work()
    async with leader.lead(work.open):
        assert work.log == ["open"]
    assert work.log == ["open", "closed"]
    with pytest.raises(ValueError, match="it broke"):
        async with leader.lead(Work(failures=1).open):
            pass


async def test_work_goes_over_to_another_process(
    postgres: PostgresServer, database_url: str
) -> None:
    stores = PostgresStore.open(database_url), PostgresStore.open(database_url)
    first, second = Work(), Work()
    leaders = [Leader(store) for store in stores]
    leaders[0].open()
    await stores[0].leadership.gained()
    leaders[1].open()
    async with leaders[1].lead(second.open):
        async with leaders[0].lead(first.open):
            assert (first.log, second.log) == (["open"], [])
            await asyncio.to_thread(end_leader, postgres)
            await until(lambda: first.log[:2] == ["open", "closed"])
            await until(lambda: len(first.log) + len(second.log) == 3)
        await stores[0].close()
        await until(lambda: second.log[-1:] == ["open"])
    assert second.log[-1] == "closed"
    await stores[1].close()


async def test_work_that_fails_is_opened_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("planwave.service.leadership._AFTER_FAILURE_S", 0.01)
    store, work = PostgresStore.open(database_url), Work(failures=2)
    leader = Leader(store)
    leader.open()
    await store.leadership.gained()
    async with leader.lead(work.open):
        await until(lambda: len(work.log) == 3)
    assert work.log == ["open", "open", "open", "closed"]
    assert "it broke" in caplog.text
    await store.close()


async def test_one_of_two_processes_listens_for_a_trigger_that_the_other_one_changed(
    database_url: str,
) -> None:
    """The leader hears of the trigger that another process makes, disables and deletes."""
    services = [
        Service(dependencies(store=PostgresStore.open(database_url), types=[Bell]))
        for _ in range(2)
    ]
    async with services[0] as leading, services[1] as other:
        await until(lambda: leading.leader.leads or other.leader.leads)
        if other.leader.leads:
            leading, other = other, leading
        hosts = [TriggerHost(each, Settings(), [Bells]) for each in (leading, other)]
        async with hosts[0], hosts[1]:
            bells = [host.adapter("bell") for host in hosts]
            assert isinstance(bells[0], Bells)
            assert isinstance(bells[1], Bells)
            graph = {"nodes": [{"id": "bell", "type": "bell"}], "edges": []}
            flow = await other.flows.create("Ring", graph=graph)
            trigger = await hosts[1].create(flow.plan_id)
            await until(lambda: bells[0].tones == ["c"])
            await hosts[1].set_enabled(trigger.trigger_id, enabled=False)
            await until(lambda: not hosts[0]._listeners)
            assert bells[1].tones == []


async def test_old_executions_are_deleted_by_the_process_that_leads_next(
    postgres: PostgresServer, database_url: str
) -> None:
    """The leader prunes when it begins to lead, and daily; another process does not."""
    stores = PostgresStore.open(database_url), PostgresStore.open(database_url)
    services = [Service(dependencies(store=each)) for each in stores]
    async with services[0], services[1]:
        pruned: list[int] = []

        async def prune(number: int, before: str) -> int:
            pruned.append(number)
            return await services[number].maintenance.prune(before)

        leaders = [each.leader for each in services]
        leaders[0].open()
        await stores[0].leadership.gained()
        leaders[1].open()
        works = [partial(retention_task, partial(prune, each), 0) for each in (0, 1)]
        async with leaders[1].lead(works[1]):
            async with leaders[0].lead(works[0]):
                await until(lambda: pruned == [0])
                record = await services[0].executions.execute(make_plan(make_graph(text_node("a"))))
                await services[0].executions.wait(record.execution_id)
            await stores[0].close()
            await until(lambda: pruned == [0, 1])
            await until_async(lambda: _is_gone(stores[1], record.execution_id))


async def _is_gone(store: PostgresStore, execution_id: str) -> bool:
    return await store.execution(execution_id) is None
