"""Shapes of chats and their messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import MaxLen
from typing_extensions import TypedDict

from planwave.principals import PrincipalDocument
from planwave.shapes.common import ExecutionStatus


class ChatConfig(TypedDict):
    """What replies without a flow: an agent, made of these fields."""

    provider: NotRequired[Annotated[str, MaxLen(200)] | None]
    model: NotRequired[Annotated[str, MaxLen(1_000)] | None]
    system_prompt: NotRequired[str | None]
    """Who the model is."""
    instructions: NotRequired[str | None]
    """What else it is told, after a blank line."""
    tools: NotRequired[list[str] | None]
    """Names of registered tools that it may call."""
    temperature: NotRequired[float | None]
    reasoning_effort: NotRequired[str | None]
    max_tokens: NotRequired[int | None]
    approval: NotRequired[Literal["never", "always", "write"] | None]
    """When a person approves calls of its tools."""
    on_disconnect: NotRequired[Literal["continue", "cancel"] | None]
    """What becomes of a reply when the last client leaves that follows it."""


class ReplyUsage(TypedDict):
    """What a reply has used so far."""

    inputTokens: int
    outputTokens: int
    totalTokens: int
    costUsd: float | None
    """Null where the price of a model is not known."""


class MessageResponse(TypedDict):
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


class ChatSummary(TypedDict):
    """A chat without its messages."""

    chat_id: str
    title: str
    created_at: str
    created_by: PrincipalDocument | None
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


class ChatsResponse(TypedDict):
    """One page of chats, newest first."""

    chats: list[ChatSummary]
    next_cursor: str | None


class ReplyResponse(TypedDict):
    """A new reply, which may not have started."""

    chat_id: str
    message: MessageResponse


class TurnResponse(ReplyResponse):
    """A new message of the user, and the reply to it."""

    user_message: MessageResponse
