"""The executions of a trigger that have not ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


_ACTIVE: Final = ("starting", "executing", "paused", "executing")
"""Twice, so that one that is resumed between two reads is found."""
_PAGE: Final = 100


class RunningDelivery(NamedTuple):
    """A delivery whose execution has not ended.

    Attributes:
        key: The key of the delivery.
    """

    execution_id: str
    key: str


async def running_deliveries(store: Store, trigger_id: str, plan_id: str) -> list[RunningDelivery]:
    """Return the deliveries of a trigger whose executions have not ended, newest first.

    Executions are read, not the list of deliveries: that is short, and an execution may run, or wait
    for a person, while many later deliveries are skipped.
    """
    deliveries: dict[str, RunningDelivery] = {}
    for status in _ACTIVE:
        async for execution_id in _executions(store, plan_id, status):
            if execution_id in deliveries:
                continue
            key = await _delivery_key(store, trigger_id, execution_id)
            if key is not None:
                deliveries[execution_id] = RunningDelivery(execution_id, key)
    # Ids of executions are in the order of their creation.
    return [deliveries[each] for each in sorted(deliveries, reverse=True)]


async def _executions(store: Store, plan_id: str, status: str) -> AsyncIterator[str]:
    before: PageCursor | None = None
    while page := await store.executions(
        plan_id=plan_id, status=status, before=before, limit=_PAGE
    ):
        for record in page:
            yield record.execution_id
        before = PageCursor(page[-1].created_at, page[-1].execution_id)


async def _delivery_key(store: Store, trigger_id: str, execution_id: str) -> str | None:
    """Return the key of the delivery that started an execution; None if no delivery of it did."""
    events = await store.events(execution_id, limit=1)
    created: Any = events[0].data if events else {}  # without events it was deleted
    origin: Any = created.get("trigger") or {}
    return str(origin.get("delivery", "")) if origin.get("id") == trigger_id else None
