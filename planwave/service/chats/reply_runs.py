"""The executions behind replies: started, projected into blocks, followed, recovered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import Conflict, PlanwaveError, ShuttingDown
from planwave.events import TERMINAL, Event
from planwave.events.request_text import field_of
from planwave.graph.plan import Plan, graph_hash
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
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.storage.chats import ENDED, ChatRecord, MessageRecord, Projected

if TYPE_CHECKING:
    from planwave.shapes.common import ExecutionStatus

_log = logging.getLogger(__name__)
KIND: Final = "chat_start"
"""``kind`` of the trigger of an execution that is a reply."""
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
        notify: Called with the id of a chat after one of its replies changed.
    """

    def __init__(
        self,
        dependencies: ServiceDependencies,
        plans: PlanService,
        flows: FlowQueries,
        executions: ExecutionService,
        notify: Callable[[str], None],
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._plans = plans
        self._flows = flows
        self._executions = executions
        self._notify = notify
        self._projector = ReplyProjector(dependencies.store, executions)
        self._open: dict[str, str] = {}
        """The replies that have not ended, by execution."""
        self._starting: dict[str, asyncio.Event] = {}
        self._subscribers: dict[str, int] = {}
        self._projecting: dict[str, asyncio.Lock] = {}
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
        self._open[execution_id] = reply.message_id
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
        self._open.pop(reply.execution_id or "", None)
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
        plan = Plan("", goal, chat.title or goal[:TITLE_CHARS], graph, digest, at)
        return _Start(UnstoredPlan(plan), ENTRY_ID, str(config.get("on_disconnect") or "continue"))

    async def cancel(self, reply: MessageRecord) -> None:
        """Cancel a reply whose cancellation is stored.

        Raises:
            Conflict: It has ended.
        """
        execution_id = reply.execution_id or ""
        if await self._store.execution(execution_id) is not None:
            self._open[execution_id] = reply.message_id
            try:
                await self._executions.cancel(execution_id)
            finally:
                await self._project(execution_id)
        elif reply.message_id not in self._starting:
            await self._settle_unstarted(reply, "cancelled")

    async def recover(self) -> int:
        """Start the replies whose process ended before, and follow those that go on.

        Returns:
            The number of replies that had not ended.
        """
        replies = await self._store.chats.open_messages()
        for reply in replies:
            try:
                await self.resume(reply)
            except Exception as error:  # noqa: BLE001 - a task boundary: the others go on
                _log.warning("reply %s is not taken up: %s", reply.message_id, error)
        return len(replies)

    async def resume(self, reply: MessageRecord) -> None:
        """Follow a reply that is stored, and start its execution if that was never done."""
        execution_id = reply.execution_id or ""
        if reply.has_ended or reply.message_id in self._starting:
            return
        self._open[execution_id] = reply.message_id
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
            await self._project(execution_id)
        else:
            await self._project(execution_id)

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
        if execution_id not in self._open and self._executions.is_shared:
            self._adopt(execution_id)
        if execution_id in self._open:
            self._spawn(self._project_safely(execution_id))

    def _adopt(self, execution_id: str) -> None:
        """Project a reply from now on that another process started, and that is driven or watched here."""
        state = self._executions.live_executions.state_of(execution_id)
        trigger = None if state is None else state.trigger
        if field_of(trigger, "kind") == KIND:
            self._open[execution_id] = str(field_of(trigger, "delivery"))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _project_safely(self, execution_id: str) -> None:
        try:
            await self._project(execution_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: it is computed when it is read
            _log.warning("the reply of execution %s is not stored: %s", execution_id, error)

    async def _project(self, execution_id: str) -> None:
        """Store the blocks and the status of a reply; it is forgotten here once it has ended."""
        message_id = self._open.get(execution_id)
        if message_id is None:
            return
        async with self._projecting.setdefault(execution_id, asyncio.Lock()):
            reply = await self._store.chats.message(message_id)
            if reply is not None and not reply.has_ended:
                record = await self._store.execution(execution_id)
                has_ended = record is not None and record.status in ENDED
                projected = await self._projector.project(reply, live=has_ended)
                at = self._dependencies.timestamp()
                await self._store.chats.project(message_id, projected, at)
                reply = await self._store.chats.message(message_id)
        if reply is None or reply.has_ended:
            self._open.pop(execution_id, None)
            self._projecting.pop(execution_id, None)
        if reply is not None:
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
        message_id = reply.message_id
        if (starting := self._starting.get(message_id)) is not None:
            await starting.wait()
            reply = await self._store.chats.message(message_id) or reply
        self._subscribers[message_id] = self._subscribers.get(message_id, 0) + 1
        try:
            async with self._projector.subscribe(reply, after, limits) as subscription:
                yield subscription
        finally:
            self._subscribers[message_id] -= 1
            if not self._subscribers[message_id]:
                del self._subscribers[message_id]
                is_followed = self._executions.is_watched_elsewhere(reply.execution_id or "")
                is_here = reply.execution_id in self._open and not is_followed
                if is_here and not self._executions.driver.is_draining:
                    self._spawn(self._cancel_if_left(reply))

    async def _cancel_if_left(self, reply: MessageRecord) -> None:
        """Cancel a reply without subscribers, where its chat says so."""
        chat = await self._store.chats.get(reply.chat_id)
        if chat is None:
            return
        with suppress(PlanwaveError):
            start = await self.source_of(chat, "")
            if start.on_disconnect == "cancel" and reply.message_id not in self._subscribers:
                await self._store.chats.request_cancel(reply.message_id)
                await self.cancel(reply)
