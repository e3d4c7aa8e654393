"""Request and response models of outgoing notifications, with examples for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from planwave.api.schemas.common import ResponseModel
from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, TIME
from planwave.api.schemas.requests import RequestModel
from planwave.setting_tables import ENDS, NotifiedEvent, SecretName

TARGET_ID: Final = "019a0000-0000-7000-8000-00000000000d"
NOTIFICATION_ID: Final = "019a0000-0000-7000-8000-00000000000e"
TARGET: Final[dict[str, Any]] = {
    "target_id": TARGET_ID,
    "plan_id": FLOW_ID,
    "flow": "Note",
    "url": "https://example.com/planwave",
    "secrets": ["orders"],
    "events": ["completed", "failed", "cancelled"],
    "problem": None,
    "created_at": TIME,
}
TARGETS: Final[dict[str, Any]] = {"targets": [TARGET]}
NOTIFICATION: Final[dict[str, Any]] = {
    "notification_id": NOTIFICATION_ID,
    "target_id": TARGET_ID,
    "execution_id": EXECUTION_ID,
    "event": "failed",
    "status": "dead",
    "created_at": TIME,
    "attempts": 11,
    "next_at": None,
    "error": "it answered 503 Service Unavailable",
}
NOTIFICATIONS: Final[dict[str, Any]] = {"notifications": [NOTIFICATION], "next_cursor": None}


class TargetCreateRequest(RequestModel):
    """What is notified of the executions of a flow."""

    plan_id: str = Field(description="The flow.", examples=[FLOW_ID])
    url: str = Field(
        min_length=1,
        max_length=2_000,
        description="The address that messages are sent to.",
        examples=["https://example.com/planwave"],
    )
    secrets: list[SecretName] = Field(
        min_length=1,
        max_length=5,
        description="The names of the operator's secrets that sign them; each has to be for the host.",
        examples=[["orders"]],
    )
    events: list[NotifiedEvent] = Field(
        default=[*ENDS],
        min_length=1,
        max_length=4,
        description="What it is notified of; `waiting` is each request to a person.",
        examples=[["failed", "waiting"]],
    )


class TargetResponse(ResponseModel):
    """A URL that is notified of executions."""

    target_id: str
    """Its id; of a target of the operator its name in `planwave.toml`."""
    plan_id: str | None
    """The flow whose executions count; null for those of all, which only the operator sets."""
    flow: str | None
    url: str
    secrets: list[str]
    """The names of the secrets that sign."""
    events: list[str]
    problem: str | None
    """Why it gets nothing; null without a problem."""
    created_at: str | None
    """Null for a target of the operator."""


class TargetsResponse(ResponseModel):
    """The targets of the operator, then those of flows, newest first."""

    targets: list[TargetResponse]


class NotificationResponse(ResponseModel):
    """One message to one target."""

    notification_id: str
    """The `webhook-id` of the message, the same in every attempt."""
    target_id: str
    execution_id: str
    event: str
    """What happened: `completed`, `failed`, `cancelled` or `waiting`."""
    status: Literal["pending", "delivered", "dead"]
    """`dead` if nobody accepted it in time; it can be sent again."""
    created_at: str
    attempts: int
    """How often it was sent, since a person had it sent again."""
    next_at: str | None
    """When it is sent next; null unless it is pending."""
    error: str
    """Why the last attempt failed; empty if none did."""


class NotificationsResponse(ResponseModel):
    """One page of notifications, newest first."""

    notifications: list[NotificationResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""
