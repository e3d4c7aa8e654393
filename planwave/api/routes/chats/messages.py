"""Routes: the messages of a chat, and what is done with them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedExecutionIdDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import ChatId, MessageId, validate_id
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.routes.chats.collection import REPLY, USER_MESSAGE
from planwave.api.schemas.examples import CHAT_ID, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.chats.chat_documents import Turn, UserContent, message_json
from planwave.service.service import Service
from planwave.shapes.chats import MessageResponse, ReplyResponse, TurnResponse
from planwave.storage.chats import MessageRecord

router = APIRouter(tags=["chats"], dependencies=AUTHENTICATED)
_STARTED: Final[dict[str, Any]] = {
    **REPLY,
    "blocks": [],
    "status": "executing",
    "cursor": 2,
    "usage": None,
}
TURN: Final[dict[str, Any]] = {
    "chat_id": CHAT_ID,
    "user_message": USER_MESSAGE,
    "message": _STARTED,
}
NEW_REPLY: Final[dict[str, Any]] = {"chat_id": CHAT_ID, "message": _STARTED}
_MOST_ATTACHMENTS: Final = 100


class UserMessageRequest(RequestModel):
    """What a person says."""

    message: str = Field(default="", description="The text.", examples=["Where is my order?"])
    images: list[str | dict[str, Any]] = Field(
        default=[],
        max_length=_MOST_ATTACHMENTS,
        description="URLs (`https:` or `data:`) or files.",
        examples=[[]],
    )
    files: list[dict[str, Any]] = Field(
        default=[],
        max_length=_MOST_ATTACHMENTS,
        description="Files: `{name, mime, url}` or `{name, mime, data}`, the data in base64.",
        examples=[[]],
    )


class SendMessageRequest(UserMessageRequest):
    """What a person says, and after which reply."""

    parent_id: str | None = Field(
        default=None,
        description="The reply that it follows; null: the beginning; left out: the head of the chat.",
    )


_TURN_RESPONSES = {**success(TurnResponse, "The messages.", TURN, 202), **problems(404, 409)}
_REPLY_RESPONSES = {**success(ReplyResponse, "The reply.", NEW_REPLY, 202), **problems(404, 409)}
_MESSAGE = "/api/chats/{chat_id}/messages/{message_id}"


@router.post(
    "/api/chats/{chat_id}/messages",
    operation_id="sendMessage",
    summary="Say something",
    status_code=202,
    responses=_TURN_RESPONSES,
)
async def send_message(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    chat_id: ChatId,
    body: Annotated[SendMessageRequest, json_body(SendMessageRequest)],
) -> Response:
    """Add a message of the user and start the reply; both are stored when this answers."""
    parent_id = None if body.parent_id is None else validate_id(body.parent_id, "message")
    turn = await service.chats.send(
        chat_id,
        _content(body),
        parent_id=parent_id,
        at_head="parent_id" not in body.model_fields_set,
        message_id=preassigned_id,
    )
    return await _turn_response(service, turn)


@router.get(
    _MESSAGE,
    operation_id="getMessage",
    summary="Look at a message",
    responses={**success(MessageResponse, "The message.", REPLY), **problems(404)},
)
async def get_message(service: ServiceDep, chat_id: ChatId, message_id: MessageId) -> Response:
    """Return one message, a reply as far as it has come."""
    message = await service.chats.message(chat_id, message_id)
    return json_response(await _shown(service, message))


@router.post(
    f"{_MESSAGE}/edit",
    operation_id="editMessage",
    summary="Say something else",
    status_code=202,
    responses=_TURN_RESPONSES,
)
async def edit_message(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    chat_id: ChatId,
    message_id: MessageId,
    body: Annotated[UserMessageRequest, json_body(UserMessageRequest)],
) -> Response:
    """Add a sibling of a message of the user, and start its reply."""
    turn = await service.chats.edit(chat_id, message_id, _content(body), new_id=preassigned_id)
    return await _turn_response(service, turn)


@router.post(
    f"{_MESSAGE}/retry",
    operation_id="retryMessage",
    summary="Have a reply given again",
    status_code=202,
    responses=_REPLY_RESPONSES,
)
async def retry_message(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    chat_id: ChatId,
    message_id: MessageId,
) -> Response:
    """Start another reply beside a reply."""
    turn = await service.chats.retry_reply(chat_id, message_id, new_id=preassigned_id)
    return await _turn_response(service, turn)


@router.post(
    f"{_MESSAGE}/continue",
    operation_id="continueMessage",
    summary="Have a reply continued",
    status_code=202,
    responses=_REPLY_RESPONSES,
)
async def continue_message(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    chat_id: ChatId,
    message_id: MessageId,
) -> Response:
    """Start another reply beside a reply, which begins with its blocks."""
    turn = await service.chats.continue_reply(chat_id, message_id, new_id=preassigned_id)
    return await _turn_response(service, turn)


@router.post(
    f"{_MESSAGE}/cancel",
    operation_id="cancelMessage",
    summary="Cancel a reply",
    responses={**success(MessageResponse, "The reply.", REPLY), **problems(404, 409)},
)
async def cancel_message(service: ServiceDep, chat_id: ChatId, message_id: MessageId) -> Response:
    """Cancel a reply, also one that has not started."""
    cancelled = await service.chats.cancel_reply(chat_id, message_id)
    return json_response(await _shown(service, cancelled))


def _content(body: UserMessageRequest) -> UserContent:
    return UserContent(body.message, body.images, body.files)


async def _turn_response(service: Service, turn: Turn) -> Response:
    """Return the response to a request that began a reply."""
    chat_id, reply_id = turn.reply.chat_id, turn.reply.message_id
    document: dict[str, Any] = {"chat_id": chat_id, "message": await _shown(service, turn.reply)}
    if turn.user is not None:
        document["user_message"] = await _shown(service, turn.user)
    return json_response(document, 202, location=f"/api/chats/{chat_id}/messages/{reply_id}")


async def _shown(service: Service, message: MessageRecord) -> MessageResponse:
    return message_json(message, await service.chats.message_siblings(message))
