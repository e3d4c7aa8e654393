"""The records of outgoing notifications, and the port ``NotificationStore``.

A notification is stored in the commit that stores its event, so that no crash loses it. The contract
suite ``tests/contract/stores`` runs over all implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from planwave.ids import new_id
from planwave.storage.event_codec import BatchNotice
from planwave.storage.records import PageCursor

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


class NotificationStore(Protocol):
    """Targets and what they are to be notified of. Writes are durable on return.

    Attributes:
        on_new: Called on the event loop after notifications were stored.
    """

    on_new: Callable[[], None] | None

    def set_operator_targets(self, targets: Sequence[NotificationTarget]) -> None:
        """Set the targets of the operator's settings, which are not stored."""
        ...

    async def create_target(self, target: NotificationTarget) -> bool:
        """Store a target of a flow; return False if its id is taken.

        Raises:
            NotFound: There is no such flow.
        """
        ...

    async def target(self, target_id: str) -> NotificationTarget | None:
        """Return a target, of the operator or of a flow."""
        ...

    async def targets(self) -> Sequence[NotificationTarget]:
        """Return the targets of the operator, then those of flows, newest first."""
        ...

    async def count_targets(self) -> int:
        """Return the number of targets of flows."""
        ...

    async def delete_target(self, target_id: str) -> bool:
        """Delete a target of a flow with its notifications; return whether there was one."""
        ...

    async def get(self, notification_id: str) -> NotificationRecord | None: ...
    async def due(
        self, now: str, limit: int, *, busy: Collection[str] = ()
    ) -> Sequence[NotificationRecord]:
        """Return pending notifications whose time has come, in that order.

        Args:
            now: UTC time.
            limit: The most to return.
            busy: Targets to leave out.
        """
        ...

    async def next_due(self, *, busy: Collection[str] = ()) -> str | None:
        """Return when the next pending notification is due; None without one."""
        ...

    async def update(self, notification: NotificationRecord) -> None:
        """Store what became of an attempt; one that was deleted or settled stays so."""
        ...

    async def resend(self, notification_id: str, at: str) -> bool:
        """Make a settled notification pending again; return whether it exists."""
        ...

    async def page(
        self,
        *,
        status: NotificationStatus | None = None,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[NotificationRecord]:
        """Return notifications, newest first."""
        ...

    async def delete_expired(self, *, delivered: str, dead: str) -> int:
        """Delete delivered and dead ones whose event, or last resending, is before these times."""
        ...


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
