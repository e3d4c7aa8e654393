"""Examples of chats for the OpenAPI document; a test reads them with the models."""

from __future__ import annotations

from typing import Any, Final

from planwave.api.schemas.examples import EXECUTION_ID, TIME

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
