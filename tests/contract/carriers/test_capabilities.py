"""Executions that only some processes can drive: each has a task queue of its own, and a process the same slots for all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from planwave.service.carriers.carrier import Carrier, Rest
from tests.contract.carriers.test_carriers import (
    LEASE_S,
    Driven,
    serving,
    settings_of,
    stays,
    until,
)

LACKS = Rest("interrupted", needs="local")


class Queue:
    """Makes carriers of several processes with one task queue."""

    def __init__(self, address: str, task_queue: str) -> None:
        self.settings = settings_of(address, task_queue)

    def id(self, name: str) -> str:
        """Return an id of this test alone: tests share a server."""
        return f"{self.settings.task_queue}-{name}"

    def make(self, *capabilities: str) -> Carrier:
        # Not above: the SDK may be missing.
        from planwave.service.carriers.temporal import TemporalCarrier
        from planwave.service.carriers.watchdog import Watchdog
        from planwave.storage.records import StoreStats

        watchdog = Watchdog(LEASE_S * 20, StoreStats, lambda code: None)
        now = lambda: datetime.now(UTC)  # noqa: E731
        return TemporalCarrier(self.settings, watchdog, 5.0, now, capabilities)


@pytest.fixture
def queue(temporal_address: str, task_queue: str) -> Queue:
    return Queue(temporal_address, task_queue)


async def submit(carrier: Carrier, *ids: str, needs: str | None = None) -> None:
    for each in ids:
        await carrier.submit(each, "operator", has_started=False, needs=needs)


async def test_a_process_without_a_capability_is_handed_nothing_that_needs_it(queue: Queue) -> None:
    plain, capable = Driven(), Driven()
    without = queue.make()
    async with serving(without, plain):
        await submit(without, *(queue.id(f"local-{n}") for n in range(4)), needs="local")
        await stays(lambda: plain.ids == [])
        async with serving(queue.make("local"), capable):
            await submit(without, *(queue.id(f"any-{n}") for n in range(12)))
            await until(lambda: len(plain.rested) + len(capable.rested) == 16)
    bound = {queue.id(f"local-{n}") for n in range(4)}
    assert not bound & {*plain.ids}
    assert bound <= {*capable.ids}


async def test_what_needs_a_capability_waits_until_a_process_has_it_again(queue: Queue) -> None:
    own = queue.id("own")
    plain, gone, back = Driven(), Driven(LACKS, is_held=True), Driven()
    without = queue.make()
    async with serving(without, plain):
        await submit(without, own, needs="local")
        async with serving(queue.make("local"), gone) as task:
            await until(lambda: gone.ids == [own])
            task.cancel()  # it goes down, and leaves what it drives
            gone.gate.set()
        await submit(without, own, needs="local")
        await stays(lambda: plain.ids == [], LEASE_S * 2)
        async with serving(queue.make("local"), back):
            await until(lambda: own in back.rested)
    assert plain.ids == []


async def test_what_only_a_run_shows_to_need_a_capability_is_handed_on_and_stays_there(
    queue: Queue,
) -> None:
    own = queue.id("own")
    plain, capable = Driven(LACKS), Driven(Rest("paused"), Rest("completed"))
    without = queue.make()
    async with serving(without, plain):
        await submit(without, own)
        await until(lambda: plain.rested == [own])
        await stays(lambda: plain.ids == [own])
        async with serving(queue.make("local"), capable):
            await until(lambda: capable.rested == [own])
            await stays(lambda: len(capable.ids) == 1)
            await submit(without, own)  # a command that does not know of it
            await until(lambda: capable.rested == [own, own])
    assert plain.ids == [own]


@pytest.mark.parametrize("needs", [None, "local"])
async def test_an_empty_queue_holds_no_slot(queue: Queue, needs: str | None) -> None:
    driven, capable = Driven(), queue.make("local")
    async with serving(capable, driven, slots=1):
        await submit(capable, *(queue.id(f"{n}") for n in range(3)), needs=needs)
        await until(lambda: len(driven.rested) == 3)
    assert driven.most == 1


async def test_the_queues_of_a_process_share_its_slots(queue: Queue) -> None:
    driven, capable = Driven(is_held=True), queue.make("local")
    await submit(capable, *(queue.id(f"any-{n}") for n in range(8)))
    await submit(capable, *(queue.id(f"local-{n}") for n in range(8)), needs="local")
    async with serving(capable, driven, slots=4):
        await until(lambda: len(driven.ids) >= 4)
        await stays(lambda: 4 <= len(driven.ids) <= 5)
        driven.gate.set()
        await until(lambda: len(driven.rested) == 16)
    assert driven.most <= 5, "both polls may bring one for the last slot"


async def test_workflows_that_an_older_version_started_go_on(queue: Queue) -> None:
    own = queue.id("own")
    from temporalio.client import Client

    from planwave.service.carriers.execution_workflow import WORKFLOW, arguments

    assert arguments(own, LEASE_S, None) == [own, LEASE_S], "as older workers take them"
    client = await Client.connect(queue.settings.address)
    driven, carrier = Driven(Rest("paused"), Rest("completed")), queue.make("local")
    await client.start_workflow(
        WORKFLOW,
        args=[own, LEASE_S],
        id=own,
        task_queue=queue.settings.task_queue,
        task_timeout=timedelta(seconds=LEASE_S),
    )
    async with serving(carrier, driven):
        await until(lambda: driven.rested == [own])
        await submit(carrier, own, needs="local")
        await until(lambda: driven.rested == [own, own])
        assert await client.get_workflow_handle(own).result() == "completed"


async def test_a_process_that_goes_down_ends_the_executions_of_all_its_queues(queue: Queue) -> None:
    driven, carrier = Driven(is_held=True), queue.make("local")
    await submit(carrier, queue.id("any"))
    await submit(carrier, queue.id("bound"), needs="local")
    async with serving(carrier, driven) as task:
        await until(lambda: len(driven.ids) == 2)
        task.cancel()
        await stays(lambda: not task.done() and not driven.rested)
        driven.gate.set()
        async with asyncio.timeout(LEASE_S * 6):
            await task
    assert sorted(driven.rested) == [queue.id("any"), queue.id("bound")]


async def test_what_is_over_waits_for_no_process_that_could_drive_it(queue: Queue) -> None:
    from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

    own, plain, carrier = queue.id("own"), Driven(), queue.make()
    async with serving(carrier, plain):
        await submit(carrier, own, needs="local")
        await stays(lambda: plain.ids == [])
        await carrier.drop(own)
        handle = (await Client.connect(queue.settings.address)).get_workflow_handle(own)
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
        await carrier.drop(own)
        await carrier.drop(queue.id("unknown"))
    assert plain.ids == []
