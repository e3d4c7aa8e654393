"""The notifications of the store, and their statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from planwave.storage.event_codec import storable_text
from planwave.storage.notifications import (
    DEAD,
    DELIVERED,
    PENDING,
    NotificationRecord,
    NotificationStatus,
    NotificationTarget,
)
from planwave.storage.records import PageCursor
from planwave.storage.sql.dialects import insert_new
from planwave.storage.sql.flow_names import require_flows
from planwave.storage.sql.lists import ListQuery, query_parameter
from planwave.storage.sql.outbox import SELECT_TARGETS, Outbox, target_from_row
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import notification_targets, notifications

_COLUMNS: Final = (
    notifications.c.notification_id,
    notifications.c.target_id,
    notifications.c.execution_id,
    notifications.c.seq,
    notifications.c.event,
    notifications.c.created_at,
    notifications.c.since,
    notifications.c.next_at,
    notifications.c.status,
    notifications.c.attempts,
    notifications.c.error,
    notifications.c.body,
)
NOTIFICATIONS: Final = ListQuery(
    _COLUMNS,
    notifications,
    notifications.c.created_at,
    notifications.c.notification_id,
    {"status": notifications.c.status == query_parameter("status")},
)


class SqlNotifications:
    """Targets and what they are to be notified of, in ``notification_targets`` and ``notifications``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
        outbox: That of the writer; None where nothing is written.

    Attributes:
        on_new: Called on the event loop after notifications were stored.
    """

    def __init__(
        self,
        read: Read,
        write: Write,
        outbox: Outbox | None,
    ) -> None:
        self._read = read
        self._write = write
        self._outbox = outbox
        self._operator: Sequence[NotificationTarget] = ()
        self.on_new: Callable[[], None] | None = None

    def set_operator_targets(self, targets: Sequence[NotificationTarget]) -> None:
        """Set the targets of the operator's settings, which are not stored."""
        self._operator = tuple(targets)
        if self._outbox is not None:
            self._outbox.operator_targets = self._operator

    def announce(self) -> None:
        """Tell that notifications may have been stored."""
        if self.on_new is not None:
            self.on_new()

    async def create_target(self, target: NotificationTarget) -> bool:
        """Store a target of a flow; return False if its id is taken.

        Raises:
            NotFound: There is no such flow.
        """
        return await self._change_targets(lambda connection: _create_target(connection, target))

    async def target(self, target_id: str) -> NotificationTarget | None:
        """Return a target, of the operator or of a flow."""
        return next((each for each in await self.targets() if each.target_id == target_id), None)

    async def targets(self) -> Sequence[NotificationTarget]:
        """Return the targets of the operator, then those of flows, newest first."""
        rows = await self._read(lambda connection: connection.exec_driver_sql(SELECT_TARGETS).all())
        return [*self._operator, *(target_from_row(row) for row in rows)]

    async def count_targets(self) -> int:
        """Return the number of targets of flows."""
        statement = select(func.count()).select_from(notification_targets)
        return await self._read(lambda connection: connection.execute(statement).scalar_one())

    async def count_pending(self) -> int:
        """Return the number of notifications that are to be sent, or sent again."""
        statement = select(func.count()).select_from(notifications).where(*_is_pending(()))
        return await self._read(lambda connection: connection.execute(statement).scalar_one())

    async def delete_target(self, target_id: str) -> bool:
        """Delete a target of a flow with its notifications; return whether there was one."""
        own = storable_text(target_id)
        return await self._change_targets(lambda connection: _delete_target(connection, own))

    async def get(self, notification_id: str) -> NotificationRecord | None:
        row = await self._read(lambda connection: NOTIFICATIONS.one(connection, notification_id))
        return None if row is None else NotificationRecord(*row)

    async def due(
        self, now: str, limit: int, *, busy: Collection[str] = ()
    ) -> Sequence[NotificationRecord]:
        """Return pending notifications whose time has come, in that order.

        Args:
            now: UTC time.
            limit: The most to return.
            busy: Targets to leave out.
        """
        statement = (
            select(*_COLUMNS)
            .where(*_is_pending(busy), notifications.c.next_at <= now)
            .order_by(notifications.c.next_at, notifications.c.id)
            .limit(max(limit, 0))
        )
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return [NotificationRecord(*row) for row in rows]

    async def next_due(self, *, busy: Collection[str] = ()) -> str | None:
        """Return when the next pending notification is due; None without one."""
        statement = select(func.min(notifications.c.next_at)).where(*_is_pending(busy))
        return await self._read(lambda connection: connection.execute(statement).scalar())

    async def update(self, notification: NotificationRecord) -> None:
        """Store what became of an attempt; one that was deleted or settled stays so."""
        statement = (
            update(notifications)
            .where(
                notifications.c.notification_id == notification.notification_id,
                notifications.c.status == PENDING,
            )
            .values(
                status=notification.status,
                attempts=notification.attempts,
                next_at=notification.next_at,
                error=storable_text(notification.error),
                body=notification.body,
            )
        )
        await self._write(lambda connection: connection.execute(statement))

    async def resend(self, notification_id: str, at: str) -> bool:
        """Make a settled notification pending again; return whether it exists."""
        own = storable_text(notification_id)
        is_known = await self._write(lambda connection: _resend(connection, own, at))
        self.announce()
        return is_known

    async def page(
        self,
        *,
        status: NotificationStatus | None = None,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[NotificationRecord]:
        """Return notifications, newest first."""
        own = {"status": status}
        rows = await self._read(lambda c: NOTIFICATIONS.page(c, own, before, limit))
        return [NotificationRecord(*row) for row in rows]

    async def delete_expired(self, *, delivered: str, dead: str) -> int:
        """Delete delivered and dead ones whose event, or last resending, is before these times."""
        status, since = notifications.c.status, notifications.c.since
        statement = delete(notifications).where(
            or_(
                and_(status == DELIVERED, since < delivered),
                and_(status == DEAD, since < dead),
            )
        )
        return await self._write(lambda connection: connection.execute(statement).rowcount)

    async def _change_targets(self, change: Callable[[Connection], bool]) -> bool:
        outbox = self._outbox

        def changed(connection: Connection) -> bool:
            if outbox is not None:
                outbox.forget()
            return change(connection)

        return await self._write(changed)


def _is_pending(busy: Collection[str]) -> list[Any]:
    return [notifications.c.status == PENDING, notifications.c.target_id.not_in(list(busy))]


def _create_target(connection: Connection, target: NotificationTarget) -> bool:
    plan_id = storable_text(target.plan_id or "")
    require_flows(connection, [plan_id])
    row = {
        "target_id": target.target_id,
        "plan_id": plan_id,
        "url": target.url,
        "secrets": json.dumps(target.secrets),
        "events": json.dumps(target.events),
        "created_at": target.created_at,
    }
    return insert_new(connection, notification_targets, row)


def _delete_target(connection: Connection, target_id: str) -> bool:
    gone = delete(notification_targets).where(notification_targets.c.target_id == target_id)
    if not connection.execute(gone).rowcount:
        return False
    connection.execute(delete(notifications).where(notifications.c.target_id == target_id))
    return True


def _resend(connection: Connection, notification_id: str, at: str) -> bool:
    own = notifications.c.notification_id == notification_id
    statement = (
        update(notifications)
        .where(own, notifications.c.status != PENDING)
        .values(status=PENDING, since=at, next_at=at, attempts=0)
    )
    if connection.execute(statement).rowcount:
        return True
    return connection.execute(select(notifications.c.id).where(own)).first() is not None
