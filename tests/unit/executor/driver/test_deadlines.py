"""One timer for all deadlines."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from planwave.executor.driver.deadlines import DeadlineTimers
from tests.support.virtual_loop import VirtualLoop


@given(st.lists(st.integers(0, 50), max_size=12))
def test_deadlines_come_when_they_are_due_and_in_order(delays: list[int]) -> None:
    async def scene() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        came: list[tuple[float, int]] = []
        deadlines = DeadlineTimers[int](loop, lambda what: came.append((loop.time(), what)))
        for number, delay in enumerate(delays):
            deadlines.after(delay, number)
        await asyncio.sleep(100)
        return came

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        came = runner.run(scene())
    due = sorted((delay, number) for number, delay in enumerate(delays))
    assert [what for _, what in came] == [number for _, number in due]
    assert all(abs(at - delays[what]) < 1e-3 for at, what in came)


def test_closed_deadlines_never_come() -> None:
    async def scene() -> list[int]:
        came: list[int] = []
        deadlines = DeadlineTimers[int](asyncio.get_running_loop(), came.append)
        deadlines.close()
        deadlines.after(5, 1)
        deadlines.after(3, 2)
        deadlines.close()
        await asyncio.sleep(10)
        return came

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(scene()) == []


def test_a_deadline_may_set_another() -> None:
    async def scene() -> list[float]:
        loop = asyncio.get_running_loop()
        came: list[float] = []

        def due(left: int) -> None:
            came.append(round(loop.time(), 3))
            if left:
                deadlines.after(1, left - 1)

        deadlines = DeadlineTimers[int](loop, due)
        deadlines.after(1, 2)
        await asyncio.sleep(10)
        return came

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(scene()) == [1.0, 2.0, 3.0]
