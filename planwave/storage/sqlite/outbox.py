"""Adding notifications in the transaction that stores their events."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Final

from planwave.storage.event_codec import BatchNotice
from planwave.storage.notifications import NotificationTarget, notifications_of

SELECT_TARGETS: Final = (
    "SELECT target_id, url, secrets, events, plan_id, created_at FROM notification_targets "
    "ORDER BY created_at DESC, target_id DESC"
)
_FLOW_OF: Final = "SELECT iif(flow IS NULL, NULL, plan_id) FROM executions WHERE key = ?"
_ADD: Final = (
    "INSERT INTO notifications (notification_id, target_id, execution_id, seq, event, created_at, "
    "since, next_at, status, attempts, error, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Outbox:
    """Adds notifications to the open transaction of the writer; only the writer thread uses it.

    It caches the stored targets: ``forget`` after a change of them, or a rollback.
    """

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._stored: list[NotificationTarget] | None = None
        self.operator_targets: Sequence[NotificationTarget] = ()

    def forget(self) -> None:
        """Read the stored targets again when they are needed next."""
        self._stored = None

    def add(self, key: int, execution_id: str, notices: Sequence[BatchNotice]) -> None:
        """Store the notifications of the events of an execution, which has this key."""
        if self._stored is None:
            self._stored = [target_from_row(row) for row in self._raw.execute(SELECT_TARGETS)]
        targets = (*self.operator_targets, *self._stored)
        if targets:
            row = self._raw.execute(_FLOW_OF, (key,)).fetchone()
            records = notifications_of(execution_id, row[0], notices, targets)
            self._raw.executemany(_ADD, [astuple(each) for each in records])


def target_from_row(row: Any) -> NotificationTarget:
    """Return a target from a row of ``SELECT_TARGETS``."""
    target_id, url, secrets, events, plan_id, created_at = row
    return NotificationTarget(
        target_id, url, tuple(json.loads(secrets)), tuple(json.loads(events)), plan_id, created_at
    )
