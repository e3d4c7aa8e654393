"""Routes: the events of a reply, and the changes of a chat, as server-sent events and over WebSocket."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response
from starlette.websockets import WebSocket

from planwave.api.auth import authenticate, require_principal
from planwave.api.dependencies import AUTHENTICATED, StateDep, app_state
from planwave.api.pagination import ChatId, MessageId
from planwave.api.problems import problems
from planwave.api.routes.events import known_seq
from planwave.api.routes.websocket import parse_subscription
from planwave.api.streaming.chats import ChatChangeStream, ReplyEventStream, chat_frames
from planwave.api.streaming.websocket import ExecutionSocket
from planwave.errors import NotFound
from planwave.ids import UUID_PATTERN
from planwave.principals import Principal

router = APIRouter(tags=["chats"], dependencies=AUTHENTICATED)
_LARGEST_SEQ: Final = 10**15 - 1
_REPLY_EXAMPLE: Final = (
    'event: RunContent\ndata: {"event":"RunContent","messageId":"…","blockId":"agent-1#1.0.text",'
    '"nodeId":"agent-1","content":"On its","offset":0}\n\n'
    'id: 11\nevent: RunCompleted\ndata: {"event":"RunCompleted","messageId":"…","seq":11}\n\n'
)
_CHAT_EXAMPLE: Final = (
    'id: 4\nevent: ChatChanged\ndata: {"event":"ChatChanged","chat":{"revision":4},"seq":4}\n\n'
)
After = Annotated[int | None, Query(ge=0, le=_LARGEST_SEQ, description="What is already known.")]
LastEventId = Annotated[
    str | None, Header(description="What `EventSource` sends when it comes back; over `after`.")
]


def _responses(example: str, over: str) -> dict[int | str, dict[str, Any]]:
    content = {"text/event-stream": {"schema": {"type": "string"}, "example": example}}
    return {
        200: {"description": "Events as they happen.", "content": content},
        204: {"description": over},
        **problems(404, 409, 422),
    }


@router.get(
    "/api/chats/{chat_id}/messages/{message_id}/events",
    operation_id="streamReply",
    summary="The events of a reply, as they happen",
    response_class=Response,
    responses=_responses(_REPLY_EXAMPLE, "It is over, and nothing comes after that event."),
)
async def stream_reply(
    state: StateDep,
    principal: Annotated[Principal, Depends(require_principal)],
    chat_id: ChatId,
    message_id: MessageId,
    after: After = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the events of a reply after the last one known; docs/chat.md describes them."""
    last_seq = known_seq(last_event_id) if last_event_id else after or 0
    return ReplyEventStream(state, principal.account, chat_id, message_id, last_seq)


@router.get(
    "/api/chats/{chat_id}/events",
    operation_id="streamChat",
    summary="The changes of a chat, as they happen",
    response_class=Response,
    responses=_responses(_CHAT_EXAMPLE, "The chat was deleted."),
)
async def stream_chat(
    state: StateDep,
    principal: Annotated[Principal, Depends(require_principal)],
    chat_id: ChatId,
    after: After = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream a `ChatChanged` now, unless its revision is known, and after each change."""
    last_revision = known_seq(last_event_id) if last_event_id else after
    return ChatChangeStream(state, principal.account, chat_id, last_revision)


@router.websocket("/ws/chats/{chat_id}/messages/{message_id}")
async def watch_reply(websocket: WebSocket) -> None:
    """Follow a reply until it ends: JSON arrays of events."""
    chat_id, message_id = _ids(websocket, "chat_id", "message_id")
    state, principal = app_state(websocket), authenticate(websocket)
    after = parse_subscription(websocket).after or 0
    with state.connection_limiter.slot(principal.account, state.settings.limits.socket_connections):
        connection = ExecutionSocket(websocket, state.settings.limits)
        async with state.service.chats.follow_reply(
            chat_id, message_id, after, connection.backlog_limits
        ) as reply:
            await connection.run(partial(connection.send_reply, reply))


@router.websocket("/ws/chats/{chat_id}")
async def watch_chat(websocket: WebSocket) -> None:
    """Follow the changes of a chat."""
    (chat_id,) = _ids(websocket, "chat_id")
    state, principal = app_state(websocket), authenticate(websocket)
    after = parse_subscription(websocket).after
    await state.service.chats.record(chat_id)
    with state.connection_limiter.slot(principal.account, state.settings.limits.socket_connections):
        connection = ExecutionSocket(websocket, state.settings.limits)
        async with aclosing(chat_frames(state.service, chat_id, after)) as frames:
            await connection.run(partial(connection.send_all, frames))


def _ids(websocket: WebSocket, *names: str) -> list[str]:
    ids = [websocket.path_params[name] for name in names]
    if any(UUID_PATTERN.fullmatch(each) is None for each in ids):
        raise NotFound("the path holds no id of a chat or a message")
    return ids
