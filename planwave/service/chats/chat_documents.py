"""Chats and their messages as the API shows them, and what a person sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from planwave.principals import principal_json
from planwave.service.chats.message_tree import MessageTree
from planwave.storage.chats import Block, ChatRecord, MessageRecord

if TYPE_CHECKING:
    from planwave.shapes.chats import ChatResponse, ChatSummary, MessageResponse
    from planwave.shapes.common import ExecutionStatus


class UserContent(NamedTuple):
    """What a person sends.

    Attributes:
        images: URLs, or ``{"name", "mime", "url" | "data"}``.
        files: ``{"name", "mime", "url" | "data"}``.
    """

    message: str
    images: Sequence[Any] = ()
    files: Sequence[Mapping[str, Any]] = ()

    def blocks(self) -> list[Block]:
        """Return the content as blocks."""
        text = [{"type": "text", "text": self.message}] if self.message else []
        images = [{"type": "image", "image": each} for each in self.images]
        return [*text, *images, *({"type": "file", "file": dict(each)} for each in self.files)]


class Turn(NamedTuple):
    """A new reply, and the new message of the user before it, if there is one."""

    reply: MessageRecord
    user: MessageRecord | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with its messages.

    Attributes:
        status: Of the newest reply; None without one.
        tree: Its messages; None in lists of chats.
    """

    record: ChatRecord
    status: ExecutionStatus | None = None
    tree: MessageTree | None = None

    def as_json(self) -> ChatSummary | ChatResponse:
        """Return the chat in the JSON form of the API, with its messages where it has them."""
        record, tree = self.record, self.tree
        summary: ChatSummary = {
            "chat_id": record.chat_id,
            "title": record.title,
            "created_at": record.created_at,
            "created_by": principal_json(record.created_by),
            "updated_at": record.updated_at,
            "plan_id": record.plan_id,
            "plan_revision": record.plan_revision,
            "node_id": record.node_id,
            "config": record.config,
            "head": record.head,
            "revision": record.revision,
            "status": self.status,
        }
        if tree is None:
            return summary
        messages = [message_json(each, tree.siblings(each)) for each in tree.messages]
        return {**summary, "messages": messages}


def message_json(message: MessageRecord, siblings: Sequence[str]) -> MessageResponse:
    """Return a message in the JSON form of the API, with the ids of its siblings."""
    is_reply = message.role == "assistant"
    return {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "parent_id": message.parent_id,
        "role": message.role,
        "origin": message.origin,
        "created_at": message.created_at,
        "siblings": list(siblings),
        "blocks": list(message.blocks),
        "execution_id": message.execution_id,
        "status": message.status,
        "cursor": message.cursor if is_reply else None,
        "usage": message.usage,
    }
