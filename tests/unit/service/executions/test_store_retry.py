from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from planwave.errors import StaleEpoch, StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.service.executions.store_retry import RetryingJournal, RetryingRecorder, StoreRetry
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.virtual_loop import virtual_time

AT = "2026-01-01T00:00:00.000000Z"
KEY = CallKey("x1", "a", 1, 0, "h")


class Refusing(MemoryStore):
    """A store that refuses writes with these codes, one after the other, until there are no more."""

    def __init__(self, *codes: str) -> None:
        super().__init__()
        self.codes = list(codes)
        self.tried: list[float] = []

    def _check(self) -> None:
        self.tried.append(asyncio.get_running_loop().time())
        if self.codes:
            raise StoreError("no room", code=self.codes.pop(0))

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        self._check()
        await super().append(execution_id, epoch, events)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        self._check()
        await super().record(key, reply)


async def code_of(write: Any) -> str | None:
    try:
        await write
    except StoreError as error:
        return error.code
    return None


def log(seq: int) -> Event:
    return Event("x1", seq, AT, "node.log", "a", 1, {})


async def refusing(*codes: str) -> Refusing:
    store = Refusing(*codes)
    await store.create_execution(ExecutionRecord("x1", None, "t", "g", "starting", AT), [])
    return store


@virtual_time
async def test_append_is_retried_with_growing_delay() -> None:
    store = await refusing("disk-full", *["store-busy"] * 2, *["disk-full"] * 4)
    await RetryingJournal(store).append("x1", 1, [log(1)])
    assert [round(at, 1) for at in store.tried] == [0, 0.2, 0.6, 1.4, 3.0, 5.0, 7.0, 9.0]
    assert [e.seq for e in await store.events("x1")] == [1]


@virtual_time
async def test_append_is_retried_without_end() -> None:
    store = await refusing(*["disk-full"] * 10_000)
    await RetryingJournal(store).append("x1", 1, [log(1)])
    assert len(store.tried) == 10_001
    assert await store.events("x1") == [log(1)]


@virtual_time
async def test_retry_delay_is_reset_by_success() -> None:
    store = await refusing(*["disk-full"] * 5)
    journal = RetryingJournal(store)
    await journal.append("x1", 1, [log(1)])
    store.codes, store.tried = ["disk-full"], []
    await journal.append("x1", 1, [log(2)])
    assert store.tried[1] - store.tried[0] == pytest.approx(0.2)


@pytest.mark.parametrize("before", [[], ["disk-full"]], ids=["at once", "after a wait"])
@pytest.mark.parametrize("code", ["store-failed", "store-read-only", "duplicate-seq"])
def test_permanent_error_is_raised(before: list[str], code: str) -> None:
    @virtual_time
    async def run() -> None:
        store = await refusing(*before, code)
        with pytest.raises(StoreError) as refused:
            await RetryingJournal(store).append("x1", 1, [log(1)])
        assert refused.value.code == code
        assert len(store.tried) == len(before) + 1

    run()


@virtual_time
async def test_stale_epoch_is_raised() -> None:
    store = await refusing("disk-full")
    await store.claim("x1")
    with pytest.raises(StaleEpoch):
        await RetryingJournal(store).append("x1", 1, [log(1)])


@virtual_time
async def test_retry_can_be_cancelled() -> None:
    store = await refusing(*["disk-full"] * 100)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await RetryingJournal(store).append("x1", 1, [log(1)])
    store.codes = []
    assert await store.events("x1") == []


@virtual_time
async def test_stop_raises_the_error_after_one_more_attempt() -> None:
    store = await refusing(*["disk-full"] * 100)
    journal = RetryingJournal(store)
    async with asyncio.TaskGroup() as group:
        waits = group.create_task(code_of(journal.append("x1", 1, [log(1)])))
        await asyncio.sleep(4)
        assert not waits.done()
        journal.stop()
    assert waits.result() == "disk-full"
    assert asyncio.get_running_loop().time() <= 6
    tried = len(store.tried)
    assert await code_of(journal.append("x1", 1, [log(1)])) == "disk-full"
    assert len(store.tried) == tried + 1
    store.codes = []
    await journal.append("x1", 1, [log(1)])
    assert await store.events("x1") == [log(1)]


def test_retry_is_logged_once_for_all_writers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    @virtual_time
    async def run() -> None:
        store = await refusing(*["disk-full"] * 9)
        retry_policy = StoreRetry()
        journal, recorder = (
            RetryingJournal(store, retry_policy),
            RetryingRecorder(store, retry_policy),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(journal.append("x1", 1, [log(1)]))
            group.create_task(recorder.record(KEY, {"text": "paid"}))

    run()
    received = [r for r in caplog.records if r.name == "planwave.service.executions.store_retry"]
    assert [(r.levelname, "stand still" in r.message) for r in received] == [
        ("WARNING", True),
        ("INFO", False),
    ]


@virtual_time
async def test_paid_reply_is_recorded_when_disk_has_room_again() -> None:
    store = await refusing(*["disk-full"] * 3)
    recorder = RetryingRecorder(store)
    assert await recorder.recorded(KEY) is None
    await recorder.record(KEY, {"text": "paid"})
    assert await recorder.recorded(KEY) == {"text": "paid"}
    assert len(store.tried) == 4
