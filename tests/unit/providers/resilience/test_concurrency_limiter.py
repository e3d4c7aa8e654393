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


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    door = Door(2)
    async with calls(door, "a", "a", "a"):
        assert door.entered == ["a0", "a1"]
        door.let_finish(1)
        await until(lambda: len(door.entered) == 3)
        door.let_finish(2)


async def test_one_execution_is_served_first_come_first_served() -> None:
    door = Door(1)
    async with calls(door, *"aaaa"):
        door.let_finish(4)
    assert door.entered == ["a0", "a1", "a2", "a3"]


async def test_executions_take_turns_however_many_calls_one_of_them_has() -> None:
    door = Door(1)
    async with calls(door, *"aaaaabbc"):
        door.let_finish(8)
    assert door.entered == ["a0", "a1", "b5", "c7", "a2", "b6", "a3", "a4"]


async def test_a_rate_limit_lets_so_many_start_in_any_minute() -> None:
    door = Door(10, per_minute=2)
    door.let_finish(5)
    async with calls(door, *"aaaaa"):
        pass
    assert door.at == [0, 0, 60, 60, 120]


async def test_a_minute_that_ends_by_a_rounding_error_lets_no_crowd_start() -> None:
    door = Door(10, per_minute=1)
    door.time.now = 4.07
    assert (4.07 + 60) - 4.07 < 60
    door.let_finish(4)
    async with calls(door, *"aaaa"):
        pass
    assert all(later - earlier > 59 for earlier, later in pairwise(door.at))


async def test_a_late_execution_passes_the_queue_of_a_rate_limited_one() -> None:
    door = Door(10, per_minute=1)
    door.let_finish(9)
    async with calls(door, *"aaaaaaaab"):
        pass
    assert door.entered.index("b8") <= 3


async def test_a_pause_holds_everybody_and_a_shorter_one_does_not_end_it() -> None:
    door = Door(5)
    door.gate.pause(30)
    door.gate.pause(5)
    door.let_finish(3)
    async with calls(door, *"abc"):
        pass
    assert door.at == [30, 30, 30]


async def test_a_cancelled_waiter_gives_up_its_place_and_loses_nobody_elses() -> None:
    door = Door(1)
    async with calls(door, *"abc") as tasks:
        tasks[1].cancel()
        door.let_finish(2)
    assert door.entered == ["a0", "c2"]
    door.let_finish(1)
    await door.call("d")
    assert door.entered[-1] == "d"


async def test_a_waiter_cancelled_in_the_moment_it_is_let_in_passes_the_place_on() -> None:
    door = Door(1)
    async with calls(door, *"abc") as tasks:
        door.let_finish(3)
        await until(lambda: tasks[0].done())
        tasks[1].cancel()
    assert "c2" in door.entered


async def test_a_call_cancelled_while_the_provider_pauses_frees_the_door() -> None:
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
    async with gate.acquire("b"):
        pass


async def test_a_failing_call_gives_its_place_back() -> None:
    door = Door(1)
    with pytest.raises(ValueError, match="boom"):
        async with door.gate.acquire("a"):
            raise ValueError("boom")
    door.let_finish(1)
    await door.call("a")


async def test_who_is_not_let_go_at_the_door_holds_no_place_and_counts_for_nothing() -> None:
    door = Door(1, per_minute=1)
    for _ in range(3):
        async with door.gate.acquire("a", lambda: False) as goes:
            assert not goes
    door.let_finish(1)
    await door.call("a")
    assert door.at == [0]
