"""Replies as projections of their executions: computed from stored events, or followed live."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from planwave.events import TERMINAL, Event
from planwave.events.chat_events.encoder import ChatEvent, ChatEventEncoder
from planwave.events.chat_events.speech import Replies, Reply
from planwave.service.queries.history import ExecutionQueries
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.service.streaming.subscriptions import ExecutionSubscription
from planwave.storage.call_documents import model_replies
from planwave.storage.chats import MessageRecord, Projected
from planwave.storage.records import StoredCall

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


_PAGE: Final = 1_000
_GONE: Final = {"code": "not-found", "message": "the execution of this reply was deleted"}


class ReplySubscription:
    """The events of one reply, for one client: call ``next`` until it returns None.

    Args:
        store: Has what models replied.
        encoder: Knows all events before the first one.
        message: The reply as it was stored.
        subscription: The events of its execution; None where it never had one.
    """

    def __init__(
        self,
        store: Store,
        encoder: ChatEventEncoder,
        message: MessageRecord,
        subscription: ExecutionSubscription | None,
        after: int,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._message = message
        self._subscription = subscription
        self._unsent = _without_execution(message) if subscription is None and not after else []

    @property
    def is_over(self) -> bool:
        """Whether every event was delivered."""
        subscription = self._subscription
        return not self._unsent and (subscription is None or subscription.is_over)

    @property
    def cursor(self) -> int:
        """The last stored event that the client is done with."""
        return 0 if self._subscription is None else self._subscription.cursor

    def on_drop(self, call: Any) -> None:
        """Set a callback for a client that falls too far behind while it reads nothing."""
        if self._subscription is not None:
            self._subscription.on_drop(call)

    async def next(self) -> Sequence[ChatEvent] | None:
        """Return the next events, perhaps none; None after the last one.

        Raises:
            SlowConsumer, ShuttingDown, StoreError: As an ``ExecutionSubscription``.
        """
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            return unsent
        batch = None if self._subscription is None else await self._subscription.next()
        if batch is None:
            return None
        if any(event.type == "usage" for event in batch.events):
            self._encoder.replies = await recorded_replies(self._store, batch.events[0])
        return [chat_event for event in batch.events for chat_event in self._encode(event)]

    def _encode(self, event: Event) -> list[ChatEvent]:
        chat_events = self._encoder.encode(event)
        stored = self._message
        is_last = event.type in TERMINAL and stored.has_ended
        if is_last and self._encoder.blocks != list(stored.blocks):
            # Text that was streamed before a cancellation is stored with the reply only.
            blocks = list(stored.blocks)
            seed = {"event": "SeedBlocks", "messageId": stored.message_id, "blocks": blocks}
            chat_events.insert(-1, seed)
        return chat_events


class ReplyProjector:
    """Computes and follows replies."""

    def __init__(self, store: Store, executions: ExecutionQueries) -> None:
        self._store = store
        self._executions = executions

    async def project(self, message: MessageRecord, *, live: bool = False) -> Projected:
        """Return the blocks and the status of a reply, from the events of its execution.

        Args:
            message: The reply.
            live: Whether text that was streamed and is not stored is wanted too, as far as this
                process has it; only of executions that have ended.
        """
        execution_id = message.execution_id or ""
        record = await self._store.execution(execution_id)
        if record is None:
            return Projected(
                message.blocks or message.seed, message.status or "starting", message.cursor
            )
        encoder = await self._encoder(message)
        events = self._told(execution_id) if live else self._stored(execution_id, record.last_seq)
        async for event in events:
            encoder.encode(event)
        return Projected(encoder.blocks, encoder.status, encoder.cursor, encoder.usage)

    @asynccontextmanager
    async def subscribe(
        self, message: MessageRecord, after: int, limits: BacklogLimits
    ) -> AsyncGenerator[ReplySubscription]:
        """Follow a reply from an event on.

        Raises:
            NotFound: Its execution was deleted.
            ShuttingDown: The service is going down.
        """
        encoder = await self._encoder(message)
        execution_id = message.execution_id or ""
        if message.has_ended and await self._store.execution(execution_id) is None:
            yield ReplySubscription(self._store, encoder, message, None, after)
            return
        async for event in self._stored(execution_id, after):
            encoder.encode(event)
        async with self._executions.subscribe(execution_id, after, limits) as subscription:
            yield ReplySubscription(self._store, encoder, message, subscription, after)

    async def _encoder(self, message: MessageRecord) -> ChatEventEncoder:
        execution_id = message.execution_id or ""
        calls = await self._store.calls([execution_id])
        return ChatEventEncoder(
            message.chat_id,
            message.message_id,
            seed=message.seed,
            replies=replies_of(calls.get(execution_id, ())),
        )

    async def _stored(self, execution_id: str, last: int) -> AsyncGenerator[Event]:
        """Yield the stored events up to one of them."""
        after = 0
        while after < last:
            size = min(_PAGE, last - after)
            page = await self._store.events(execution_id, after=after, limit=size)
            for event in page:
                yield event
            if not page:
                return
            after = page[-1].seq

    async def _told(self, execution_id: str) -> AsyncGenerator[Event]:
        """Yield all events of an execution that has ended, with the text that was streamed."""
        async with self._executions.live_executions.subscribe(
            execution_id, 0, BacklogLimits()
        ) as subscription:
            async for batch in subscription:
                for event in batch.events:
                    yield event


async def recorded_replies(store: Store, event: Event) -> Replies:
    """Return what is recorded of the replies of models in the execution of an event."""
    calls = await store.calls([event.execution_id])
    return replies_of(calls.get(event.execution_id, ()))


def replies_of(calls: Iterable[StoredCall]) -> Replies:
    """Return recorded replies by path and attempt."""
    replies: dict[tuple[str, int], list[Reply]] = {}
    for key, text, reasoning in model_replies(calls):
        replies.setdefault((key.path, key.attempt), []).append(Reply(text, reasoning))
    return replies


def _without_execution(message: MessageRecord) -> list[ChatEvent]:
    """Return the events of a reply that ended before it had an execution, or whose execution is gone."""
    about = {"messageId": message.message_id}
    last: dict[str, ChatEvent] = {
        "cancelled": {"event": "RunCancelled", "content": "cancelled before it started"},
        "completed": {"event": "RunCompleted"},
    }
    errors = [block["error"] for block in message.blocks if block["type"] == "error"]
    end = last.get(message.status or "", {"event": "RunError", "error": (*errors, _GONE)[0]})
    seed = [{"event": "SeedBlocks", "blocks": list(message.blocks)}] if message.blocks else []
    return [{**each, **about} for each in seed] + [{**end, **about, "seq": max(message.cursor, 1)}]
