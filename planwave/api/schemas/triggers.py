"""Request and response models of triggers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planwave.api.schemas.common import PrincipalResponse, ResponseModel
from planwave.api.schemas.examples import FLOW_ID
from planwave.api.schemas.requests import RequestModel


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


class DeliveryResponse(ResponseModel):
    """One thing that a trigger received."""

    key: str
    """What identifies it: a repeated one has the same."""
    received_at: str
    outcome: str | None
    """What became of it, such as `started` or `rejected`; null while it is processed."""
    note: str
    execution_id: str | None
    """The execution that it started, or is starting."""


class TriggerResponse(ResponseModel):
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
    created_by: PrincipalResponse | None
    """Who set it up; null where an older planwave did."""
    details: dict[str, Any]
    """What only its kind has, such as the path of a webhook."""
    deliveries: list[DeliveryResponse]
    """The last ones, newest first."""


class TriggersResponse(ResponseModel):
    """One page of triggers, newest first."""

    triggers: list[TriggerResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""
