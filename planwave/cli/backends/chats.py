"""Chats for commands: those of a service in this process, or of a running one over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from planwave.service.chats.chat_documents import UserContent

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.service import Service


class ChatBackend(Protocol):
    """Begins chats and replies; each method that begins a reply returns the id of its message."""

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """Create a chat; return its id."""
        ...

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """Say something; return the ids of the message and of the reply."""
        ...

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]: ...
    async def retry(self, chat_id: str, message_id: str) -> str: ...
    async def continue_(self, chat_id: str, message_id: str) -> str: ...
    async def cancel(self, chat_id: str, message_id: str) -> object: ...
    def events(self, chat_id: str, message_id: str) -> AsyncGenerator[dict[str, Any]]:
        """Yield the events of a reply as they happen, until it ends."""
        ...


class LocalChats:
    """The chats of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.cancel = service.chats.cancel_reply

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """See :meth:`ChatBackend.create`."""
        made = await self._service.chats.create(
            plan_id=plan_id, plan_revision=plan_revision, config=config
        )
        return made.record.chat_id

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """See :meth:`ChatBackend.send`."""
        turn = await self._service.chats.send(chat_id, UserContent(text))
        return turn.reply.parent_id or "", turn.reply.message_id

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]:
        """See :meth:`ChatBackend.edit`."""
        turn = await self._service.chats.edit(chat_id, message_id, UserContent(text))
        return turn.reply.parent_id or "", turn.reply.message_id

    async def retry(self, chat_id: str, message_id: str) -> str:
        """See :meth:`ChatBackend.retry`."""
        return (await self._service.chats.retry_reply(chat_id, message_id)).reply.message_id

    async def continue_(self, chat_id: str, message_id: str) -> str:
        """See :meth:`ChatBackend.continue_`."""
        return (await self._service.chats.continue_reply(chat_id, message_id)).reply.message_id

    async def events(self, chat_id: str, message_id: str) -> AsyncGenerator[dict[str, Any]]:
        """See :meth:`ChatBackend.events`."""
        async with self._service.chats.follow_reply(chat_id, message_id) as reply:
            while (events := await reply.next()) is not None:
                for event in events:
                    yield event


class RemoteChats:
    """The chats of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.cancel = client.cancel_message
        self.events = client.reply_events

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """See :meth:`ChatBackend.create`."""
        made = await self._client.create_chat(plan_id, plan_revision=plan_revision, config=config)
        return made["chat_id"]

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """See :meth:`ChatBackend.send`."""
        return _ids(await self._client.send_message(chat_id, text))

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]:
        """See :meth:`ChatBackend.edit`."""
        return _ids(await self._client.edit_message(chat_id, message_id, text))

    async def retry(self, chat_id: str, message_id: str) -> str:
        """See :meth:`ChatBackend.retry`."""
        return (await self._client.retry_message(chat_id, message_id))["message"]["message_id"]

    async def continue_(self, chat_id: str, message_id: str) -> str:
        """See :meth:`ChatBackend.continue_`."""
        return (await self._client.continue_message(chat_id, message_id))["message"]["message_id"]


def _ids(turn: object) -> tuple[str, str]:
    found = cast("dict[str, Any]", turn)
    return found["user_message"]["message_id"], found["message"]["message_id"]
