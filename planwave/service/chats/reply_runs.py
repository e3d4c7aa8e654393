"""The executions behind replies: started, projected into blocks, followed, recovered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from planwave.errors import Conflict, PlanwaveError, ShuttingDown, StoreError
from planwave.events import TERMINAL, Event
from planwave.events.request_text import field_of
from planwave.graph.plan import Plan, graph_hash, title_of_text
from planwave.graph.reading.documents import read_graph
from planwave.principals import Principal, acting_as
from planwave.service.chats.configurations import ENTRY_ID, graph_of
from planwave.service.chats.message_tree import MessageTree, entry_values, text_of
from planwave.service.chats.replies import ReplyProjector, ReplySubscription
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.execution_service import ExecutionService, UnstoredPlan
from planwave.service.flows.chat_entries import chat_start_entry
from planwave.service.flows.flow_queries import Flow, FlowQueries
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.plan_service import PlanService
from planwave.service.streaming.followers import Followers
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.storage.chats import ENDED, ChatRecord, MessageRecord, Projected

if TYPE_CHECKING:
    from planwave.shapes.common import ExecutionStatus

_log = logging.getLogger(__name__)
KIND: Final = "chat_start"
"""``kind`` of the trigger of an execution that is a reply."""
RECOVER_S: Final = 30.0
"""How often replies are looked for that a process has left, and how long one may take to start an execution."""
START_S: Final = 5.0
"""How long a client waits for the execution of a reply that another process is starting."""
_POLL_S: Final = 0.05
TITLE_CHARS: Final = 60
"""Of the first message, where a chat has no title."""
_CHANGES: Final = frozenset(
    {"execution.started", "execution.paused", "execution.resumed", *TERMINAL}
)
"""Events after which a reply is stored again."""


class _Start(NamedTuple):
    """What an execution of a chat is started with."""

    source: Flow | UnstoredPlan
    node_id: str
    on_disconnect: str


class ReplyRuns:
    """The executions of the replies that have not ended.

    Args:
        dependencies: The store, the limits and the clock.
        plans: Checks the graphs of configurations.
        flows: Finds the flows that reply.
        executions: Starts, follows and cancels executions.
        followers: Counts the clients of replies.
        notify: Called with the id of a chat after one of its replies changed.
    """

    def __init__(
        self,
        dependencies: ServiceDependencies,
        plans: PlanService,
        flows: FlowQueries,
        executions: ExecutionService,
        followers: Followers,
        notify: Callable[[str], None],
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._plans = plans
        self._flows = flows
        self._executions = executions
        self._followers = followers
        self._notify = notify
        self._projector = ReplyProjector(dependencies.store, executions)
        self._starting: dict[str, asyncio.Event] = {}
        self._projecting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        executions.driver.listeners.append(self._on_published)

    async def uninterrupted(self, work: Coroutine[Any, Any, None]) -> None:
        """Await work that goes on where the caller is cancelled: half a turn would be left."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    @asynccontextmanager
    async def starting(self, message_id: str) -> AsyncGenerator[None]:
        """Note that a reply is about to be stored and started: its subscribers wait for that."""
        self._starting[message_id] = asyncio.Event()
        try:
            yield
        finally:
            self._starting.pop(message_id).set()

    async def start(
        self, chat: ChatRecord, reply: MessageRecord, values: Mapping[str, Any], goal: str
    ) -> None:
        """Start the execution of a reply, unless it was cancelled before."""
        execution_id = reply.execution_id or ""
        present = await self._store.chats.message(reply.message_id)
        if present is None or present.is_cancelled:
            await self._settle_unstarted(reply, "cancelled")
            return
        try:
            start = await self.source_of(chat, goal)
            with acting_as(Principal("chat", chat.chat_id, by=chat.created_by)):
                await self._executions.execute(
                    start.source,
                    inputs={start.node_id: values},
                    trigger={"id": chat.chat_id, "kind": KIND, "delivery": reply.message_id},
                    execution_id=execution_id,
                )
        except ShuttingDown:
            raise  # it is stored, and started after the restart
        except PlanwaveError as error:
            if error.code != "duplicate-execution":  # else another process started it just then
                await self._settle_unstarted(reply, "failed", error)
                return
        present = await self._store.chats.message(reply.message_id)
        if present is None or present.is_cancelled:
            with suppress(Conflict):
                await self._executions.cancel(execution_id)

    async def _settle_unstarted(
        self, reply: MessageRecord, status: ExecutionStatus, error: PlanwaveError | None = None
    ) -> None:
        """End a reply that has no execution."""
        blocks = list(reply.seed)
        if error is not None:
            document = {"code": error.code, "message": error.message}
            document |= {"hint": error.hint} if error.hint else {}
            blocks.append({"type": "error", "id": "error-0", "nodeId": None, "error": document})
        at = self._dependencies.timestamp()
        await self._store.chats.project(reply.message_id, Projected(blocks, status, 0), at)
        self._notify(reply.chat_id)

    async def source_of(self, chat: ChatRecord, goal: str) -> _Start:
        """Return what is started for a reply in a chat.

        Raises:
            PlanwaveError: It cannot run here.
        """
        if chat.plan_id is not None:
            flow = await self._flows.to_start(chat.plan_id, chat.plan_revision)
            entry = chat_start_entry(flow.graph, flow.name, chat.node_id)
            return _Start(flow, entry.node_id, entry.on_disconnect)
        config = chat.config or {}
        graph, _ = read_graph(graph_of(config), limits=self._dependencies.limits)
        raise_for_run(self._plans.check_graph(graph))
        at, digest = self._dependencies.timestamp(), graph_hash(graph)
        plan = Plan("", goal, chat.title or title_of_text(goal, TITLE_CHARS), graph, digest, at)
        return _Start(UnstoredPlan(plan), ENTRY_ID, str(config.get("on_disconnect") or "continue"))

    async def cancel(self, reply: MessageRecord) -> None:
        """Cancel a reply whose cancellation is stored.

        Raises:
            Conflict: It has ended.
        """
        execution_id = reply.execution_id or ""
        if await self._store.execution(execution_id) is not None:
            try:
                await self._executions.cancel(execution_id)
            finally:
                await self._project(execution_id, reply.message_id)
        elif reply.message_id not in self._starting:
            await self._settle_unstarted(reply, "cancelled")

    async def recover(self) -> int:
        """Start the replies whose process ended before, and follow those that go on.

        Returns:
            The number of replies that had not ended.
        """
        replies = await self._store.chats.open_messages()
        for reply in replies:
            await self._resume_safely(reply)
        return len(replies)

    @asynccontextmanager
    async def recovering(self) -> AsyncGenerator[None]:
        """Take up within the block the replies that other processes have left: of several one does so."""
        async with asyncio.TaskGroup() as tasks:
            if not self._executions.is_shared:
                yield
                return
            recovery = tasks.create_task(self._recover_left())
            yield
            recovery.cancel()

    async def _recover_left(self) -> None:
        while True:
            try:
                for reply in await self._store.chats.open_messages():
                    if await self._is_left(reply):
                        await self._resume_safely(reply)
            except PlanwaveError as error:
                _log.warning("replies that processes have left cannot be read now: %s", error)
            await asyncio.sleep(RECOVER_S)

    async def _is_left(self, reply: MessageRecord) -> bool:
        """Return whether the process is gone that was to do something for a reply."""
        record = await self._store.execution(reply.execution_id or "")
        if record is not None:
            return reply.is_cancelled or record.status in ENDED
        age = self._dependencies.now() - datetime.fromisoformat(reply.created_at)
        return age.total_seconds() > RECOVER_S  # else it is just being started

    async def _resume_safely(self, reply: MessageRecord) -> None:
        try:
            await self.resume(reply)
        except Exception as error:  # noqa: BLE001 - a task boundary: the others go on
            _log.warning("reply %s is not taken up: %s", reply.message_id, error)

    async def resume(self, reply: MessageRecord) -> None:
        """Follow a reply that is stored, and start its execution if that was never done."""
        execution_id = reply.execution_id or ""
        if reply.has_ended or reply.message_id in self._starting:
            return
        if await self._store.execution(execution_id) is None:
            chat = await self._store.chats.get(reply.chat_id)
            if chat is None:
                return
            tree = MessageTree(await self._store.chats.messages(reply.chat_id))
            branch = tree.branch(reply.parent_id)
            values = entry_values(branch, reply.seed)
            await self.start(chat, reply, values, text_of(branch[-1].blocks))
        elif reply.is_cancelled:
            with suppress(Conflict):  # it ended before
                await self._executions.cancel(execution_id)
            await self._project(execution_id, reply.message_id)
        else:
            await self._project(execution_id, reply.message_id)

    async def close(self) -> None:
        """Stop projecting replies; their stored blocks are computed again when they are read."""
        self._executions.driver.listeners.remove(self._on_published)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_published(self, events: Sequence[Event]) -> None:
        """Project a reply whose execution changed its status."""
        execution_id = events[0].execution_id if events else ""
        if not any(event.type in _CHANGES for event in events):
            return
        state = self._executions.live_executions.state_of(execution_id)
        trigger = None if state is None else state.trigger
        if field_of(trigger, "kind") == KIND:
            self._spawn(self._project_safely(execution_id, str(field_of(trigger, "delivery"))))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _project_safely(self, execution_id: str, message_id: str) -> None:
        try:
            await self._project(execution_id, message_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: it is computed when it is read
            _log.warning("the reply of execution %s is not stored: %s", execution_id, error)

    async def _project(self, execution_id: str, message_id: str) -> None:
        """Store the blocks and the status of a reply."""
        async with self._projecting.setdefault(execution_id, asyncio.Lock()):
            reply = await self._store.chats.message(message_id)
            if reply is None or reply.execution_id != execution_id:
                return
            if not reply.has_ended:
                record = await self._store.execution(execution_id)
                has_ended = record is not None and record.status in ENDED
                projected = await self._projector.project(reply, live=has_ended)
                at = self._dependencies.timestamp()
                await self._store.chats.project(message_id, projected, at)
        self._notify(reply.chat_id)

    async def present(self, reply: MessageRecord) -> MessageRecord:
        """Return a reply that has not ended as it is now."""
        projected = await self._projector.project(reply)
        return replace(
            reply,
            blocks=projected.blocks,
            status=projected.status,
            cursor=projected.cursor,
            usage=projected.usage,
        )

    @asynccontextmanager
    async def follow(
        self, reply: MessageRecord, after: int, limits: BacklogLimits
    ) -> AsyncGenerator[ReplySubscription]:
        """Follow a stored reply from an event of its execution on; see ``ReplySubscription``.

        With ``on_disconnect: cancel`` the reply is cancelled when the last client leaves early.

        Raises:
            ShuttingDown: The service is going down; also while following.
        """
        reply = await self._started(reply)
        # Alone, the chat is read when the last client leaves; else other processes have to know before.
        counts = not reply.has_ended
        if counts and self._executions.is_shared:
            counts = await self._is_cancelled_if_left(reply)
        if counts:
            await self._followers.join(reply.execution_id or "")
        subscription: ReplySubscription | None = None
        try:
            async with self._projector.subscribe(reply, after, limits) as subscription:
                yield subscription
        finally:
            if counts:
                goes_on = self._executions.driver.is_draining
                is_over = subscription is None or subscription.is_over
                self._spawn(self._leave(reply, cancels=not (goes_on or is_over)))

    async def _started(self, reply: MessageRecord) -> MessageRecord:
        """Return a reply once its execution is there, which this or another process is just making."""
        if (starting := self._starting.get(reply.message_id)) is not None:
            await starting.wait()
            return await self._store.chats.message(reply.message_id) or reply
        if not self._executions.is_shared:
            return reply
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                while not reply.has_ended and not await self._has_execution(reply):
                    await asyncio.sleep(_POLL_S)
                    reply = await self._store.chats.message(reply.message_id) or reply
        return reply

    async def _has_execution(self, reply: MessageRecord) -> bool:
        return await self._store.execution(reply.execution_id or "") is not None

    async def _leave(self, reply: MessageRecord, *, cancels: bool) -> None:
        """Count a client no more, and cancel a reply without clients, where its chat says so."""
        execution_id = reply.execution_id or ""
        with suppress(PlanwaveError):
            is_last = await self._followers.leave(execution_id)
            if is_last and cancels and await self._is_cancelled_if_left(reply):
                if self._followers.has_clients(execution_id):
                    return
                await self._store.chats.request_cancel(reply.message_id)
                await self.cancel(reply)

    async def _is_cancelled_if_left(self, reply: MessageRecord) -> bool:
        chat = await self._store.chats.get(reply.chat_id)
        if chat is None:
            return False
        try:
            return (await self.source_of(chat, "")).on_disconnect == "cancel"
        except StoreError:
            raise
        except PlanwaveError:  # it cannot run here any more
            return False
