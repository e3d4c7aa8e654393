from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from planwave.events import ExecutionState, OpenRequest
from planwave.service.executions.answer_deadlines import AnswerDeadlines
from tests.support.virtual_loop import virtual_time

START = datetime(2026, 1, 1, tzinfo=UTC)


def asking(**timeouts: float | None) -> ExecutionState:
    since = START.isoformat()
    requests = {name: OpenRequest(name, name, {}, since, s) for name, s in timeouts.items()}
    return ExecutionState("x1", requests=requests)


async def woken(state: ExecutionState, now: datetime = START) -> list[tuple[float, datetime]]:
    """When an execution is woken, in seconds from now, and what for."""
    loop = asyncio.get_running_loop()
    began, found = loop.time(), asyncio.Event()
    wakes: list[tuple[float, datetime]] = []

    def wake(execution_id: str, until: datetime) -> None:
        assert execution_id == "x1"
        wakes.append((round(loop.time() - began, 3), until))
        found.set()

    expiry = AnswerDeadlines(lambda: now, wake)
    expiry.watch(state)
    await found.wait()
    return wakes


@virtual_time
async def test_earliest_deadline_wakes_the_execution() -> None:
    state = asking(a=90, b=30, c=None, too_far=1e300)
    assert await woken(state) == [(30, START + timedelta(seconds=30))]


@virtual_time
async def test_elapsed_time_shortens_the_wait() -> None:
    later = START + timedelta(seconds=20)
    assert await woken(asking(a=30), later) == [(10, START + timedelta(seconds=30))]
    assert (await woken(asking(a=30), later + timedelta(days=1)))[0][0] == 0


@virtual_time
async def test_clock_set_back_does_not_lengthen_the_wait() -> None:
    earlier = START - timedelta(minutes=10)
    assert await woken(asking(a=30), earlier) == [(30, START + timedelta(seconds=30))]


@virtual_time
async def test_wait_of_months_is_supported() -> None:
    months = 100 * 86_400.0
    assert (await woken(asking(a=months)))[0][0] == months


@virtual_time
async def test_forgotten_execution_is_not_woken() -> None:
    wakes: list[str] = []
    expiry = AnswerDeadlines(lambda: START, lambda execution_id, _: wakes.append(execution_id))
    expiry.watch(asking(a=1))
    expiry.forget("x1")
    expiry.watch(asking(a=1))
    expiry.close()
    expiry.watch(asking(a=None))
    await asyncio.sleep(10)
    assert wakes == []
