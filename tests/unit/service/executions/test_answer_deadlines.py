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
async def test_an_execution_is_woken_when_the_first_of_its_requests_runs_out() -> None:
    state = asking(a=90, b=30, c=None)
    assert await woken(state) == [(30, START + timedelta(seconds=30))]


@virtual_time
async def test_what_has_passed_since_it_asked_counts() -> None:
    later = START + timedelta(seconds=20)
    assert await woken(asking(a=30), later) == [(10, START + timedelta(seconds=30))]
    assert (await woken(asking(a=30), later + timedelta(days=1)))[0][0] == 0


@virtual_time
async def test_nothing_waits_longer_than_it_was_to_where_the_clock_was_set_back() -> None:
    earlier = START - timedelta(minutes=10)
    assert await woken(asking(a=30), earlier) == [(30, START + timedelta(seconds=30))]


@virtual_time
async def test_a_wait_of_months_is_waited_to_its_end() -> None:
    months = 100 * 86_400.0
    assert (await woken(asking(a=months)))[0][0] == months


@virtual_time
async def test_what_is_forgotten_wakes_nobody() -> None:
    wakes: list[str] = []
    expiry = AnswerDeadlines(lambda: START, lambda execution_id, _: wakes.append(execution_id))
    expiry.watch(asking(a=1))
    expiry.forget("x1")
    expiry.watch(asking(a=1))
    expiry.close()
    expiry.watch(asking(a=None))
    await asyncio.sleep(10)
    assert wakes == []
