"""Shapes of what calls flows and of what they call: triggers, access tokens, links, notifications."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from planwave.principals import PrincipalDocument

TokenScope = Literal["chat", "run", "read"]
LinkKind = Literal["result", "run", "request"]


class DeliveryResponse(TypedDict):
    """One thing that a trigger received."""

    key: str
    """What identifies it: a repeated one has the same."""
    received_at: str
    outcome: str | None
    """What became of it, such as `started` or `rejected`; null while it is processed."""
    note: str
    execution_id: str | None
    """The execution that it started, or is starting."""


class RejectionResponse(TypedDict):
    """A request that was not authenticated; its sender was not told why."""

    at: str
    reason: str
    """Such as `signature-mismatch`."""


class TriggerResponse(TypedDict):
    """An entry node of a flow that is listened for."""

    trigger_id: str
    kind: str
    """The type of its node."""
    plan_id: str
    flow: str
    """The name of the flow."""
    revision: int | None
    """The revision that it is bound to; null for the live one."""
    live_revision: int | None
    """The revision that it starts now; null where it starts none, as `problem` says."""
    node_id: str
    enabled: bool
    problem: str | None
    """Why it starts nothing although it may be enabled; null without a problem."""
    created_at: str
    created_by: PrincipalDocument | None
    """Who set it up; null where an older planwave did."""
    details: dict[str, Any]
    """What only its kind has, such as the path of a webhook."""
    deliveries: list[DeliveryResponse]
    """The last ones, newest first."""
    last_rejection: RejectionResponse | None
    """The last request that was not authenticated, since the service began; null without one."""


class TriggersResponse(TypedDict):
    """One page of triggers, newest first."""

    triggers: list[TriggerResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


class TokenResponse(TypedDict):
    """An access token, without its text."""

    token_id: str
    name: str
    scopes: list[TokenScope]
    flows: list[str]
    created_at: str
    requests_per_minute: int | None
    executions_per_minute: int | None
    expires_at: str | None
    """From when on it is worth nothing, UTC; null for never."""
    created_by: PrincipalDocument | None
    """Who created it; null where an older planwave did."""
    last_used_at: str | None
    """When it was used last, UTC, to about a minute; null for never."""


class TokenCreatedResponse(TokenResponse):
    """A new access token."""

    token: str
    """The text to send as `Authorization: Bearer …`; it is not stored, and never shown again."""


class TokensResponse(TypedDict):
    """All access tokens, newest first."""

    tokens: list[TokenResponse]


class LinkResponse(TypedDict):
    """A link that still opens something, without its key."""

    link_id: str
    kind: LinkKind
    """`result`: shows the result; `run`: also what each step delivered; `request`: answers one request, once."""
    execution_id: str
    request_id: str | None
    """Of `request`: which."""
    created_at: str
    expires_at: str
    """From when on it opens nothing, UTC."""
    target: str | None
    """The target of the notification that has it; null where somebody created it."""
    created_by: PrincipalDocument | None
    """Who created it; null where a notification has it."""


class LinkCreatedResponse(LinkResponse):
    """A new link."""

    key: str
    """What opens it; it is not stored, and never shown again."""
    url: str
    """The address with the key."""


class LinksResponse(TypedDict):
    """One page of links, newest first."""

    links: list[LinkResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


class TargetResponse(TypedDict):
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


class TargetsResponse(TypedDict):
    """The targets of the operator, then those of flows, newest first."""

    targets: list[TargetResponse]


class NotificationResponse(TypedDict):
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


class NotificationsResponse(TypedDict):
    """One page of notifications, newest first."""

    notifications: list[NotificationResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""
