"""What ``chat`` nodes remember under a key over executions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planwave.events.chat_events.encoder import ChatEventEncoder
from planwave.service.chats.message_tree import text_of
from planwave.service.chats.replies import replies_of
from planwave.storage.chats import ENDED, Turn

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


class ChatMemory:
    """The turns of conversations, by key; satisfies the port of ``planwave.nodes.services``.

    A turn is stored when its node runs, with the message of the user. The reply is what its execution
    says in the end: it is computed when the turn is recalled for the first time, so that no crash can
    lose it.

    Args:
        store: Has the turns and the executions.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def recall(
        self, key: str, execution_id: str, *, max_turns: int
    ) -> list[list[Mapping[str, Any]]]:
        """Return the messages of the last turns under a key, oldest first; not of one execution.

        A turn whose execution has not ended, or said nothing, has the message of the user alone.
        """
        before = await self._store.chats.turns(key, limit=max_turns, without=execution_id)
        return [list((await self._completed(each)).messages) for each in before]

    async def remember(
        self, key: str, execution_id: str, path: str, message: Mapping[str, Any]
    ) -> None:
        """Store the message of the user of a turn; durable when this returns."""
        at = self._store.now().isoformat(timespec="microseconds")
        turn = Turn(key, execution_id, path, at, [message])
        await self._store.chats.remember(turn)

    async def _completed(self, turn: Turn) -> Turn:
        if turn.is_complete:
            return turn
        record = await self._store.execution(turn.execution_id)
        if record is not None and record.status not in ENDED:
            return turn
        text = "" if record is None else await self._said(turn.execution_id)
        reply = [{"role": "assistant", "content": text}] if text else []
        complete = replace(turn, messages=[*turn.messages, *reply], is_complete=True)
        await self._store.chats.remember(complete)
        return complete

    async def _said(self, execution_id: str) -> str:
        """Return what an execution says to people."""
        calls = await self._store.calls([execution_id])
        encoder = ChatEventEncoder("", "", replies=replies_of(calls.get(execution_id, ())))
        for event in await self._store.events(execution_id):
            encoder.encode(event)
        return text_of(encoder.blocks)
