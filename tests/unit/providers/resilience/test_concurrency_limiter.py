from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from planwave.providers.resilience.concurrency_limiter import FairConcurrencyLimiter
from tests.support.llm.client_harness import ManualClock
from tests.support.polling import until


class Door:
    """A gate whose calls finish when the test says so; ``entered`` is the order of entry."""

    def __init__(self, concurrency: int, per_minute: int | None = None) -> None:
        self.time = ManualClock()
        self.gate = FairConcurrencyLimiter(
            concurrency, per_minute, clock=self.time.clock, sleep=self.time.sleep
        )
        self.entered: list[str] = []
        self.at: list[float] = []
        self.finish = asyncio.Semaphore(0)

    async def call(self, execution: str, name: str | None = None) -> None:
        async with self.gate.acquire(execution):
            self.entered.append(name or execution)
            self.at.append(self.time.now - 1_000)
            await self.finish.acquire()

    def let_finish(self, count: int) -> None:
        for _ in range(count):
            self.finish.release()


@asynccontextmanager
async def calls(door: Door, *executions: str):
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(door.call(execution, f"{execution}{number}"))
            for number, execution in enumerate(executions)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        yield tasks


async def test_concurrency_is_limited() -> None:
    door = Door(2)
    async with calls(door, "a", "a", "a"):
        assert door.entered == ["a0", "a1"]
        door.let_finish(1)
        await until(lambda: len(door.entered) == 3)
        door.let_finish(2)


async def test_calls_of_one_execution_are_served_in_order() -> None:
    door = Door(1)
    async with calls(door, *"aaaa"):
        door.let_finish(4)
    assert door.entered == ["a0", "a1", "a2", "a3"]


async def test_executions_take_turns() -> None:
    door = Door(1)
    async with calls(door, *"aaaaabbc"):
        door.let_finish(8)
    assert door.entered == ["a0", "a1", "b5", "c7", "a2", "b6", "a3", "a4"]


async def test_calls_per_minute_are_limited() -> None:
    door = Door(10, per_minute=2)
    door.let_finish(5)
    async with calls(door, *"aaaaa"):
        pass
    assert door.at == [0, 0, 60, 60, 120]


async def test_rounding_does_not_exceed_the_rate_limit() -> None:
    door = Door(10, per_minute=1)
    door.time.now = 4.07
    assert (4.07 + 60) - 4.07 < 60
    door.let_finish(4)
    async with calls(door, *"aaaa"):
        pass
    assert all(later - earlier > 59 for earlier, later in pairwise(door.at))


async def test_new_execution_overtakes_a_rate_limited_queue() -> None:
    door = Door(10, per_minute=1)
    door.let_finish(9)
    async with calls(door, *"aaaaaaaab"):
        pass
    assert door.entered.index("b8") <= 3


async def test_longest_pause_applies() -> None:
    door = Door(5)
    door.gate.pause(30)
    door.gate.pause(5)
    door.let_finish(3)
    async with calls(door, *"abc"):
        pass
    assert door.at == [30, 30, 30]


async def test_cancelled_waiter_releases_its_place() -> None:
    door = Door(1)
    async with calls(door, *"abc") as tasks:
        tasks[1].cancel()
        door.let_finish(2)
    assert door.entered == ["a0", "c2"]
    door.let_finish(1)
    await door.call("d")
    assert door.entered[-1] == "d"


async def test_waiter_cancelled_at_admission_passes_its_place_on() -> None:
    door = Door(1)
    async with calls(door, *"abc") as tasks:
        door.let_finish(3)
        await until(lambda: tasks[0].done())
        tasks[1].cancel()
    assert "c2" in door.entered


async def test_call_cancelled_during_pause_releases_its_place() -> None:
    never = asyncio.Event()
    time = ManualClock()

    async def forever(_: float) -> None:
        await never.wait()

    gate = FairConcurrencyLimiter(1, None, clock=time.clock, sleep=forever)
    gate.pause(10)

    async def enter() -> None:
        async with gate.acquire("a"):
            raise AssertionError("the gate is shut")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(enter())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    time.now += 20
    entered = []
    async with asyncio.timeout(30), gate.acquire("b"):
        entered.append("b")
    assert (entered, task.cancelled()) == (["b"], True)


async def test_failing_call_releases_its_place() -> None:
    door = Door(1)
    with pytest.raises(ValueError, match="boom"):
        async with door.gate.acquire("a"):
            raise ValueError("boom")
    door.let_finish(1)
    await door.call("a")


async def test_call_not_sent_uses_no_place_and_no_rate() -> None:
    door = Door(1, per_minute=1)
    for _ in range(3):
        async with door.gate.acquire("a", lambda: False) as goes:
            assert not goes
    door.let_finish(1)
    await door.call("a")
    assert door.at == [0]
