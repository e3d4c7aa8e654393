"""Outgoing notifications in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from planwave.storage.errors import not_found
from planwave.storage.event_codec import BatchNotice, storable_text
from planwave.storage.notifications import (
    DEAD,
    DELIVERED,
    PENDING,
    NotificationRecord,
    NotificationStatus,
    NotificationTarget,
    notifications_of,
)
from planwave.storage.records import PageCursor


class MemoryNotifications:
    """The ``NotificationStore`` port over dictionaries.

    Args:
        check_open: Raises if the store is closed.
        has_flow: Whether a flow exists.
    """

    def __init__(self, check_open: Callable[[], None], has_flow: Callable[[str], bool]) -> None:
        self._check_open = check_open
        self._has_flow = has_flow
        self._operator: Sequence[NotificationTarget] = ()
        self._targets: dict[str, NotificationTarget] = {}
        self._records: dict[str, NotificationRecord] = {}
        self.on_new: Callable[[], None] | None = None

    def set_operator_targets(self, targets: Sequence[NotificationTarget]) -> None:
        self._operator = tuple(targets)

    def add(self, execution_id: str, plan_id: str | None, notices: Sequence[BatchNotice]) -> None:
        """Store the notifications of the events of an execution."""
        targets = (*self._operator, *self._targets.values())
        found = notifications_of(execution_id, plan_id, notices, targets)
        self._records |= {each.notification_id: each for each in found}
        if found and self.on_new is not None:
            self.on_new()

    async def create_target(self, target: NotificationTarget) -> bool:
        self._check_open()
        if target.plan_id is None or not self._has_flow(target.plan_id):
            raise not_found("flow", target.plan_id or "")
        return self._targets.setdefault(target.target_id, target) is target

    async def target(self, target_id: str) -> NotificationTarget | None:
        return next((each for each in await self.targets() if each.target_id == target_id), None)

    async def targets(self) -> Sequence[NotificationTarget]:
        stored = sorted(
            self._targets.values(), key=lambda each: (each.created_at, each.target_id), reverse=True
        )
        return [*self._operator, *stored]

    async def count_targets(self) -> int:
        return len(self._targets)

    async def delete_target(self, target_id: str) -> bool:
        self._check_open()
        if self._targets.pop(target_id, None) is None:
            return False
        for each in [each for each in self._records.values() if each.target_id == target_id]:
            del self._records[each.notification_id]
        return True

    def delete_of_flow(self, plan_id: str) -> None:
        """Delete the targets of a flow, with their notifications."""
        for target in [each for each in self._targets.values() if each.plan_id == plan_id]:
            del self._targets[target.target_id]
            for each in [x for x in self._records.values() if x.target_id == target.target_id]:
                del self._records[each.notification_id]

    async def get(self, notification_id: str) -> NotificationRecord | None:
        return self._records.get(notification_id)

    async def due(
        self, now: str, limit: int, *, busy: Collection[str] = ()
    ) -> Sequence[NotificationRecord]:
        return [each for each in self._pending(busy) if each.next_at <= now][: max(limit, 0)]

    async def next_due(self, *, busy: Collection[str] = ()) -> str | None:
        return next((each.next_at for each in self._pending(busy)), None)

    def _pending(self, busy: Collection[str]) -> list[NotificationRecord]:
        found = (x for x in self._records.values() if x.status == PENDING)
        return sorted((x for x in found if x.target_id not in busy), key=lambda each: each.next_at)

    async def update(self, notification: NotificationRecord) -> None:
        self._check_open()
        kept = self._records.get(notification.notification_id)
        if kept is not None and kept.status == PENDING:
            changed = replace(notification, error=storable_text(notification.error))
            self._records[notification.notification_id] = changed

    async def resend(self, notification_id: str, at: str) -> bool:
        self._check_open()
        kept = self._records.get(notification_id)
        if kept is not None and kept.status != PENDING:
            again = replace(kept, status=PENDING, since=at, next_at=at, attempts=0)
            self._records[notification_id] = again
            if self.on_new is not None:
                self.on_new()
        return kept is not None

    async def page(
        self,
        *,
        status: NotificationStatus | None = None,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[NotificationRecord]:
        found = sorted(self._records.values(), key=_sort_key, reverse=True)
        return [
            each
            for each in found
            if status in (None, each.status) and (before is None or _sort_key(each) < before)
        ][: max(limit, 0)]

    async def delete_expired(self, *, delivered: str, dead: str) -> int:
        self._check_open()
        limits = {DELIVERED: delivered, DEAD: dead}
        old = [x for x in self._records.values() if x.since < limits.get(x.status, "")]
        for each in old:
            del self._records[each.notification_id]
        return len(old)


def _sort_key(record: NotificationRecord) -> tuple[str, str]:
    return record.created_at, record.notification_id
