"""The chats of the store, and their statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, case, delete, func, insert, select, update

from planwave.principals import OPERATOR, Principal, principal_text
from planwave.storage.chats import ChatRecord, MessageRecord, Projected, Turn
from planwave.storage.event_codec import encode_document, search_key, storable_text
from planwave.storage.records import PageCursor
from planwave.storage.sql.dialects import insert_new, upsert
from planwave.storage.sql.flow_names import require_revision
from planwave.storage.sql.lists import ListQuery, contains, search_text
from planwave.storage.sql.locks import lock
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import chat_messages, chat_turns, chats

if TYPE_CHECKING:
    from planwave.shapes.common import ExecutionStatus

CHATS: Final = ListQuery(
    [
        chats.c.chat_id,
        chats.c.created_at,
        chats.c.updated_at,
        chats.c.title,
        chats.c.plan_id,
        chats.c.plan_revision,
        chats.c.node_id,
        chats.c.config,
        chats.c.head,
        chats.c.revision,
        chats.c.created_by,
    ],
    chats,
    chats.c.created_at,
    chats.c.chat_id,
    {"text": contains(chats.c.search)},
)
_MESSAGE: Final = (
    chat_messages.c.message_id,
    chat_messages.c.chat_id,
    chat_messages.c.role,
    chat_messages.c.origin,
    chat_messages.c.created_at,
    chat_messages.c.parent_id,
    chat_messages.c.blocks,
    chat_messages.c.execution_id,
    chat_messages.c.status,
    chat_messages.c.cursor,
    chat_messages.c.usage,
    chat_messages.c.seed,
    chat_messages.c.is_cancelled,
)
_OPEN: Final = chat_messages.c.status.in_(("starting", "executing", "paused"))
"""As the condition of the index ``chat_messages_open``."""


class SqlChats:
    """Chats, their messages and remembered turns, in ``chats``, ``chat_messages`` and ``chat_turns``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def create(self, chat: ChatRecord) -> bool:
        """Store a new chat; return False if there is one of this id.

        Raises:
            NotFound: The revision that it pins was removed.
        """
        config = None if chat.config is None else _text(chat.config)
        title = storable_text(chat.title)
        row = {
            "chat_id": chat.chat_id,
            "created_at": chat.created_at,
            "updated_at": chat.updated_at,
            "title": title,
            "plan_id": chat.plan_id,
            "plan_revision": chat.plan_revision,
            "node_id": chat.node_id,
            "config": config,
            "head": chat.head,
            "revision": chat.revision,
            "search": search_key(title, ""),
            "created_by": principal_text(chat.created_by),
        }

        def change(connection: Connection) -> bool:
            if chat.plan_id is not None:
                require_revision(connection, chat.plan_id, chat.plan_revision)
            return insert_new(connection, chats, row)

        return await self._write(change)

    async def get(self, chat_id: str) -> ChatRecord | None:
        return await self._read(lambda connection: _chat(connection, chat_id))

    async def page(
        self, *, text: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[ChatRecord]:
        """Return chats, newest first; ``text`` is searched in the title."""
        own = {"text": search_text(text)}
        rows = await self._read(lambda connection: CHATS.page(connection, own, before, limit))
        return [_chat_of(row) for row in rows]

    async def count(self, account: str | None = None) -> int:
        """Return the number of chats, or of those that an account has opened."""
        statement = select(chats.c.created_by, func.count()).group_by(chats.c.created_by)
        rows = await self._read(lambda connection: connection.execute(statement).all())
        accounts = (((Principal.from_text(text) or OPERATOR).account, n) for text, n in rows)
        return sum(n for each, n in accounts if account in (None, each))

    async def update(
        self, chat_id: str, at: str, *, title: str | None = None, head: str | None = None
    ) -> ChatRecord | None:
        """Change the title or the head of a chat; return it as it is then, None without one."""
        values: dict[str, Any] = {"updated_at": at, "revision": chats.c.revision + 1}
        if title is not None:
            title = storable_text(title)
            values |= {"title": title, "search": search_key(title, "")}
        if head is not None:
            values["head"] = head
        own = storable_text(chat_id)
        statement = update(chats).where(chats.c.chat_id == own).values(values)

        def change(connection: Connection) -> ChatRecord | None:
            connection.execute(statement)
            return _chat(connection, own)

        return await self._write(change)

    async def delete(self, chat_id: str) -> bool:
        """Delete a chat with its messages; return whether there was one of this id."""
        own = storable_text(chat_id)

        def remove(connection: Connection) -> bool:
            lock(connection, "chat", own)
            connection.execute(delete(chat_messages).where(chat_messages.c.chat_id == own))
            return bool(connection.execute(delete(chats).where(chats.c.chat_id == own)).rowcount)

        return await self._write(remove)

    async def add(
        self,
        messages: Sequence[MessageRecord],
        *,
        title: str = "",
        head: Sequence[str | None] | None = None,
    ) -> bool:
        """Store new messages of one chat in one commit; the last one becomes its head.

        ``title`` is used where the chat has none. Returns False, and stores nothing, if there is no
        such chat, or a message of one of these ids, or if the head of the chat is none of ``head``.
        """
        rows, title = [_message_row(each) for each in messages], storable_text(title)
        return await self._write(
            lambda connection: _add(connection, messages[-1], rows, title, head)
        )

    async def message(self, message_id: str) -> MessageRecord | None:
        statement = select(*_MESSAGE).where(chat_messages.c.message_id == storable_text(message_id))
        row = await self._read(lambda connection: connection.execute(statement).first())
        return None if row is None else _message_of(row)

    async def messages(self, chat_id: str) -> Sequence[MessageRecord]:
        """Return the messages of a chat in the order in which they were added."""
        own = chat_messages.c.chat_id == storable_text(chat_id)
        return await self._list(select(*_MESSAGE).where(own).order_by(chat_messages.c.id))

    async def siblings(self, message: MessageRecord) -> Sequence[str]:
        """Return the ids of the messages with the parent and the role of one, in their order."""
        columns = chat_messages.c
        statement = (
            select(columns.message_id)
            .where(
                columns.chat_id == message.chat_id,
                columns.parent_id.is_not_distinct_from(message.parent_id),
                columns.role == message.role,
            )
            .order_by(columns.id)
        )
        return await self._read(lambda connection: connection.execute(statement).scalars().all())

    async def statuses(self, chat_ids: Sequence[str]) -> Mapping[str, ExecutionStatus]:
        """Return the status of the newest reply of each chat; chats without one are left out."""
        newest = (
            select(func.max(chat_messages.c.id))
            .where(
                chat_messages.c.chat_id.in_([storable_text(each) for each in chat_ids]),
                chat_messages.c.status.is_not(None),
            )
            .group_by(chat_messages.c.chat_id)
        )
        statement = select(chat_messages.c.chat_id, chat_messages.c.status).where(
            chat_messages.c.id.in_(newest)
        )
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return {chat_id: status for chat_id, status in rows}

    async def open_messages(self) -> Sequence[MessageRecord]:
        """Return the replies of all chats that have not ended, oldest first."""
        return await self._list(select(*_MESSAGE).where(_OPEN).order_by(chat_messages.c.id))

    async def _list(self, statement: Any) -> Sequence[MessageRecord]:
        # In the reader's thread: a chat with images is many megabytes of JSON.
        return await self._read(
            lambda connection: [_message_of(row) for row in connection.execute(statement)]
        )

    async def project(self, message_id: str, projected: Projected, at: str) -> bool:
        """Store the blocks and the status of a reply; return whether they were new.

        A reply that has ended stays as it is; so does one that shows later events already.
        """
        values = {
            "blocks": _text(projected.blocks),
            "status": projected.status,
            "cursor": projected.cursor,
            "usage": _text(projected.usage),
        }
        statement = (
            update(chat_messages)
            .where(
                chat_messages.c.message_id == message_id,
                _OPEN,
                chat_messages.c.cursor <= projected.cursor,
            )
            .values(values)
        )

        def change(connection: Connection) -> bool:
            if not connection.execute(statement).rowcount:
                return False
            own = select(chat_messages.c.chat_id).where(chat_messages.c.message_id == message_id)
            connection.execute(
                update(chats)
                .where(chats.c.chat_id == own.scalar_subquery())
                .values(updated_at=at, revision=chats.c.revision + 1)
            )
            return True

        return await self._write(change)

    async def request_cancel(self, message_id: str) -> bool:
        """Note that a reply is to be cancelled; return whether it has not ended."""
        own = chat_messages.c.message_id == storable_text(message_id)
        statement = update(chat_messages).where(own, _OPEN).values(is_cancelled=1)
        return await self._write(lambda connection: bool(connection.execute(statement).rowcount))

    async def remember(self, turn: Turn) -> None:
        """Store a turn, or what is new of it; one that is complete stays as it is."""
        changed = {"messages": _text(turn.messages), "is_complete": int(turn.is_complete)}
        row = {
            "key": storable_text(turn.key),
            "execution_id": turn.execution_id,
            "path": turn.path,
            "at": turn.at,
            **changed,
        }
        unique = [chat_turns.c.key, chat_turns.c.execution_id, chat_turns.c.path]

        def change(connection: Connection) -> None:
            new = upsert(connection, chat_turns).values(row)
            is_open = chat_turns.c.is_complete == 0
            connection.execute(
                new.on_conflict_do_update(index_elements=unique, set_=changed, where=is_open)
            )

        await self._write(change)

    async def turns(self, key: str, *, limit: int, without: str = "") -> Sequence[Turn]:
        """Return the last turns under a key, oldest first; not those of one execution."""
        columns = chat_turns.c
        statement = (
            select(
                columns.key, columns.execution_id, columns.path, columns.at,
                columns.messages, columns.is_complete,
            )
            .where(columns.key == storable_text(key), columns.execution_id != without)
            .order_by(columns.id.desc())
            .limit(max(limit, 0))
        )  # fmt: skip
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return [
            Turn(*facts, messages=json.loads(messages), is_complete=bool(is_complete))
            for *facts, messages, is_complete in reversed(rows)
        ]


def _chat(connection: Connection, chat_id: str) -> ChatRecord | None:
    row = CHATS.one(connection, chat_id)
    return None if row is None else _chat_of(row)


def _chat_of(row: Any) -> ChatRecord:
    *facts, config, head, revision, created_by = row
    read = None if config is None else json.loads(config)
    by = Principal.from_text(created_by)
    return ChatRecord(*facts, config=read, head=head, revision=revision, created_by=by)


def _add(
    connection: Connection,
    last: MessageRecord,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    head: Sequence[str | None] | None,
) -> bool:
    lock(connection, "chat", last.chat_id)
    names = [row["message_id"] for row in rows]
    duplicate = select(chat_messages.c.id).where(chat_messages.c.message_id.in_(names))
    own = chats.c.chat_id == last.chat_id
    is_known = connection.execute(duplicate).first() is not None
    chat = connection.execute(select(chats.c.head).where(own)).first()
    if is_known or chat is None or (head is not None and chat.head not in head):
        return False
    for row in rows:
        connection.execute(insert(chat_messages).values(row))
    is_untitled = chats.c.title == ""
    connection.execute(
        update(chats)
        .where(own)
        .values(
            head=last.message_id,
            updated_at=last.created_at,
            revision=chats.c.revision + 1,
            title=case((is_untitled, title), else_=chats.c.title),
            search=case((is_untitled, search_key(title, "")), else_=chats.c.search),
        )
    )
    return True


def _message_row(message: MessageRecord) -> dict[str, Any]:
    return {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "parent_id": message.parent_id,
        "role": message.role,
        "origin": message.origin,
        "created_at": message.created_at,
        "execution_id": message.execution_id,
        "status": message.status,
        "cursor": message.cursor,
        "is_cancelled": int(message.is_cancelled),
        "blocks": _text(message.blocks),
        "usage": _text(message.usage),
        "seed": _text(message.seed),
    }


def _message_of(row: Any) -> MessageRecord:
    *facts, blocks, execution_id, status, cursor, usage, seed, is_cancelled = row
    return MessageRecord(
        *facts,
        blocks=json.loads(blocks),
        execution_id=execution_id,
        status=status,
        cursor=cursor,
        usage=json.loads(usage),
        seed=json.loads(seed),
        is_cancelled=bool(is_cancelled),
    )


def _text(value: Any) -> str:
    """Return JSON as text.

    Raises:
        StoreError: ``not-json``.
    """
    return encode_document(value, "a chat")
