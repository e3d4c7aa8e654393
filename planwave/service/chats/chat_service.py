"""Chats: conversations whose replies are executions.

Send, edit, retry and continue take one path: the new messages and the id of the execution are stored in
one commit, then the execution is started, and its events become the blocks of the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakValueDictionary

from planwave.errors import Conflict, InputError, LimitExceeded, NotFound, ShuttingDown
from planwave.graph.diagnostics import short_repr
from planwave.graph.plan import title_of_text
from planwave.ids import new_id as make_id
from planwave.principals import OPERATOR, current_principal
from planwave.service.chats.chat_documents import Chat, Turn, UserContent
from planwave.service.chats.message_tree import MessageTree, entry_values, seed_of, text_of, turn_of
from planwave.service.chats.replies import ReplySubscription
from planwave.service.chats.reply_runs import TITLE_CHARS, ReplyRuns
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.flows.chat_entries import INVALID_CHAT
from planwave.service.flows.flow_queries import FlowQueries
from planwave.service.plans.plan_service import PlanService
from planwave.service.streaming.followers import Followers
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.storage.chats import Block, ChatRecord, MessageRecord, Origin
from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.shapes.chats import ChatConfig

MOST_TITLE_CHARS: Final = 200


class ChatService:
    """The use cases of chats."""

    def __init__(
        self,
        dependencies: ServiceDependencies,
        plans: PlanService,
        flows: FlowQueries,
        executions: ExecutionService,
        followers: Followers,
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._executions = executions
        self._subscribers: dict[str, set[asyncio.Event]] = {}
        self._runs = ReplyRuns(dependencies, plans, flows, executions, followers, self._notify)
        self._store.notices.subscribe("chats", self._wake)
        self._store.notices.on_reconnect.append(self._wake_all)
        self.recover_chats, self.recovering = self._runs.recover, self._runs.recovering
        self.close = self._runs.close
        self.message_siblings = self._store.chats.siblings
        # Of two turns that begin at the same time, the later one has to know the earlier one.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # -- chats ---------------------------------------------------------------------------------

    async def create(
        self,
        *,
        title: str = "",
        plan_id: str | None = None,
        plan_revision: int | None = None,
        node_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        chat_id: str | None = None,
    ) -> Chat:
        """Create a chat with a flow or a configuration; durable when this returns.

        Args:
            title: What people call it; "" takes the beginning of the first message.
            plan_id: The flow that replies.
            plan_revision: Its revision; None for the live one, whatever it is then.
            node_id: Its entry node; None for the only one.
            config: What replies without a flow; see ``configurations.FIELDS``.
            chat_id: The id, chosen by a caller that may repeat the request; a chat that exists is
                returned.

        Raises:
            NotFound: There is no such flow or revision.
            InputError: ``invalid-chat``: the flow has no such entry node, or the configuration is none.
            GraphInvalid, UnavailableProvider, UnknownProvider, UnknownModel: It cannot run here.
            LimitExceeded: ``chats``.
        """
        if chat_id is not None and await self._store.chats.get(chat_id) is not None:
            return await self.get(chat_id)
        _check_choice(plan_id, plan_revision is not None or node_id is not None, config)
        now = self._dependencies.timestamp()
        record = ChatRecord(
            chat_id or make_id(),
            now,
            now,
            _valid_title(title),
            plan_id,
            plan_revision,
            node_id,
            None if plan_id is not None else cast("ChatConfig", dict(config or {})),
            created_by=current_principal(),
        )
        await self._runs.source_of(record, "")
        await self._check_room("chats", None)
        account = current_principal().account
        if account != OPERATOR.account:
            await self._check_room("token_chats", account)
        await self._store.chats.create(record)
        return await self.get(record.chat_id)

    async def _check_room(self, limit: str, account: str | None) -> None:
        most: int = getattr(self._dependencies.limits, limit)
        present = await self._store.chats.count(account)
        if present >= most:
            hint = f"delete some, or raise the limit {limit}"
            raise LimitExceeded(limit, most, present + 1, hint=hint)

    async def get(self, chat_id: str) -> Chat:
        """Return a chat with all its messages.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self.record(chat_id)
        messages = [
            each if each.has_ended else await self._runs.present(each)
            for each in await self._store.chats.messages(chat_id)
        ]
        newest = next((each for each in reversed(messages) if each.status is not None), None)
        return Chat(record, newest and newest.status, MessageTree(messages))

    async def list(
        self, *, text: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[Chat]:
        """Return chats without their messages, newest first; ``text`` is searched in the title."""
        records = await self._store.chats.page(text=text, before=before, limit=limit)
        statuses = await self._store.chats.statuses([each.chat_id for each in records])
        return [Chat(each, statuses.get(each.chat_id)) for each in records]

    async def update(
        self, chat_id: str, *, title: str | None = None, head: str | None = None
    ) -> Chat:
        """Rename a chat, or show another branch of it.

        Raises:
            NotFound: There is no such chat, or no such message in it.
            InputError: ``invalid-chat``: the title is empty or too long.
        """
        if head is not None:
            await self.message(chat_id, head)
        if title is not None and not (title := _valid_title(title)):
            raise InputError("a title has a character at least", code=INVALID_CHAT)
        at = self._dependencies.timestamp()
        if await self._store.chats.update(chat_id, at, title=title, head=head) is None:
            raise _chat_not_found(chat_id)
        self._notify(chat_id)
        return await self.get(chat_id)

    async def delete(self, chat_id: str) -> None:
        """Cancel what runs and delete a chat with its messages; its executions stay.

        Raises:
            NotFound: There is none of that id.
        """
        for each in await self._store.chats.messages(chat_id):
            if not each.has_ended:
                with suppress(Conflict, NotFound):
                    await self.cancel_reply(chat_id, each.message_id)
        if not await self._store.chats.delete(chat_id):
            raise _chat_not_found(chat_id)
        self._notify(chat_id)

    async def message(self, chat_id: str, message_id: str) -> MessageRecord:
        """Return a message, a reply as far as it has come.

        Raises:
            NotFound: There is no such chat, or no such message in it.
        """
        message = await self._store.chats.message(message_id)
        if message is None or message.chat_id != chat_id:
            await self.record(chat_id)
            raise NotFound(
                f"chat {chat_id} has no message {short_repr(message_id)}",
                hint="look at the chat for its messages",
            )
        return message if message.has_ended else await self._runs.present(message)

    # -- turns ---------------------------------------------------------------------------------

    async def send(
        self,
        chat_id: str,
        content: UserContent,
        *,
        parent_id: str | None = None,
        at_head: bool = True,
        message_id: str | None = None,
    ) -> Turn:
        """Add a message of the user and start the reply; both are durable when this returns.

        Args:
            chat_id: The chat.
            content: The message.
            parent_id: The reply that it follows; None for the beginning of the chat.
            at_head: Follow the head of the chat instead.
            message_id: The id of the reply, chosen by a caller that may repeat the request.

        Raises:
            NotFound: There is no such chat or message.
            Conflict: ``message-running``, ``wrong-role``.
            InputError: ``invalid-message``; the flow or the model cannot be used.
            QueueFull, ShuttingDown, LimitExceeded: Nothing was stored.
        """
        async with self._lock(chat_id):
            if (turn := await self._repeated(chat_id, message_id)) is not None:
                return turn
            while True:
                try:
                    return await self._send(chat_id, content, parent_id, at_head, message_id)
                except _HeadMoved:
                    continue  # this message follows that of another process, or is refused

    async def _send(
        self,
        chat_id: str,
        content: UserContent,
        parent_id: str | None,
        at_head: bool,
        message_id: str | None,
    ) -> Turn:
        chat = await self.get(chat_id)
        tree = chat.tree or MessageTree(())
        parent_id = chat.record.head if at_head else parent_id
        parent = None if parent_id is None else await self.message(chat_id, parent_id)
        if parent is not None and parent.role == "user":
            raise _wrong_role(parent, "a message of the user follows a reply")
        if parent is not None and not parent.has_ended:
            raise _still_running(parent)
        user = self._user_message(chat.record, content, parent, "send")
        return await self._begin(chat, tree, user, "send", at_head=at_head, message_id=message_id)

    async def edit(
        self,
        chat_id: str,
        message_id: str,
        content: UserContent,
        *,
        new_id: str | None = None,
    ) -> Turn:
        """Add a sibling of a message of the user, and start its reply.

        Raises:
            As ``send``.
        """
        async with self._lock(chat_id):
            if (turn := await self._repeated(chat_id, new_id)) is not None:
                return turn
            chat = await self.get(chat_id)
            tree = chat.tree or MessageTree(())
            before = await self.message(chat_id, message_id)
            if before.role != "user":
                raise _wrong_role(before, "only messages of the user are edited")
            user = self._user_message(chat.record, content, tree.get(before.parent_id), "edit")
            return await self._begin(chat, tree, user, "edit", message_id=new_id)

    async def retry_reply(
        self, chat_id: str, message_id: str, *, new_id: str | None = None
    ) -> Turn:
        """Start another reply beside a reply.

        Raises:
            As ``send``.
        """
        return await self._again(chat_id, message_id, "retry", new_id)

    async def continue_reply(
        self, chat_id: str, message_id: str, *, new_id: str | None = None
    ) -> Turn:
        """Start another reply beside a reply, which begins with its blocks.

        Raises:
            As ``send``.
        """
        return await self._again(chat_id, message_id, "continue", new_id)

    async def cancel_reply(self, chat_id: str, message_id: str) -> MessageRecord:
        """Cancel a reply, also one whose execution has not started; durable when this returns.

        Raises:
            NotFound: There is no such chat or message.
            Conflict: ``wrong-role``; ``already-ended``.
            ShuttingDown, StoreError: It goes on.
        """
        reply = await self.message(chat_id, message_id)
        if reply.role != "assistant":
            raise _wrong_role(reply, "only replies are cancelled")
        if reply.has_ended or not await self._store.chats.request_cancel(message_id):
            raise Conflict(
                f"message {message_id} is already {reply.status}",
                code="already-ended",
                hint="retry it for another reply",
            )
        await self._runs.cancel(reply)
        return await self.message(chat_id, message_id)

    async def _again(
        self, chat_id: str, message_id: str, origin: Origin, new_id: str | None
    ) -> Turn:
        async with self._lock(chat_id):
            if (turn := await self._repeated(chat_id, new_id, is_new=False)) is not None:
                return turn
            chat = await self.get(chat_id)
            tree = chat.tree or MessageTree(())
            before = await self.message(chat_id, message_id)
            if before.role != "assistant":
                raise _wrong_role(before, f"only replies are {_PAST[origin]}")
            if not before.has_ended:
                raise _still_running(before)
            user = tree.get(before.parent_id)
            assert user is not None  # noqa: S101 - a reply has the message of the user before it
            seed = seed_of(before) if origin == "continue" else []
            return await self._begin(
                chat, tree, user, origin, is_new=False, seed=seed, message_id=new_id
            )

    async def _begin(
        self,
        chat: Chat,
        tree: MessageTree,
        user: MessageRecord,
        origin: Origin,
        *,
        is_new: bool = True,
        at_head: bool = False,
        seed: Sequence[Block] = (),
        message_id: str | None = None,
    ) -> Turn:
        """Store the new messages in one commit, then start the execution of the reply."""
        self._executions.driver.check_capacity()
        self._check_count(tree, 1 + is_new)
        branch = [*tree.branch(user.parent_id), user] if is_new else tree.branch(user.message_id)
        values = entry_values(branch, seed)
        await self._check_source(chat.record)
        reply = MessageRecord(
            message_id or make_id(),
            chat.record.chat_id,
            "assistant",
            origin,
            self._dependencies.timestamp(),
            user.message_id,
            list(seed),
            make_id(),
            "starting",
            seed=list(seed),
        )
        new = [user, reply] if is_new else [reply]
        await self._runs.uninterrupted(self._store_and_start(chat.record, new, values, at_head))
        started = await self.message(chat.record.chat_id, reply.message_id)
        return Turn(started, user if is_new else None)

    async def _store_and_start(
        self,
        chat: ChatRecord,
        new: Sequence[MessageRecord],
        values: Mapping[str, Any],
        at_head: bool,
    ) -> None:
        """Store new messages, and start the execution of the last one, which is the reply.

        Raises:
            NotFound: The chat was deleted meanwhile.
            _HeadMoved: The messages follow the head, and that is another one meanwhile.
        """
        reply, goal = new[-1], str(values["message"])
        async with self._runs.starting(reply.message_id):
            title = title_of_text(text_of(new[0].blocks), TITLE_CHARS) if len(new) > 1 else ""
            head = [chat.head] if at_head else None
            if not await self._store.chats.add(new, title=title, head=head):
                if at_head and (await self.record(chat.chat_id)).head != chat.head:
                    raise _HeadMoved
                raise _chat_not_found(chat.chat_id)
            self._notify(chat.chat_id)
            await self._runs.start(chat, reply, values, goal)

    async def _repeated(
        self, chat_id: str, message_id: str | None, *, is_new: bool = True
    ) -> Turn | None:
        """Return the turn that an earlier request with the same key began, or None."""
        reply = None if message_id is None else await self._store.chats.message(message_id)
        if reply is None:
            return None
        if reply.chat_id != chat_id:
            raise _chat_not_found(chat_id)
        user = await self._store.chats.message(reply.parent_id or "") if is_new else None
        await self._runs.resume(reply)
        return Turn(await self.message(chat_id, reply.message_id), user)

    @asynccontextmanager
    async def follow_reply(
        self,
        chat_id: str,
        message_id: str,
        after: int = 0,
        limits: BacklogLimits = BacklogLimits(),  # noqa: B008 - immutable
    ) -> AsyncGenerator[ReplySubscription]:
        """Follow a reply from an event of its execution on; see ``ReplyRuns.follow``.

        Raises:
            NotFound: There is no such chat or message.
            Conflict: ``wrong-role``: it is a message of the user.
            ShuttingDown: The service is going down; also while following.
        """
        reply = await self._store.chats.message(message_id)
        if reply is None or reply.chat_id != chat_id or reply.role != "assistant":
            reply = await self.message(chat_id, message_id)
            raise _wrong_role(reply, "only replies have events")
        async with self._runs.follow(reply, after, limits) as subscription:
            yield subscription

    async def changes(self, chat_id: str, after: int | None = None) -> AsyncGenerator[Chat]:
        """Yield a chat without its messages now, unless its revision is known, and after each change.

        It ends when the chat is deleted.

        Raises:
            NotFound: There is no such chat.
            ShuttingDown: While iterating.
        """
        await self.record(chat_id)
        changed = asyncio.Event()
        self._subscribers.setdefault(chat_id, set()).add(changed)
        try:
            while (record := await self._store.chats.get(chat_id)) is not None:
                if record.revision != after:
                    after = record.revision
                    statuses = await self._store.chats.statuses([chat_id])
                    yield Chat(record, statuses.get(chat_id))
                await changed.wait()
                changed.clear()
                if self._executions.driver.is_draining:
                    raise ShuttingDown
        finally:
            self._subscribers[chat_id].discard(changed)
            if not self._subscribers[chat_id]:
                del self._subscribers[chat_id]

    def close_chat_streams(self) -> None:
        """End the streams of chats with ``ShuttingDown``; the service is draining."""
        self._wake_all()

    def _notify(self, chat_id: str) -> None:
        """Tell who follows a chat that it changed, here and in other processes."""
        self._wake(chat_id)
        self._store.notices.publish("chats", chat_id)

    def _wake_all(self) -> None:
        for chat_id in list(self._subscribers):
            self._wake(chat_id)

    def _wake(self, chat_id: str) -> None:
        for each in self._subscribers.get(chat_id, ()):
            each.set()

    # -- parts ---------------------------------------------------------------------------------

    def _lock(self, chat_id: str) -> asyncio.Lock:
        return self._locks.setdefault(chat_id, asyncio.Lock())

    async def record(self, chat_id: str) -> ChatRecord:
        """Return a chat without its messages.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self._store.chats.get(chat_id)
        if record is None:
            raise _chat_not_found(chat_id)
        return record

    def _user_message(
        self,
        chat: ChatRecord,
        content: UserContent,
        parent: MessageRecord | None,
        origin: Origin,
    ) -> MessageRecord:
        if not content.message.strip() and not content.images and not content.files:
            raise InputError(
                "the message is empty",
                code="invalid-message",
                hint="write a text, or attach a file or an image",
            )
        message = MessageRecord(
            make_id(),
            chat.chat_id,
            "user",
            origin,
            self._dependencies.timestamp(),
            None if parent is None else parent.message_id,
            content.blocks(),
        )
        turn_of(message)  # raises where it cannot be shown to a model
        return message

    async def _check_source(self, chat: ChatRecord) -> None:
        try:
            await self._runs.source_of(chat, "")
        except NotFound as gone:  # the chat itself is there
            hint = "begin another chat, with a flow that is there"
            raise InputError(gone.message, code=INVALID_CHAT, hint=hint) from gone

    def _check_count(self, tree: MessageTree, new: int) -> None:
        most, count = self._dependencies.limits.chat_messages, len(tree.messages) + new
        if count > most:
            hint = "begin another chat, or raise the limit chat_messages"
            raise LimitExceeded("chat_messages", most, count, hint=hint)


class _HeadMoved(Exception):
    """Another process has added a message to the chat."""


_PAST: Final[Mapping[Origin, str]] = {"retry": "retried", "continue": "continued"}


def _check_choice(plan_id: str | None, has_more: bool, config: object) -> None:
    """Check that a chat has a flow or a configuration.

    Raises:
        InputError: ``invalid-chat``.
    """
    if plan_id is not None and config is not None:
        raise InputError(
            "a chat has either a flow or a configuration", code=INVALID_CHAT, hint="leave one out"
        )
    if plan_id is None and has_more:
        raise InputError(
            "plan_revision and node_id belong to a flow", code=INVALID_CHAT, hint="add plan_id"
        )


def _valid_title(title: str) -> str:
    title = title.strip()
    if len(title) > MOST_TITLE_CHARS:
        raise InputError(
            f"a title has at most {MOST_TITLE_CHARS} characters, this one {len(title)}",
            code=INVALID_CHAT,
        )
    return title


def _chat_not_found(chat_id: str) -> NotFound:
    return NotFound(f"there is no chat {short_repr(chat_id)}", hint="list the chats")


def _wrong_role(message: MessageRecord, why: str) -> Conflict:
    whose = "a reply" if message.role == "assistant" else "of the user"
    return Conflict(
        f"message {message.message_id} is {whose}",
        code="wrong-role",
        hint=why,
    )


def _still_running(reply: MessageRecord) -> Conflict:
    return Conflict(
        f"reply {reply.message_id} is {reply.status}",
        code="message-running",
        hint="wait for its end, or cancel it",
    )
