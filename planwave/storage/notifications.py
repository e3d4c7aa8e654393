"""The records of outgoing notifications.

A notification is stored in the commit that stores its event, so that no crash loses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from planwave.ids import new_id
from planwave.storage.event_codec import BatchNotice

NotificationStatus = Literal["pending", "delivered", "dead"]
PENDING: Final[NotificationStatus] = "pending"
"""It is sent when its time has come."""
DELIVERED: Final[NotificationStatus] = "delivered"
"""The receiver accepted it."""
DEAD: Final[NotificationStatus] = "dead"
"""Every attempt failed; a person may have it sent again."""


@dataclass(frozen=True, slots=True)
class NotificationTarget:
    """A URL that is notified of executions.

    Attributes:
        target_id: Its id; of the operator's targets their name in ``planwave.toml``.
        secrets: The names of the operator's secrets that sign, each for itself.
        events: The events that it is notified of, among ``NOTICES``.
        plan_id: The flow whose executions count; None for those of all flows and plans.
        created_at: Empty for the operator's targets.
    """

    target_id: str
    url: str
    secrets: tuple[str, ...]
    events: tuple[str, ...]
    plan_id: str | None = None
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """One message to one target.

    Attributes:
        notification_id: The id of the message, the same in every attempt.
        seq: The event of the execution that it tells of.
        event: What happened, among ``NOTICES``.
        created_at: The time of the event.
        attempts: How often it was sent since ``since``.
        since: From when its attempts count: ``created_at``, or when a person had it sent again.
        next_at: When it is sent next; without meaning unless it is pending.
        error: Why the last attempt failed, or "".
        body: The message, stored by the first attempt so that all send the same.
    """

    notification_id: str
    target_id: str
    execution_id: str
    seq: int
    event: str
    created_at: str
    since: str
    next_at: str
    status: NotificationStatus = PENDING
    attempts: int = 0
    error: str = ""
    body: str | None = None


def notifications_of(
    execution_id: str,
    plan_id: str | None,
    notices: Sequence[BatchNotice],
    targets: Sequence[NotificationTarget],
) -> list[NotificationRecord]:
    """Return the notifications of the events of one execution."""
    return [
        NotificationRecord(new_id(), target.target_id, execution_id, seq, event, at, at, at)
        for seq, event, at in notices
        for target in targets
        if event in target.events and target.plan_id in (None, plan_id)
    ]
