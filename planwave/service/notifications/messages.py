"""The bodies of notifications, made from the events of an execution."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from planwave.events import Event, ExecutionState, fold
from planwave.events.outcome import outcome_of
from planwave.events.request_text import field_of, is_change_request, request_text
from planwave.jsonio import dumps_exact
from planwave.storage.event_codec import WAITING_NOTICE

if TYPE_CHECKING:
    from planwave.storage.notifications import NotificationRecord
    from planwave.storage.sql.store import Store

_FEW_EVENTS: Final = 200
"""Fewer are read faster than a thread is started for them."""


async def message_of(
    store: Store, notification: NotificationRecord, results_bytes: int
) -> str | None:
    """Return the body of a notification; None if its execution was deleted.

    It shows the execution as it was at its event, so that it is the same whenever it is made.

    Args:
        store: Where the events are.
        notification: The notification.
        results_bytes: The most bytes of results, as JSON; larger ones are left out.

    Raises:
        Conflict: ``unreadable``: the stored events were changed from outside.
        StoreError: It cannot be read now.
    """
    events = await store.events(notification.execution_id, limit=notification.seq)
    if not events:
        return None
    if len(events) <= _FEW_EVENTS:
        return _message(notification, events, results_bytes)
    return await asyncio.to_thread(_message, notification, events, results_bytes)


def _message(notification: NotificationRecord, events: Sequence[Event], results_bytes: int) -> str:
    state = fold(events)
    data: dict[str, Any] = {
        "execution_id": notification.execution_id,
        "status": state.status,
        "title": state.title,
        "plan_id": state.plan_id,
        "revision": state.revision,
        "flow": state.flow,
        "trigger": state.trigger,
        "created_at": state.created_at,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        **_details(notification, state, results_bytes),
    }
    return dumps_exact(
        {"type": notification.event, "timestamp": notification.created_at, "data": data}
    )


def _details(
    notification: NotificationRecord, state: ExecutionState, results_bytes: int
) -> dict[str, Any]:
    """Return what only an event of this kind has."""
    if notification.event == WAITING_NOTICE:
        request = state.requests.get(f"r{notification.seq}")
        if request is None:
            return {"request": None}
        asked: dict[str, Any] = {
            "request_id": request.request_id,
            "node": request.path,
            "kind": field_of(request.request, "kind"),
            "text": request_text(request.request),
        }
        if is_change_request(request.request):
            asked |= {name: field_of(request.request, name) for name in ("hash", "additions")}
        return {"request": asked}
    outcome = outcome_of(state)
    failed: dict[str, Any] = {}
    if state.status != "completed":
        failed = {"error": state.error, "reason": state.reason, **outcome}
        if outcome["outcome"] is None:
            return failed
    results = state.result().values
    if len(dumps_exact(results).encode(errors="replace")) > results_bytes:
        return {**failed, "outputs": None, "outputs_left_out": True}
    return {**failed, "outputs": results, "outputs_left_out": False}
