"""The stores on which graphs do the same, and time that stands still while they write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from planwave.storage.sql.store import Store
from planwave.storage.sql.writer import GroupCommitWriter, WriteJob
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.virtual_loop import VirtualLoop


@pytest.fixture
def stands_still_for_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let virtual time stand still while the thread of a store commits, as it does for other threads."""
    submit = GroupCommitWriter.submit

    def submit_to_thread(writer: GroupCommitWriter, job: WriteJob) -> asyncio.Future[Any]:
        committed = submit(writer, job)
        loop = asyncio.get_running_loop()
        return loop.stand_still(committed) if isinstance(loop, VirtualLoop) else committed

    monkeypatch.setattr(GroupCommitWriter, "submit", submit_to_thread)


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest, stands_still_for_writes: None) -> Iterator[Store]:
    """What keeps the events of an execution."""
    if request.param == "memory":
        yield MemoryStore()
        return
    from planwave.storage.postgres.store import PostgresStore

    opened = PostgresStore.open(request.getfixturevalue("database_url"))
    yield opened
    opened._close_all()
