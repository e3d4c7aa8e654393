"""Targets and notifications as JSON, the same in the API and on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planwave.service.notifications.targets import event_name
from planwave.storage.notifications import PENDING

if TYPE_CHECKING:
    from planwave.service.notifications.notification_service import TargetReport
    from planwave.shapes.triggers import NotificationResponse, TargetResponse
    from planwave.storage.notifications import NotificationRecord


def target_document(report: TargetReport) -> TargetResponse:
    """Return a target as JSON."""
    target = report.target
    return {
        "target_id": target.target_id,
        "plan_id": target.plan_id,
        "flow": report.flow,
        "url": target.url,
        "secrets": list(target.secrets),
        "events": [event_name(each) for each in target.events],
        "problem": report.problem,
        "created_at": target.created_at or None,
    }


def notification_document(record: NotificationRecord) -> NotificationResponse:
    """Return a notification as JSON, without its body."""
    return {
        "notification_id": record.notification_id,
        "target_id": record.target_id,
        "execution_id": record.execution_id,
        "event": event_name(record.event),
        "status": record.status,
        "created_at": record.created_at,
        "attempts": record.attempts,
        "next_at": record.next_at if record.status == PENDING else None,
        "error": record.error,
    }
