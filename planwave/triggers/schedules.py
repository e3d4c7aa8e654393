"""Schedules: an execution for each time of a cron expression or an interval, and never two."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from planwave.cron import FINEST_CRON_S, Schedule, due_times, next_times, read_schedule
from planwave.errors import Conflict, NotFound
from planwave.service.triggers.trigger_service import Trigger
from planwave.triggers.adapter import Deliveries, TriggerAdapter, running_deliveries

if TYPE_CHECKING:
    from planwave.service.triggers.running import RunningDelivery

SCHEDULE: Final = "schedule"
SKIPPED: Final = "skipped"
MISSED: Final = "missed"
_SHOWN: Final = 5
_MOST_COUNTED: Final = 10_000
"""Missed times that are counted; of more, it is said that there were at least so many."""
_LONGEST_SLEEP_S: Final = 30.0
"""The timer of the event loop does not follow the clock: it is read again after so long at most."""


class Schedules(TriggerAdapter):
    """The adapter of ``schedule`` nodes.

    A time is a delivery with the time as its key, so that neither a restart, nor a second process,
    nor a clock that was set back starts it twice. ``trigger.position`` is the last time that was seen to,
    and after a space the one that is queued, if one is.
    """

    node_type = SCHEDULE
    listens = True

    def problem(self, trigger: Trigger) -> str | None:
        now, least_s = self.service.now(), self.service.limits.schedule_gap_s
        schedule = _schedule_of(trigger, now)
        if schedule.cron is not None and least_s <= FINEST_CRON_S:
            return None  # to compare its times takes some 10 ms, and lists show many schedules
        gap_s = schedule.smallest_gap_s(now)
        if gap_s < least_s:
            return f"its times are {gap_s:g} s apart, less than the limit schedule_gap_s of {least_s:g}"
        return None

    def details(self, trigger: Trigger) -> dict[str, Any]:
        now = self.service.now()
        return {"next": next_times(_schedule_of(trigger, now), now, _SHOWN)}

    def test_values(self, trigger: Trigger, value: Any) -> Mapping[str, Any]:
        now = self.service.now()
        return _values(trigger, _schedule_of(trigger, now), now, 0)

    async def listen(self, trigger: Trigger, deliveries: Deliveries) -> None:
        schedule = _schedule_of(trigger, self.service.now())
        seen, _, queued = (trigger.position or trigger.created_at).partition(" ")
        position = datetime.fromisoformat(seen)
        if queued:
            position = await self._take_up(trigger, deliveries, schedule, position, queued)
        while True:
            now = self.service.now()
            # A clock that was set back sees times again: their deliveries are known.
            position = min(position, now)
            slot = await self._run_due(trigger, deliveries, schedule, position, now)
            if slot is not None:
                position = slot
                await deliveries.set_position(position.isoformat())
            else:
                await self._sleep_until(schedule.next_after(position))

    async def _take_up(
        self,
        trigger: Trigger,
        deliveries: Deliveries,
        schedule: Schedule,
        position: datetime,
        queued: str,
    ) -> datetime:
        """Process a time that was queued when the listener ended, if it would wait still.

        Returns:
            The last time that was seen to.
        """
        slot = datetime.fromisoformat(queued)
        if not await self._running_before(trigger, slot):
            return position
        await self._start(trigger, deliveries, schedule, position, slot, 0)
        await deliveries.set_position(slot.isoformat())
        return slot

    async def _run_due(
        self,
        trigger: Trigger,
        deliveries: Deliveries,
        schedule: Schedule,
        position: datetime,
        now: datetime,
    ) -> datetime | None:
        """Process the times since the last one; return the last of them, None if there is none.

        Only the last one runs, and only within the catch-up window; the others were missed.
        """
        count, last = due_times(schedule, position, now, _MOST_COUNTED)
        if last is None:
            return None
        window = timedelta(seconds=self.service.limits.schedule_catch_up_s)
        _, recent = due_times(schedule, max(position, now - window), now, _MOST_COUNTED)
        if recent is None:
            await deliveries.record(last.isoformat(), MISSED, _missed_note(count))
            return max(last, now - window)
        await self._start(trigger, deliveries, schedule, position, recent, count - 1)
        return recent

    async def _start(
        self,
        trigger: Trigger,
        deliveries: Deliveries,
        schedule: Schedule,
        position: datetime,
        slot: datetime,
        missed: int,
    ) -> None:
        """Start the execution of a time, unless one before is in its way."""
        if await self._may_start(trigger, deliveries, position, slot):
            values = _values(trigger, schedule, slot, missed)
            note = _missed_note(missed) if missed else ""
            await deliveries.start(slot.isoformat(), values, note=note)

    async def _may_start(
        self, trigger: Trigger, deliveries: Deliveries, position: datetime, slot: datetime
    ) -> bool:
        """Return whether a time starts an execution although one before may still run."""
        earlier = await self._running_before(trigger, slot)
        if not earlier:
            return True
        match trigger.data.overlap:
            case "cancel_previous":
                for each in earlier:
                    with suppress(Conflict, NotFound):  # it has ended by now
                        await self.service.executions.cancel(
                            each.execution_id, "the next time of its schedule came"
                        )
                return True
            case "queue":
                await deliveries.set_position(f"{position.isoformat()} {slot.isoformat()}")
                for each in earlier:
                    async for _ in self.service.executions.watch(each.execution_id):
                        pass
                return True
            case _:
                note = f"execution {earlier[0].execution_id} had not ended"
                await deliveries.record(slot.isoformat(), SKIPPED, note)
                return False

    async def _running_before(self, trigger: Trigger, slot: datetime) -> list[RunningDelivery]:
        """Return what earlier times started and has not ended.

        A time comes again after a crash, and where the clock is set back: its own execution, and
        those of later times, are not in its way.
        """
        deliveries = await running_deliveries(self.service, trigger)
        return [each for each in deliveries if datetime.fromisoformat(each.key) < slot]

    async def _sleep_until(self, moment: datetime) -> None:
        left_s = (moment - self.service.now()).total_seconds()
        await asyncio.sleep(min(max(left_s, 0.0), _LONGEST_SLEEP_S))


def _schedule_of(trigger: Trigger, now: datetime) -> Schedule:
    data = trigger.data
    return read_schedule(data.cron, data.every_s, data.timezone, now)


def _values(trigger: Trigger, schedule: Schedule, slot: datetime, missed: int) -> dict[str, Any]:
    local = slot.astimezone(schedule.zone).isoformat(timespec="seconds")
    value = {
        "slot": slot.isoformat(timespec="seconds"),
        "scheduled_at": local,
        "timezone": trigger.data.timezone,
        "missed": missed,
    }
    return {"output": value}


def _missed_note(count: int) -> str:
    at_least = "at least " if count >= _MOST_COUNTED - 1 else ""
    return (
        f"{at_least}{count} earlier times were missed"
        if count != 1
        else "1 earlier time was missed"
    )
