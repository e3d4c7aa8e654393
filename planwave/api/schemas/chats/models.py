"""Request and response models of chats."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import (
    ExecutionStatus,
    PrincipalResponse,
    RequestModel,
    ResponseModel,
)
from planwave.api.schemas.examples import FLOW_ID

_MOST_ATTACHMENTS = 100


class ChatConfig(RequestModel):
    """What replies without a flow: an agent, made of these fields."""

    provider: str | None = Field(default=None, max_length=200)
    model: str | None = Field(default=None, max_length=1_000)
    system_prompt: str | None = Field(default=None, description="Who the model is.")
    instructions: str | None = Field(
        default=None, description="What else it is told, after a blank line."
    )
    tools: list[str] | None = Field(
        default=None, description="Names of registered tools that it may call."
    )
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = None
    approval: Literal["never", "always", "write"] | None = Field(
        default=None, description="When a person approves calls of its tools."
    )
    on_disconnect: Literal["continue", "cancel"] | None = Field(
        default=None,
        description="What becomes of a reply when the last client leaves that follows it.",
    )


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


class ReplyUsage(ResponseModel):
    """What a reply has used so far."""

    inputTokens: int
    outputTokens: int
    totalTokens: int
    costUsd: float | None
    """Null where the price of a model is not known."""


class MessageResponse(ResponseModel):
    """One message; see docs/chat.md for its blocks."""

    message_id: str
    chat_id: str
    parent_id: str | None
    role: Literal["user", "assistant"]
    origin: Literal["send", "edit", "retry", "continue"]
    created_at: str
    siblings: list[str]
    """The ids of all messages with this parent and role, in the order of creation."""
    blocks: list[dict[str, Any]]
    execution_id: str | None
    status: ExecutionStatus | None
    """Of a reply; null in messages of the user."""
    cursor: int | None
    """Of a reply: the events up to here are in `blocks`."""
    usage: ReplyUsage | None
    """Of a reply, what its models used."""


class ChatSummary(ResponseModel):
    """A chat without its messages."""

    chat_id: str
    title: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who opened it; null where it is not known."""
    updated_at: str
    plan_id: str | None
    plan_revision: int | None
    node_id: str | None
    config: ChatConfig | None
    head: str | None
    """The last message of the branch that is shown."""
    revision: int
    """Counts the changes of the chat and of the status of its messages."""
    status: ExecutionStatus | None
    """Of the newest reply."""


class ChatResponse(ChatSummary):
    """A chat with its messages."""

    messages: list[MessageResponse]
    """In the order of creation."""


class ChatsResponse(ResponseModel):
    """One page of chats, newest first."""

    chats: list[ChatSummary]
    next_cursor: str | None


class ReplyResponse(ResponseModel):
    """A new reply, which may not have started."""

    chat_id: str
    message: MessageResponse


class TurnResponse(ReplyResponse):
    """A new message of the user, and the reply to it."""

    user_message: MessageResponse
