"""A process that drives executions ends itself where it makes no progress, and only there."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic, sleep

import pytest

from planwave.errors import StoreError
from planwave.service.carriers.watchdog import LOOP_STANDS, STORE_SILENT, Watchdog
from planwave.storage.records import StoreStats

LEASE_S = 0.2


class Process:
    """What a watchdog sees and does; ``ended`` has the exit codes."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.stats = StoreStats()
        self.looked = 0
        self.watchdog = Watchdog(LEASE_S, self._look, self.ended.append)

    def _look(self) -> StoreStats:
        self.looked += 1
        return self.stats


@pytest.fixture
def process() -> Process:
    return Process()


async def test_it_watches_a_process_that_makes_progress_and_nothing_ends(process: Process) -> None:
    with process.watchdog.watching():
        await asyncio.sleep(LEASE_S * 4)
        assert process.looked > 4
        assert process.watchdog.is_well()
    await asyncio.sleep(LEASE_S)
    assert process.ended == []
    assert "planwave-watchdog" not in {each.name for each in threading.enumerate()}


async def test_a_loop_that_stands_ends_the_process(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    with process.watchdog.watching():
        await asyncio.sleep(LEASE_S)
        sleep(LEASE_S * 3)  # noqa: ASYNC251 - that is what is tested
        assert process.ended == [LOOP_STANDS]
    assert "its event loop stands still" in caplog.text
    assert f"(exit code {LOOP_STANDS})" in caplog.text


async def test_a_loop_that_stands_for_less_than_two_leases_is_left_alone(process: Process) -> None:
    with process.watchdog.watching():
        for _ in range(2):
            sleep(LEASE_S * 1.5)  # noqa: ASYNC251 - that is what is tested
            await asyncio.sleep(LEASE_S)
    assert process.ended == []


async def test_a_database_that_does_not_answer_ends_the_process(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    with process.watchdog.watching():
        process.stats = StoreStats(busy_since=monotonic())
        await asyncio.sleep(LEASE_S * 1.5)
        assert not process.watchdog.is_well(), "no sign of life is given by then"
        assert process.ended == []
        await asyncio.sleep(LEASE_S * 2.5)
    assert process.ended == [STORE_SILENT]
    assert "the database does not answer" in caplog.text


async def test_a_process_that_was_frozen_during_a_write_is_left_alone(process: Process) -> None:
    with process.watchdog.watching():
        # So it is once it goes on: all of it stood, and the write that began before is answered soon.
        process.stats = StoreStats(busy_since=monotonic() - 30)
        looked = process.looked
        async with asyncio.timeout(5):
            while process.looked == looked:  # noqa: ASYNC110 - by a thread
                await asyncio.sleep(0.001)
        process.stats = StoreStats(busy_since=monotonic())
        await asyncio.sleep(LEASE_S)
    assert process.ended == []


@pytest.mark.parametrize(
    "stats",
    [
        StoreStats(transient_error=StoreError("no answer", code="store-unreachable")),
        StoreStats(fatal_error=OSError()),
    ],
)
async def test_a_process_that_can_store_nothing_gives_no_sign_of_life(
    process: Process, stats: StoreStats
) -> None:
    process.stats = stats
    assert not process.watchdog.is_well()
    with process.watchdog.watching():
        await asyncio.sleep(LEASE_S * 3)
    assert process.ended == [], "it tries again, and others go on meanwhile"


def test_a_loop_that_is_closed_is_watched_no_longer(process: Process) -> None:
    async def watch() -> None:
        process.watchdog.watching().__enter__()

    asyncio.run(watch())
    sleep(LEASE_S)
    assert "planwave-watchdog" not in {each.name for each in threading.enumerate()}
    assert process.ended == []
