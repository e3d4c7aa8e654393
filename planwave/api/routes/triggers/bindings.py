"""Routes: triggers, the entry nodes of flows that are listened for."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.dependencies import (
    AUTHENTICATED,
    PreassignedExecutionIdDep,
    PreassignedIdDep,
    ServiceDep,
    TriggersDep,
)
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    FlowIdFilter,
    PageSize,
    TriggerId,
    decode_cursor,
    page_size,
    paginate,
    validate_id,
)
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.routes.executions import STARTED_RESPONSES, created_response
from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, TIME, TRIGGER_ID, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.triggers.trigger_service import Trigger
from planwave.shapes.triggers import TriggerResponse, TriggersResponse
from planwave.triggers.host import TriggerHost

router = APIRouter(tags=["triggers"], dependencies=AUTHENTICATED)
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
    "last_rejection": {"at": TIME, "reason": "signature-mismatch"},
}
TRIGGERS: Final[dict[str, Any]] = {"triggers": [TRIGGER], "next_cursor": None}


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


_RESPONSES = {**success(TriggerResponse, "The trigger.", TRIGGER), **problems(404)}


@router.post(
    "/api/triggers",
    operation_id="createTrigger",
    summary="Listen for an entry node of a flow",
    status_code=201,
    responses={**success(TriggerResponse, "The trigger.", TRIGGER, 201), **problems(404, 409)},
)
async def create_trigger(
    triggers: TriggersDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[TriggerCreateRequest, json_body(TriggerCreateRequest)],
) -> Response:
    """Bind an entry node of a flow; from then on, what it receives starts executions."""
    trigger = await triggers.create(
        validate_id(body.plan_id, "flow"),
        node_id=body.node_id,
        revision=body.revision,
        trigger_id=preassigned_id,
    )
    return await _trigger_response(triggers, trigger, 201)


@router.get(
    "/api/triggers",
    operation_id="listTriggers",
    summary="List triggers",
    responses={**success(TriggersResponse, "One page.", TRIGGERS), **problems(422)},
)
async def list_triggers(
    service: ServiceDep,
    triggers: TriggersDep,
    plan_id: FlowIdFilter = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return what is listened for, newest first, each with its last 20 deliveries."""
    size = page_size(limit, service.limits)
    bindings = await triggers.page(plan_id=plan_id, before=decode_cursor(cursor), limit=size + 1)
    page, next_cursor = paginate(bindings, size)
    return json_response({"triggers": await triggers.as_json(page), "next_cursor": next_cursor})


@router.get(
    "/api/triggers/{trigger_id}",
    operation_id="getTrigger",
    summary="Look at a trigger",
    responses=_RESPONSES,
)
async def get_trigger(triggers: TriggersDep, trigger_id: TriggerId) -> Response:
    """Return a trigger with its last 20 deliveries."""
    return await _trigger_response(triggers, await triggers.get(trigger_id))


@router.post(
    "/api/triggers/{trigger_id}/enable",
    operation_id="enableTrigger",
    summary="Enable a trigger",
    responses=_RESPONSES,
)
async def enable_trigger(triggers: TriggersDep, trigger_id: TriggerId) -> Response:
    """Have a trigger start executions again."""
    changed = await triggers.set_enabled(trigger_id, enabled=True)
    return await _trigger_response(triggers, changed)


@router.post(
    "/api/triggers/{trigger_id}/disable",
    operation_id="disableTrigger",
    summary="Disable a trigger",
    responses=_RESPONSES,
)
async def disable_trigger(triggers: TriggersDep, trigger_id: TriggerId) -> Response:
    """Have a trigger start nothing until it is enabled; what runs goes on."""
    changed = await triggers.set_enabled(trigger_id, enabled=False)
    return await _trigger_response(triggers, changed)


@router.post(
    "/api/triggers/{trigger_id}/fire",
    operation_id="fireTrigger",
    summary="Fire a test delivery",
    status_code=202,
    responses={**STARTED_RESPONSES, **problems(404, 409)},
)
async def fire_trigger(
    service: ServiceDep,
    triggers: TriggersDep,
    preassigned_id: PreassignedExecutionIdDep,
    trigger_id: TriggerId,
    body: Annotated[TriggerFireRequest, json_body(TriggerFireRequest, may_be_empty=True)],
) -> Response:
    """Start an execution as if the trigger had received something; it may be disabled."""
    record = await triggers.fire(trigger_id, body.value, delivery_id=preassigned_id)
    return created_response(service, record, 202)


@router.delete(
    "/api/triggers/{trigger_id}",
    operation_id="deleteTrigger",
    summary="Delete a trigger",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404),
)
async def delete_trigger(triggers: TriggersDep, trigger_id: TriggerId) -> Response:
    """Delete a trigger with its deliveries; the flow and its executions stay."""
    await triggers.delete(trigger_id)
    return Response(status_code=204)


async def _trigger_response(triggers: TriggerHost, trigger: Trigger, status: int = 200) -> Response:
    (document,) = await triggers.as_json([trigger])
    location = f"/api/triggers/{trigger.trigger_id}" if status == 201 else None
    return json_response(document, status, location=location)
