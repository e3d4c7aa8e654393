"""Routes: outgoing notifications, their targets, and what nobody accepted."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedIdDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    NotificationId,
    PageSize,
    decode_cursor,
    page_size,
    paginate,
    validate_id,
)
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, NOTIFICATION_ID, TIME, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.notifications.documents import notification_document, target_document
from planwave.setting_tables import ENDS, NotifiedEvent, SecretName
from planwave.shapes.triggers import (
    NotificationResponse,
    NotificationsResponse,
    TargetResponse,
    TargetsResponse,
)

router = APIRouter(tags=["notifications"], dependencies=AUTHENTICATED)
TARGET_ID: Final = "019a0000-0000-7000-8000-00000000000d"
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


TargetId = Annotated[
    str,
    Path(
        description="A target's id, or the name of one of the operator's.",
        pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        examples=[TARGET_ID],
    ),
]
StatusFilter = Annotated[
    Literal["pending", "delivered", "dead"] | None,
    Query(alias="status", description="Only those of this status."),
]
_RESPONSES: Final = {
    **success(NotificationResponse, "The notification.", NOTIFICATION),
    **problems(404),
}


@router.get(
    "/api/notification-targets",
    operation_id="listNotificationTargets",
    summary="List what is notified of executions",
    responses=success(TargetsResponse, "The targets.", TARGETS),
)
async def list_targets(service: ServiceDep) -> Response:
    """Return the URLs that are notified: those of the operator, then those of flows."""
    targets = await service.notifications.targets()
    return json_response({"targets": [target_document(each) for each in targets]})


@router.post(
    "/api/notification-targets",
    operation_id="createNotificationTarget",
    summary="Notify a URL of the executions of a flow",
    status_code=201,
    responses={**success(TargetResponse, "The target.", TARGET, 201), **problems(404)},
)
async def create_target(
    service: ServiceDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[TargetCreateRequest, json_body(TargetCreateRequest)],
) -> Response:
    """Send what happens to the executions of a flow to a URL, signed, from now on."""
    target = await service.notifications.create_target(
        validate_id(body.plan_id, "flow"),
        body.url,
        body.secrets,
        body.events,
        target_id=preassigned_id,
    )
    return json_response(target_document(target), 201)


@router.delete(
    "/api/notification-targets/{target_id}",
    operation_id="deleteNotificationTarget",
    summary="Notify a URL no more",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404, 422),
)
async def delete_target(service: ServiceDep, target_id: TargetId) -> Response:
    """Delete a target of a flow with its notifications, also those that wait to be sent."""
    await service.notifications.delete_target(target_id)
    return Response(status_code=204)


@router.get(
    "/api/notifications",
    operation_id="listNotifications",
    summary="List notifications",
    responses={**success(NotificationsResponse, "One page.", NOTIFICATIONS), **problems(422)},
)
async def list_notifications(
    service: ServiceDep,
    status: StatusFilter = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return what was sent, is to be sent, or was accepted by nobody (``dead``), newest first."""
    size = page_size(limit, service.limits)
    before = decode_cursor(cursor)
    records = await service.notifications.list(status=status, before=before, limit=size + 1)
    page, next_cursor = paginate(records, size)
    documents = [notification_document(each) for each in page]
    return json_response({"notifications": documents, "next_cursor": next_cursor})


@router.get(
    "/api/notifications/{notification_id}",
    operation_id="getNotification",
    summary="Look at a notification",
    responses=_RESPONSES,
)
async def get_notification(service: ServiceDep, notification_id: NotificationId) -> Response:
    """Return a notification."""
    return json_response(notification_document(await service.notifications.get(notification_id)))


@router.post(
    "/api/notifications/{notification_id}/resend",
    operation_id="resendNotification",
    summary="Send a notification again",
    status_code=202,
    responses={
        **success(
            NotificationResponse, "It is sent again.", {**NOTIFICATION, "status": "pending"}, 202
        ),
        **problems(404),
    },
)
async def resend_notification(service: ServiceDep, notification_id: NotificationId) -> Response:
    """Have a notification sent again that is dead or was delivered, under the same id."""
    record = await service.notifications.resend(notification_id)
    return json_response(notification_document(record), 202)
