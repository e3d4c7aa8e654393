"""Models of requests about chats, and examples of chats."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict, Field, with_config

from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, TIME
from planwave.api.schemas.requests import RequestModel
from planwave.shapes.chats import ChatConfig

_MOST_ATTACHMENTS: Final = 100
with_config(ConfigDict(extra="forbid", strict=True))(ChatConfig)
CHAT_ID: Final = "019a0000-0000-7000-8000-00000000000d"
MESSAGE_ID: Final = "019a0000-0000-7000-8000-00000000000f"
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
