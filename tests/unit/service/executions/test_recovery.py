"""In which order, and how closely one after the other, what was left is taken up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from planwave.errors import NotFound
from planwave.events import Event
from planwave.log_records import FIELDS
from planwave.service.executions.recovery import PROGRESS_TIMEOUT_S, Recovery
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.store import Store
from tests.support.virtual_loop import virtual_time

AT = "2026-01-01T00:00:00.000000+00:00"


class Left:
    """Executions that were left, by how many owners they have had without any progress."""

    def __init__(self, comes_on: str = "node.completed", **epochs: int) -> None:
        self.records = [
            ExecutionRecord(own, None, "", "", "executing", AT, epoch=epoch)
            for own, epoch in epochs.items()
        ]
        self.taken: list[tuple[str, float]] = []
        self.read: list[str] = []
        self.gone: set[str] = set()
        self._comes_on = comes_on

    async def events(self, execution_id: str) -> list[Event]:
        self.read.append(execution_id)
        return [Event(execution_id, 1, AT, "execution.created", None, None, {})]

    async def take_up(self, execution_id: str) -> bool:
        if execution_id in self.gone:
            raise NotFound("it was deleted")
        self.taken.append((execution_id, asyncio.get_running_loop().time()))
        return not execution_id.startswith("paused")

    async def watch(self, execution_id: str, after: int) -> AsyncGenerator[Event]:
        await asyncio.sleep(5)
        yield Event(execution_id, 2, AT, self._comes_on, "a", 1, {})
        await asyncio.sleep(1_000)

    def recovered(self, **limits: Any) -> list[tuple[str, float]]:
        store = cast("Store", self)
        recovery = Recovery(store, Limits(**limits), self.take_up, self.watch)
        virtual_time(lambda: recovery.run(self.records))()
        return self.taken


def test_recoveries_are_rate_limited() -> None:
    left = Left(a=1, paused=1, b=2, gone=1, c=3)
    left.gone.add("gone")
    assert left.recovered(recoveries_per_s=2) == [("a", 0), ("paused", 0.5), ("b", 0.5), ("c", 1)]
    assert left.read == []


def test_crashing_executions_are_recovered_last_one_after_the_other() -> None:
    left = Left(worst=6, bad=4, a=1, paused=4, worse=5, b=3)
    taken = left.recovered(recoveries_per_s=10_000, recoveries=5)
    assert [own for own, _ in taken] == ["a", "b", "bad", "paused", "worse", "worst"]
    assert [round(at) for _, at in taken] == [0, 0, 0, 5, 5, 10]
    assert sorted(left.read) == ["bad", "paused", "worse", "worst"]


@pytest.mark.parametrize("kind", ["node.log", "execution.resumed"])
def test_execution_without_progress_delays_others_for_a_limited_time(kind: str) -> None:
    taken = Left(kind, a=4, b=4).recovered(recoveries_per_s=10_000, recoveries=5)
    assert [(own, round(at)) for own, at in taken] == [("a", 0), ("b", round(PROGRESS_TIMEOUT_S))]


def test_the_log_says_what_was_taken_up_and_what_was_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "planwave.recovery")
    left = Left(a=1, b=1, gone=1)
    left.gone.add("gone")
    left.recovered(recoveries_per_s=2)
    line = caplog.records[-1]
    assert (line.name, line.levelname) == ("planwave.recovery", "WARNING")
    said = getattr(line, FIELDS)
    assert (said["resumed"], said["failed"], said["ids"], said["took_s"]) == (2, 1, "gone", 1.0)
    caplog.clear()
    Left().recovered()
    assert caplog.records == []
