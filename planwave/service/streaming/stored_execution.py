"""Stored executions: the record, the events and the state of one, read from the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from planwave.errors import NotFound
from planwave.events import Event, ExecutionState, fold
from planwave.storage.records import ExecutionRecord


class ExecutionReader(Protocol):
    """The part of the store that reads one execution."""

    async def execution(self, execution_id: str) -> ExecutionRecord | None: ...
    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]: ...


def execution_not_found(execution_id: str) -> NotFound:
    """Return the error for an id that no execution has."""
    return NotFound(f"there is no execution {execution_id!r}", hint="list the executions")


async def load_record(store: ExecutionReader, execution_id: str) -> ExecutionRecord:
    """Return the record of an execution.

    Raises:
        NotFound: No execution has this id.
    """
    record = await store.execution(execution_id)
    if record is None:
        raise execution_not_found(execution_id)
    return record


async def load_events(
    store: ExecutionReader, execution_id: str, *, after: int = 0, limit: int | None = None
) -> Sequence[Event]:
    """Return the events of an execution with ``seq`` above ``after``, at most ``limit``.

    Raises:
        NotFound: No execution has this id.
        Conflict: ``unreadable``: the stored events were changed from outside.
    """
    await load_record(store, execution_id)
    return await store.events(execution_id, after=after, limit=limit)


async def load_state(store: ExecutionReader, execution_id: str) -> ExecutionState:
    """Return the state of an execution, folded from its events in a thread.

    Raises:
        NotFound, Conflict: As in ``load_events``.
    """
    events = await load_events(store, execution_id)
    return await asyncio.to_thread(fold, events)
