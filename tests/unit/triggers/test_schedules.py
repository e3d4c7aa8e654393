"""Schedules on a clock that a test owns: on time, late, after a restart, and while clocks jump."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from planwave import cron
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.memory import MemoryStore
from planwave.triggers.host import TriggerHost
from planwave.triggers.schedules import MISSED, SKIPPED, Schedules
from tests.support.nodes.held_nodes import HeldNode
from tests.support.service.dependencies import LastingStore, dependencies
from tests.support.virtual_loop import virtual_time

START = datetime(2026, 10, 24, 12, 0, 30, tzinfo=UTC)
HELD = {"id": "echo", "type": "held"}
LONG = {**HELD, "policy": {"timeoutS": 7_200}}
MINUTE_S = 60.0


class Clock:
    """The clock on the wall: it goes with the event loop, and jumps when it is told to."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return START + self.ahead + timedelta(seconds=asyncio.get_running_loop().time())


def schedule_flow(node: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    echo = node or {"id": "echo", "type": "text", "data": {"text": "{{ input.slot }}"}}
    schedule = {"id": "at", "type": "schedule", "data": {"cron": "* * * * *", **data}}
    edge = {"source": "at", "target": "echo", "data": {"channel": "flow"}}
    return {"nodes": [schedule, echo], "edges": [edge]}


class Scheduled:
    """A service with a schedule, and what it started."""

    def __init__(self, service: Service, host: TriggerHost, clock: Clock) -> None:
        self.service, self.host, self.clock = service, host, clock

    async def add(self, flow: dict[str, Any]) -> str:
        saved = await self.service.flows.create("F", graph=flow)
        return (await self.host.create(saved.plan_id)).trigger_id

    async def slots(self) -> list[str]:
        """Return the times for which executions were started, in order, as hour and minute."""
        found = []
        for record in await self.service.executions.list(limit=10_000):
            (created,) = await self.service.executions.events(record.execution_id, limit=1)
            found.append(created.data["inputs"]["at"]["output"]["slot"][11:16])
        return found[::-1]

    async def outcomes(self, trigger_id: str) -> list[tuple[str | None, str]]:
        found = (await self.service.triggers.deliveries([trigger_id])).get(trigger_id, ())
        return [(each.outcome, each.note) for each in found][::-1]


@asynccontextmanager
async def scheduled(
    clock: Clock, store: MemoryStore | None = None, **parts: Any
) -> AsyncIterator[Scheduled]:
    own = dependencies(store=store, now=clock, **parts)
    async with (
        Service(own) as service,
        TriggerHost(service, Settings(limits=own.limits), [Schedules]) as host,
    ):
        yield Scheduled(service, host, clock)


@virtual_time
async def test_each_time_starts_one_execution_with_its_time() -> None:
    async with scheduled(Clock()) as on:
        own = await on.add(schedule_flow(timezone="Europe/Berlin"))
        await asyncio.sleep(3 * MINUTE_S)
        assert await on.slots() == ["12:01", "12:02", "12:03"]
        (record, *_) = await on.service.executions.list()
        (created,) = await on.service.executions.events(record.execution_id, limit=1)
        assert created.data["inputs"]["at"]["output"] == {
            "slot": "2026-10-24T12:03:00+00:00",
            "scheduled_at": "2026-10-24T14:03:00+02:00",
            "timezone": "Europe/Berlin",
            "missed": 0,
        }
        assert created.data["trigger"]["id"] == own


@virtual_time
async def test_interval_starts_executions_too() -> None:
    async with scheduled(Clock()) as on:
        flow = schedule_flow()
        flow["nodes"][0]["data"] = {"everyS": 90}
        await on.add(flow)
        await asyncio.sleep(5 * MINUTE_S)
        assert await on.slots() == ["12:01", "12:03", "12:04"]


@virtual_time
async def test_list_says_the_next_five_times() -> None:
    async with scheduled(Clock()) as on:
        await on.add(schedule_flow(cron="0 7 * * *", timezone="Europe/Berlin"))
        (shown,) = await on.host.as_json(await on.host.page())
        assert shown["details"]["next"] == [
            "2026-10-25T07:00:00+01:00", "2026-10-26T07:00:00+01:00", "2026-10-27T07:00:00+01:00",
            "2026-10-28T07:00:00+01:00", "2026-10-29T07:00:00+01:00",
        ]  # fmt: skip


@virtual_time
async def test_times_closer_than_the_limit_start_nothing() -> None:
    async with scheduled(Clock(), limits=Limits(schedule_gap_s=120)) as on:
        await on.add(schedule_flow())
        await asyncio.sleep(3 * MINUTE_S)
        (shown,) = await on.host.page()
        assert shown.problem == (
            "its times are 60 s apart, less than the limit schedule_gap_s of 120"
        )
        assert await on.slots() == []


@virtual_time
async def test_list_compares_no_times_that_cannot_be_too_close(monkeypatch: Any) -> None:
    async with scheduled(Clock()) as on:
        await on.add(schedule_flow(cron="0 0 29 2 *"))
        monkeypatch.delattr(cron.Schedule, "smallest_gap_s")
        (shown,) = await on.host.page()
        assert shown.problem is None


@virtual_time
async def test_times_missed_while_down_give_one_execution() -> None:
    clock, store = Clock(), LastingStore()
    async with scheduled(clock, store) as on:
        own = await on.add(schedule_flow())
        await asyncio.sleep(MINUTE_S)
    await asyncio.sleep(3 * 60 * MINUTE_S)
    async with scheduled(clock, store) as on:
        await asyncio.sleep(1)
        assert await on.slots() == ["12:01", "15:01"]
        assert await on.outcomes(own) == [
            ("started", ""),
            ("started", "179 earlier times were missed"),
        ]


@virtual_time
async def test_time_that_is_older_than_the_window_is_missed() -> None:
    clock, store = Clock(), LastingStore()
    async with scheduled(clock, store) as on:
        own = await on.add(schedule_flow(cron="0 * * * *"))
    await asyncio.sleep(75 * MINUTE_S)  # it is 13:15: 13:00 is more than ten minutes ago
    async with scheduled(clock, store) as on:
        await asyncio.sleep(1)
        assert await on.slots() == []
        assert await on.outcomes(own) == [(MISSED, "1 earlier time was missed")]
        await asyncio.sleep(60 * MINUTE_S)
        assert await on.slots() == ["14:00"]


@virtual_time
async def test_clock_that_jumps_ahead_gives_one_execution() -> None:
    async with scheduled(Clock()) as on:
        own = await on.add(schedule_flow())
        await asyncio.sleep(MINUTE_S)
        on.clock.ahead = timedelta(days=1)
        await asyncio.sleep(MINUTE_S)
        assert await on.slots() == ["12:01", "12:01", "12:02"]  # of one day and the next
        notes = [note for _, note in await on.outcomes(own) if note]
        assert notes == ["1439 earlier times were missed"]


@virtual_time
async def test_clock_that_is_set_back_starts_no_time_twice() -> None:
    async with scheduled(Clock()) as on:
        await on.add(schedule_flow())
        await asyncio.sleep(5 * MINUTE_S)
        on.clock.ahead = timedelta(minutes=-3)
        await asyncio.sleep(5 * MINUTE_S)
        slots = await on.slots()
        assert slots == sorted(set(slots))
        assert slots == ["12:01", "12:02", "12:03", "12:04", "12:05", "12:06", "12:07"]


@virtual_time
async def test_two_processes_start_each_time_once() -> None:
    clock, store = Clock(), MemoryStore()
    async with scheduled(clock, store) as one, scheduled(clock, store) as other:
        await one.add(schedule_flow())
        assert await other.host.page()
        await other.host.set_enabled((await other.host.page())[0].trigger_id, enabled=True)
        await asyncio.sleep(3 * MINUTE_S)
        assert await one.slots() == ["12:01", "12:02", "12:03"]


@virtual_time
async def test_change_of_the_clock_starts_each_time_once() -> None:
    clock = Clock()
    clock.ahead = datetime(2026, 10, 24, 23, 0, tzinfo=UTC) - START
    async with scheduled(clock) as on:
        await on.add(schedule_flow(cron="30 2 * * *", timezone="Europe/Berlin"))
        await asyncio.sleep(6 * 60 * MINUTE_S)
        assert await on.slots() == ["00:30"]


# -- overlap


@virtual_time
async def test_time_is_skipped_while_the_execution_before_runs() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held]) as on:
        own = await on.add(schedule_flow(HELD))
        await asyncio.sleep(3 * MINUTE_S)
        assert await on.slots() == ["12:01"]
        outcomes = await on.outcomes(own)
        assert [outcome for outcome, _ in outcomes] == ["started", SKIPPED, SKIPPED]
        assert "had not ended" in outcomes[1][1]
        held.release.set()
        await asyncio.sleep(MINUTE_S)
        assert await on.slots() == ["12:01", "12:04"]


@virtual_time
async def test_queued_time_starts_when_the_execution_before_has_ended() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held]) as on:
        await on.add(schedule_flow(HELD, overlap="queue"))
        await asyncio.sleep(2 * MINUTE_S)
        assert await on.slots() == ["12:01"]
        held.release.set()
        await asyncio.sleep(5)
        assert await on.slots() == ["12:01", "12:02"]


@virtual_time
async def test_queued_time_is_not_lost_where_its_listener_starts_again() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held], limits=Limits(run_timeout_s=7_200)) as on:
        flow = schedule_flow(LONG, cron="*/30 * * * *", overlap="queue")
        own = await on.add(flow)
        await asyncio.sleep(75 * MINUTE_S)  # the second time waits for 15 minutes
        assert await on.slots() == ["12:30"]
        await on.host.set_enabled(own, enabled=False)  # as a restart, and as a change of the flow
        await on.host.set_enabled(own, enabled=True)
        await asyncio.sleep(MINUTE_S)
        held.release.set()
        await asyncio.sleep(MINUTE_S)
        assert await on.slots() == ["12:30", "13:00"]


@virtual_time
async def test_queued_time_that_nothing_delays_any_more_is_missed_as_any_other() -> None:
    held, clock, store = HeldNode(), Clock(), MemoryStore()
    flow = schedule_flow(HELD, cron="*/5 * * * *", overlap="queue")
    async with scheduled(clock, store, types=[held]) as on:
        own = await on.add(flow)
        await asyncio.sleep(11 * MINUTE_S)
        await on.host.set_enabled(own, enabled=False)
        held.release.set()
        await asyncio.sleep(31 * MINUTE_S)
        await on.host.set_enabled(own, enabled=True)
        await asyncio.sleep(MINUTE_S)
        assert await on.slots() == ["12:05", "12:40"]


@virtual_time
async def test_execution_before_is_cancelled() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held]) as on:
        await on.add(schedule_flow(HELD, overlap="cancel_previous"))
        await asyncio.sleep(2 * MINUTE_S)
        assert await on.slots() == ["12:01", "12:02"]
        newest, before = await on.service.executions.list()
        assert (newest.status, before.status) == ("executing", "cancelled")
        held.release.set()


@virtual_time
async def test_execution_counts_as_running_after_many_skipped_times() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held], limits=Limits(run_timeout_s=7_200)) as on:
        await on.add(schedule_flow(LONG))
        await asyncio.sleep(40 * MINUTE_S)  # more times than a list of deliveries has
        assert await on.slots() == ["12:01"]
        held.release.set()


@virtual_time
async def test_time_that_comes_again_cancels_nothing() -> None:
    held = HeldNode()
    async with scheduled(Clock(), types=[held]) as on:
        flow = schedule_flow(HELD, cron="*/5 * * * *", overlap="cancel_previous")
        await on.add(flow)
        await asyncio.sleep(11 * MINUTE_S)
        assert await on.slots() == ["12:05", "12:10"]
        on.clock.ahead = timedelta(minutes=-7)  # 12:05 comes again, and then 12:10
        await asyncio.sleep(7 * MINUTE_S)
        assert await on.slots() == ["12:05", "12:10"]
        assert (await on.service.executions.list())[0].status == "executing"
        held.release.set()


@virtual_time
async def test_time_whose_end_was_not_noted_before_a_crash_cancels_nothing() -> None:
    held, clock, store = HeldNode(), Clock(), MemoryStore()
    flow = schedule_flow(HELD, overlap="cancel_previous")
    async with scheduled(clock, store, types=[held]) as on:
        own = await on.add(flow)
        await asyncio.sleep(MINUTE_S)
        await on.service.triggers.set_position(own, "")  # as a crash before that leaves it
        await on.host.set_enabled(own, enabled=False)
        await on.host.set_enabled(own, enabled=True)
        await asyncio.sleep(10)
        assert await on.slots() == ["12:01"]
        (record,) = await on.service.executions.list()
        assert record.status == "executing"
        held.release.set()


@virtual_time
async def test_test_delivery_has_the_present_time() -> None:
    async with scheduled(Clock()) as on:
        own = await on.add(schedule_flow(cron="0 0 1 1 *"))
        record = await on.host.fire(own)
        (created,) = await on.service.executions.events(record.execution_id, limit=1)
        assert created.data["inputs"]["at"]["output"]["slot"] == "2026-10-24T12:00:30+00:00"
        assert (await on.service.triggers.get(own)).position == ""
