"""Models of requests about triggers, access tokens and targets of notifications, and examples of all three."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, TIME
from planwave.api.schemas.requests import RequestModel
from planwave.service.access_tokens import NAME_CHARS
from planwave.setting_tables import ENDS, NotifiedEvent, SecretName

# -- triggers --------------------------------------------------------------------------------------

TRIGGER_ID: Final = "019a0000-0000-7000-8000-00000000000c"
TRIGGER: Final[dict[str, Any]] = {
    "trigger_id": TRIGGER_ID,
    "kind": "webhook",
    "plan_id": FLOW_ID,
    "flow": "Note",
    "revision": None,
    "live_revision": 1,
    "node_id": "hook",
    "enabled": True,
    "problem": None,
    "created_at": TIME,
    "created_by": {"kind": "operator"},
    "details": {"path": f"/hooks/{TRIGGER_ID}"},
    "deliveries": [
        {
            "key": "msg_1",
            "received_at": TIME,
            "outcome": "started",
            "note": "",
            "execution_id": EXECUTION_ID,
        }
    ],
}
TRIGGERS: Final[dict[str, Any]] = {"triggers": [TRIGGER], "next_cursor": None}
PUBLICATION: Final[dict[str, Any]] = {
    "plan_id": FLOW_ID,
    "name": "Note",
    "model": True,
    "tool": False,
    "hooks": [{"trigger_id": TRIGGER_ID, "path": f"/hooks/{TRIGGER_ID}", "enabled": True}],
}


class TriggerCreateRequest(RequestModel):
    """What to listen for."""

    plan_id: str = Field(description="The flow.", examples=[FLOW_ID])
    node_id: str | None = Field(
        default=None,
        max_length=64,
        description="Its entry node; not needed where only one can be listened for.",
        examples=["hook"],
    )
    revision: int | None = Field(
        default=None,
        ge=1,
        description="The revision of the flow that it starts; without one the live one, whatever it is then.",
    )


class TriggerFireRequest(RequestModel):
    """A test delivery."""

    value: Any = Field(
        default=None,
        description="What it is to have received, such as the body of a request; without one, what is typical.",
        examples=[{"order": "A-17"}],
    )


# -- access tokens ---------------------------------------------------------------------------------

TOKEN_ID: Final = "019a0000-0000-7000-8000-00000000000d"  # noqa: S105
TOKEN: Final[dict[str, Any]] = {
    "token_id": TOKEN_ID,
    "name": "Shop",
    "scopes": ["chat"],
    "flows": [FLOW_ID],
    "created_at": TIME,
    "requests_per_minute": None,
    "executions_per_minute": 10,
    "expires_at": None,
    "created_by": {"kind": "operator"},
    "last_used_at": None,
}
CREATED_TOKEN: Final[dict[str, Any]] = {**TOKEN, "token": "pw_…"}
TOKENS: Final[dict[str, Any]] = {"tokens": [TOKEN]}


class TokenCreateRequest(RequestModel):
    """A token for some flows."""

    name: str = Field(
        min_length=1, max_length=NAME_CHARS, description="Who gets it.", examples=["Shop"]
    )
    scopes: list[Literal["chat", "run", "read"]] = Field(
        min_length=1,
        description="`chat`: talk to the flows as models. `run`: start and cancel their executions. "
        "`read`: read these.",
        examples=[["chat"]],
    )
    flows: list[str] = Field(
        min_length=1, max_length=1_000, description="The ids of the flows.", examples=[[FLOW_ID]]
    )
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Its requests; the limits of the service hold in any case."
    )
    executions_per_minute: int | None = Field(default=None, ge=1, description="Its executions.")
    expires_in_s: float | None = Field(
        default=None, gt=0, le=10 * 366 * 86_400, description="Seconds for which it is valid."
    )


# -- notifications ---------------------------------------------------------------------------------

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
