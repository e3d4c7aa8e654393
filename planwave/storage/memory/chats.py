"""Chats, their messages and remembered turns in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from planwave.principals import OPERATOR
from planwave.storage.chats import ChatRecord, MessageRecord, Projected, Turn
from planwave.storage.event_codec import encode_document, storable_text
from planwave.storage.records import PageCursor

_JsonT = TypeVar("_JsonT")


class MemoryChats:
    """The ``ChatStore`` port over dictionaries.

    Args:
        check_open: Raises if the store is closed.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._chats: dict[str, ChatRecord] = {}
        self._messages: dict[str, MessageRecord] = {}
        self._turns: dict[str, dict[tuple[str, str], Turn]] = {}

    async def create(self, chat: ChatRecord) -> bool:
        self._check_open()
        if chat.chat_id in self._chats:
            return False
        self._chats[chat.chat_id] = replace(
            chat, title=storable_text(chat.title), config=_copy(chat.config)
        )
        return True

    async def get(self, chat_id: str) -> ChatRecord | None:
        found = self._chats.get(chat_id)
        return None if found is None else replace(found, config=_copy(found.config))

    async def page(
        self, *, text: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[ChatRecord]:
        found = sorted(self._chats.values(), key=_sort_key, reverse=True)
        wanted = storable_text(text).casefold() if text else ""
        return [
            replace(each, config=_copy(each.config))
            for each in found
            if wanted in each.title.casefold() and (before is None or _sort_key(each) < before)
        ][: max(limit, 0)]

    async def count(self, account: str | None = None) -> int:
        accounts = ((each.created_by or OPERATOR).account for each in self._chats.values())
        return sum(account in (None, each) for each in accounts)

    async def update(
        self, chat_id: str, at: str, *, title: str | None = None, head: str | None = None
    ) -> ChatRecord | None:
        self._check_open()
        found = self._chats.get(chat_id)
        if found is None:
            return None
        self._chats[chat_id] = replace(
            found,
            title=found.title if title is None else storable_text(title),
            head=head or found.head,
            updated_at=at,
            revision=found.revision + 1,
        )
        return await self.get(chat_id)

    async def delete(self, chat_id: str) -> bool:
        self._check_open()
        for message in list(self._of(chat_id)):
            del self._messages[message.message_id]
        return self._chats.pop(chat_id, None) is not None

    async def add(self, messages: Sequence[MessageRecord], *, title: str = "") -> bool:
        self._check_open()
        last = messages[-1]
        chat = self._chats.get(last.chat_id)
        if chat is None or any(each.message_id in self._messages for each in messages):
            return False
        stored = [_copied(each) for each in messages]
        self._messages |= {each.message_id: each for each in stored}
        self._chats[chat.chat_id] = replace(
            chat,
            title=chat.title or storable_text(title),
            head=last.message_id,
            updated_at=last.created_at,
            revision=chat.revision + 1,
        )
        return True

    async def message(self, message_id: str) -> MessageRecord | None:
        found = self._messages.get(message_id)
        return None if found is None else _copied(found)

    async def messages(self, chat_id: str) -> Sequence[MessageRecord]:
        return [_copied(each) for each in self._of(chat_id)]

    async def siblings(self, message: MessageRecord) -> Sequence[str]:
        own = message.parent_id, message.role
        found = self._of(message.chat_id)
        return [each.message_id for each in found if (each.parent_id, each.role) == own]

    async def statuses(self, chat_ids: Sequence[str]) -> Mapping[str, str]:
        asked = set(chat_ids)
        return {
            each.chat_id: each.status
            for each in self._messages.values()
            if each.chat_id in asked and each.status is not None
        }

    async def open_messages(self) -> Sequence[MessageRecord]:
        return [_copied(each) for each in self._messages.values() if not each.has_ended]

    async def project(self, message_id: str, projected: Projected, at: str) -> bool:
        self._check_open()
        found = self._messages.get(message_id)
        if found is None or found.has_ended or projected.cursor < found.cursor:
            return False
        self._messages[message_id] = _copied(
            replace(
                found,
                blocks=projected.blocks,
                status=projected.status,
                cursor=projected.cursor,
                usage=projected.usage,
            )
        )
        chat = self._chats[found.chat_id]
        self._chats[chat.chat_id] = replace(chat, updated_at=at, revision=chat.revision + 1)
        return True

    async def request_cancel(self, message_id: str) -> bool:
        self._check_open()
        found = self._messages.get(message_id)
        if found is None or found.has_ended:
            return False
        self._messages[message_id] = replace(found, is_cancelled=True)
        return True

    async def remember(self, turn: Turn) -> None:
        self._check_open()
        turn = replace(turn, key=storable_text(turn.key), messages=_copy(turn.messages))
        own = self._turns.setdefault(turn.key, {})
        kept = own.get((turn.execution_id, turn.path))
        if kept is None or not kept.is_complete:
            own[turn.execution_id, turn.path] = replace(
                turn, at=turn.at if kept is None else kept.at
            )

    async def turns(self, key: str, *, limit: int, without: str = "") -> Sequence[Turn]:
        found = self._turns.get(storable_text(key), {}).values()
        own = [each for each in found if each.execution_id != without]
        last = own[max(len(own) - limit, 0) :] if limit > 0 else []
        return [replace(each, messages=_copy(each.messages)) for each in last]

    def _of(self, chat_id: str) -> Iterator[MessageRecord]:
        return (each for each in self._messages.values() if each.chat_id == chat_id)


def _sort_key(chat: ChatRecord) -> tuple[str, str]:
    return chat.created_at, chat.chat_id


def _copy(value: _JsonT) -> _JsonT:
    """Return a copy of JSON.

    Raises:
        StoreError: ``not-json``.
    """
    copied: Any = json.loads(encode_document({"": value}, "a chat"))
    return copied[""]


def _copied(message: MessageRecord) -> MessageRecord:
    return replace(
        message,
        blocks=_copy(message.blocks),
        usage=_copy(message.usage),
        seed=_copy(message.seed),
    )
