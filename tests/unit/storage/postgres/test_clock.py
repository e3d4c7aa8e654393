"""The clock of the database: all processes go by it, whatever the wall clock of their machine says."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from planwave.storage.postgres import clock as clock_module
from planwave.storage.postgres.clock import ServerClock
from planwave.storage.postgres.store import PostgresStore

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock; a test moves it."""
    seconds = [100.0]
    monkeypatch.setattr(clock_module, "monotonic", lambda: seconds[0])
    return seconds


def test_the_time_of_the_server_goes_on_between_two_answers(passed: list[float]) -> None:
    clock = ServerClock()
    clock.set(NOON, asked=99, answered=101)
    assert clock.now() == NOON
    passed[0] += 7.5
    assert clock.now() == NOON + timedelta(seconds=7.5)


def test_an_answer_that_came_late_changes_nothing_that_it_does_not_contradict(
    passed: list[float],
) -> None:
    clock = ServerClock()
    clock.set(NOON, asked=100, answered=100)
    clock.set(NOON + timedelta(seconds=3), asked=100, answered=160)
    assert clock.now() == NOON
    clock.set(NOON + timedelta(seconds=3), asked=101, answered=102)
    assert clock.now() == NOON + timedelta(seconds=1), (
        "between 1 and 2 s ahead: as little as can be"
    )
    clock.set(NOON - timedelta(minutes=10), asked=100, answered=100)
    assert clock.now() == NOON - timedelta(minutes=10), "the clock of the server was set back"


def test_no_time_is_given_before_the_server_has_said_one() -> None:
    with pytest.raises(RuntimeError, match="has not said"):
        ServerClock().now()


async def test_a_store_goes_by_the_time_of_its_server(database_url: str) -> None:
    async with PostgresStore.open(database_url) as store:
        assert abs(store.now().timestamp() - time.time()) < 1
        assert store.now().tzinfo is UTC
        (holder,) = [store._holder]
        assert holder is not None
        holder.clock.set(NOON, time.monotonic(), time.monotonic())
        assert NOON <= store.now() < NOON + timedelta(seconds=1)
