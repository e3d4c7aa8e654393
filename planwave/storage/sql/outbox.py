"""Adding notifications in the transaction that stores their events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection, bindparam, case, insert, select

from planwave.storage.event_codec import BatchNotice
from planwave.storage.notifications import NotificationTarget, notifications_of
from planwave.storage.sql.schema import executions, notifications

SELECT_TARGETS: Final = (
    "SELECT target_id, url, secrets, events, plan_id, created_at FROM notification_targets "
    "ORDER BY created_at DESC, target_id DESC"
)
_FLOW_OF: Final = select(
    case((executions.c.flow.is_not(None), executions.c.plan_id), else_=None)
).where(executions.c.key == bindparam("of"))


class Outbox:
    """Adds notifications to the open transaction of the writer; only the writer thread uses it.

    Args:
        keeps_targets: Whether the stored targets are cached: no other process changes them. Then
            ``forget`` after a change of them, or a rollback.

    Attributes:
        operator_targets: The targets of the operator's settings.
    """

    def __init__(self, *, keeps_targets: bool = True) -> None:
        self._keeps_targets = keeps_targets
        self._stored: list[NotificationTarget] | None = None
        self.operator_targets: Sequence[NotificationTarget] = ()

    def forget(self) -> None:
        """Read the stored targets again when they are needed next."""
        self._stored = None

    def add(
        self, connection: Connection, key: int, execution_id: str, notices: Sequence[BatchNotice]
    ) -> None:
        """Store the notifications of the events of an execution, which has this key."""
        if self._stored is None or not self._keeps_targets:
            rows = connection.exec_driver_sql(SELECT_TARGETS)
            self._stored = [target_from_row(row) for row in rows]
        targets = (*self.operator_targets, *self._stored)
        if targets:
            flow = connection.execute(_FLOW_OF, {"of": key}).scalar()
            records = notifications_of(execution_id, flow, notices, targets)
            if records:
                connection.execute(insert(notifications), [asdict(each) for each in records])


def target_from_row(row: Any) -> NotificationTarget:
    """Return a target from a row of ``SELECT_TARGETS``."""
    target_id, url, secrets, events, plan_id, created_at = row
    return NotificationTarget(
        target_id, url, tuple(json.loads(secrets)), tuple(json.loads(events)), plan_id, created_at
    )
