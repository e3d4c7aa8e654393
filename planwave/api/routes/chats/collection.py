"""Routes: chats."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import ConfigDict, Field, with_config
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedIdDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    ChatId,
    Cursor,
    PageSize,
    SearchChats,
    decode_cursor,
    page_size,
    paginate,
    validate_id,
)
from planwave.api.problems import problems
from planwave.api.responses import json_response, json_response_in_thread
from planwave.api.schemas.examples import CHAT_ID, EXECUTION_ID, FLOW_ID, MESSAGE_ID, TIME, success
from planwave.api.schemas.requests import RequestModel
from planwave.shapes.chats import ChatConfig, ChatResponse, ChatsResponse

router = APIRouter(tags=["chats"], dependencies=AUTHENTICATED)
with_config(ConfigDict(extra="forbid", strict=True))(ChatConfig)
_USER_ID: Final = "019a0000-0000-7000-8000-00000000000e"
USER_MESSAGE: Final[dict[str, Any]] = {
    "message_id": _USER_ID,
    "chat_id": CHAT_ID,
    "parent_id": None,
    "role": "user",
    "origin": "send",
    "created_at": TIME,
    "siblings": [_USER_ID],
    "blocks": [{"type": "text", "text": "Where is my order?"}],
    "execution_id": None,
    "status": None,
    "cursor": None,
    "usage": None,
}
REPLY: Final[dict[str, Any]] = {
    **USER_MESSAGE,
    "message_id": MESSAGE_ID,
    "parent_id": _USER_ID,
    "role": "assistant",
    "siblings": [MESSAGE_ID],
    "blocks": [
        {"type": "text", "id": "agent-1#1.0.text", "nodeId": "agent-1", "text": "On its way."}
    ],
    "execution_id": EXECUTION_ID,
    "status": "completed",
    "cursor": 11,
    "usage": {"inputTokens": 12, "outputTokens": 4, "totalTokens": 16, "costUsd": None},
}
SUMMARY: Final[dict[str, Any]] = {
    "chat_id": CHAT_ID,
    "title": "Where is my order?",
    "created_at": TIME,
    "updated_at": TIME,
    "plan_id": None,
    "plan_revision": None,
    "node_id": None,
    "config": {"model": "gpt-5.6-luna"},
    "head": MESSAGE_ID,
    "revision": 4,
    "status": "completed",
}
CHAT: Final[dict[str, Any]] = {**SUMMARY, "messages": [USER_MESSAGE, REPLY]}
CHATS: Final[dict[str, Any]] = {"chats": [SUMMARY], "next_cursor": None}


class ChatCreateRequest(RequestModel):
    """What replies: a flow, or a model."""

    title: str = Field(default="", description="By default the beginning of the first message.")
    plan_id: str | None = Field(default=None, description="The flow.", examples=[FLOW_ID])
    plan_revision: int | None = Field(
        default=None,
        ge=1,
        description="The revision of the flow; without one the live one, whatever it is then.",
    )
    node_id: str | None = Field(
        default=None,
        max_length=64,
        description="Its `chat_start` node; not needed where there is only one.",
    )
    config: ChatConfig | None = Field(default=None, description="In place of a flow.")


class ChatUpdateRequest(RequestModel):
    """What changes of a chat."""

    title: str | None = Field(default=None, min_length=1, description="Its new title.")
    head: str | None = Field(
        default=None, description="The last message of the branch that is shown."
    )


@router.post(
    "/api/chats",
    operation_id="createChat",
    summary="Begin a chat",
    status_code=201,
    responses={**success(ChatResponse, "The chat.", CHAT, 201), **problems(404, 409)},
)
async def create_chat(
    service: ServiceDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[ChatCreateRequest, json_body(ChatCreateRequest, may_be_empty=True)],
) -> Response:
    """Create a chat with a flow, or with a model and its tools."""
    plan_id = None if body.plan_id is None else validate_id(body.plan_id, "flow")
    config = None
    if body.config is not None:
        config = {name: value for name, value in body.config.items() if value is not None}
    chat = await service.chats.create(
        title=body.title,
        plan_id=plan_id,
        plan_revision=body.plan_revision,
        node_id=body.node_id,
        config=config,
        chat_id=preassigned_id,
    )
    location = f"/api/chats/{chat.record.chat_id}"
    return json_response(chat.as_json(), 201, location=location)


@router.get(
    "/api/chats",
    operation_id="listChats",
    summary="List chats",
    responses={**success(ChatsResponse, "One page.", CHATS), **problems(422)},
)
async def list_chats(
    service: ServiceDep,
    text: SearchChats = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return chats without their messages, newest first."""
    size = page_size(limit, service.limits)
    chats = await service.chats.list(text=text, before=decode_cursor(cursor), limit=size + 1)
    _, next_cursor = paginate([each.record for each in chats], size)
    documents = [each.as_json() for each in chats[:size]]
    return json_response({"chats": documents, "next_cursor": next_cursor})


@router.get(
    "/api/chats/{chat_id}",
    operation_id="getChat",
    summary="Look at a chat",
    responses={**success(ChatResponse, "The chat.", CHAT), **problems(404)},
)
async def get_chat(service: ServiceDep, chat_id: ChatId) -> Response:
    """Return a chat with all its messages."""
    return await json_response_in_thread((await service.chats.get(chat_id)).as_json())


@router.patch(
    "/api/chats/{chat_id}",
    operation_id="updateChat",
    summary="Rename a chat, or show another branch",
    responses={**success(ChatResponse, "The chat.", CHAT), **problems(404)},
)
async def update_chat(
    service: ServiceDep,
    chat_id: ChatId,
    body: Annotated[ChatUpdateRequest, json_body(ChatUpdateRequest)],
) -> Response:
    """Change the title of a chat, or the branch of it that is shown."""
    head = None if body.head is None else validate_id(body.head, "message")
    changed = await service.chats.update(chat_id, title=body.title, head=head)
    return await json_response_in_thread(changed.as_json())


@router.delete(
    "/api/chats/{chat_id}",
    operation_id="deleteChat",
    summary="Delete a chat",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404),
)
async def delete_chat(service: ServiceDep, chat_id: ChatId) -> Response:
    """Cancel what runs and delete a chat with its messages; its executions stay."""
    await service.chats.delete(chat_id)
    return Response(status_code=204)
