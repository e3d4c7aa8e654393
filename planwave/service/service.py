"""The use cases. Knows no terminal and no HTTP; every caller uses the same methods.

::

    async with open_service(settings) as service:
        plan = await service.create_plan("Compare …")
        execution = await service.execute(plan.plan_id)
        async for event in service.watch(execution.execution_id): ...
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from planwave.errors import Conflict
from planwave.events import ENDED_NODE, ENDED_STATUS, Event, fold
from planwave.graph.capabilities import Catalogue
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan
from planwave.providers.api import Providers
from planwave.service.documents import (
    CheckReport,
    birth_of,
    check_source,
    plan_by_hand,
    plan_of,
    raise_for_run,
    record_of,
)
from planwave.service.history import History
from planwave.service.live import Live, watch
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord, Store

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions
    from planwave.executor.program import Program
    from planwave.executor.run import Execution

_log = logging.getLogger(__name__)
_Amount = TypeVar("_Amount", int, float)


class PlanWriter(Protocol):
    """Port: goal → plan. ``planner/`` satisfies it."""

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Plan: ...


@dataclass(frozen=True, slots=True)
class Rooms:
    """What a service is made of.

    Attributes:
        planner: Writes plans.
        node_services: Makes what nodes find as ``context.services``, given the goal.
        renderer: Resolves expressions; None lets the executor do without.
        directory: Where JSON documents go; None writes none.
        close: Stops what the rooms started: render worker, model server, HTTP clients.
        now: UTC time.
    """

    store: Store
    catalogue: Catalogue
    providers: Providers
    planner: PlanWriter
    limits: Limits
    node_services: Callable[[str], Any] = lambda _: None
    renderer: Any = None
    directory: Path | None = None
    close: Callable[[], Awaitable[None]] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Service(History):
    """Plans goals and runs plans. An async context manager; leaving it stops what still runs."""

    def __init__(self, rooms: Rooms) -> None:
        super().__init__(rooms.store, rooms.directory)
        self._rooms = rooms
        self._live: dict[str, Live] = {}
        self._tasks = asyncio.TaskGroup()

    @property
    def catalogue(self) -> Catalogue:
        """The node types there are."""
        return self._rooms.catalogue

    @property
    def providers(self) -> Providers:
        """The LLM providers there are."""
        return self._rooms.providers

    async def __aenter__(self) -> Self:
        try:
            for execution_id in await self._store.lagging_documents():
                await self._keep_document(execution_id)
        except BaseException:
            await self.close()
            raise
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for live in list(self._live.values()):
                if live.execution is not None:
                    live.execution.cancel("planwave is closing")
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close every room, the store last."""
        try:
            if self._rooms.close is not None:
                await self._rooms.close()
        finally:
            await super().close()

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Plan:
        """Plan a goal. The plan is durable when this returns.

        Raises:
            InputError: The goal is empty or too long.
            UnknownProvider, UnavailableProvider, UnknownModel: Nothing was asked of any model.
            PlanInvalid: The model's plan could not be repaired; nothing is stored.
            ProviderError: The model could not be reached.
        """
        plan = await self._rooms.planner.create_plan(
            prompt, provider, model, on_progress=on_progress
        )
        await self._store.save_plan(record_of(plan))
        return plan

    def check_document(self, source: str | bytes) -> CheckReport:
        """Find every fault of a graph or plan written as JSON text; nothing is stored."""
        return check_source(source, self._rooms.catalogue, self._rooms.limits)

    async def plan_from_document(self, source: str | bytes) -> Plan:
        """Take in a graph or a plan written by hand; durable when this returns.

        A plan that is already stored and was not changed keeps its id.

        Raises:
            GraphInvalid: It has errors; all diagnostics are attached.
        """
        from planwave.planner.forecast import forecast
        from planwave.storage.ids import new_id

        report = self.check_document(source)
        plan = plan_by_hand(
            report,
            plan_id=new_id(),
            created_at=self._now(),
            forecast=lambda g: forecast(g, self._rooms.catalogue, self._rooms.providers),
        )
        named = report.envelope.get("plan_id")
        stored = await self._store.plan(named) if isinstance(named, str) else None
        if stored is not None and stored.hash == plan.hash:
            return plan_of(stored)
        await self._store.save_plan(record_of(plan))
        return plan

    async def execute(
        self,
        plan_id: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        trigger: Json = None,
    ) -> ExecutionRecord:
        """Start a stored plan; it is accepted (durable) when this returns, and runs by itself.

        Args:
            plan_id: A stored plan.
            inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` where there is one entry
                node; these nodes are settled with these values.
            options: How to run; the limits of the service apply in any case.
            trigger: What expressions see as ``trigger``.

        Raises:
            NotFound: No such plan.
            UnavailableProvider, UnknownProvider, UnknownModel: Nothing was created.
            GraphInvalid: The graph cannot run here (any more); nothing was created.
            InputError: ``unknown-input-node``, ``invalid-inputs``; nothing was created.
        """
        from planwave.executor.entry import own_inputs
        from planwave.executor.program import Program
        from planwave.storage.ids import new_id

        plan = plan_of(await self.plan(plan_id), self._rooms.limits)
        raise_for_run(self._check(plan.graph))
        chosen = self._within_limits(options)
        program = Program(plan.graph, self._rooms.catalogue)
        given = own_inputs(program, inputs)
        record, created = birth_of(plan, new_id(), self._now(), chosen, given)
        live = Live(record.execution_id)
        live.execution = self._execution(plan, program, live, given, chosen, trigger)
        await self._accept(record, created)
        self._live[record.execution_id] = live
        self._tasks.create_task(self._run(live, live.execution))
        return record

    def watch(self, execution_id: str, *, after: int = 0) -> AsyncIterator[Event]:
        """Give the events of an execution above ``after``: stored ones, then as they happen.

        Streamed text (``node.delta``) comes only while it happens. A slow watcher loses streamed
        text, never a stored event.
        """
        return watch(self._store, execution_id, self._live.get(execution_id), after=after)

    async def wait(self, execution_id: str) -> ExecutionRecord:
        """Wait until an execution of this process has ended and its document is written.

        Raises:
            StoreError: The run broke because its events could not be kept.
        """
        live = self._live.get(execution_id)
        if live is not None:
            await live.finished.wait()
            if live.error is not None:
                raise live.error
        return await self.execution(execution_id)

    async def cancel(self, execution_id: str, cause: str = "cancelled by request") -> None:
        """Stop an execution; it is durably cancelled when this returns.

        Raises:
            NotFound: No such execution.
            Conflict: It has ended already.
        """
        _refuse_ended(await self.execution(execution_id))
        live = self._live.get(execution_id)
        if live is not None and live.execution is not None and not live.finished.is_set():
            live.execution.cancel(cause)
            await self.wait(execution_id)
            return
        epoch = await self._store.claim(execution_id)
        _refuse_ended(
            await self.execution(execution_id)
        )  # someone else may have ended it before the claim
        await self._store.append(execution_id, epoch, await self._cancelled(execution_id, cause))
        await self._keep_document(execution_id)

    async def _cancelled(self, execution_id: str, cause: str) -> list[Event]:
        """Give the events that end an execution nobody runs, and each node of it that is open."""
        state = fold(await self._store.events(execution_id))
        at, seq = self._now(), count(state.last_seq + 1)
        ended = [
            Event(execution_id, next(seq), at, "node.cancelled", node.path, None, {"cause": cause})
            for node in state.nodes.values()
            if node.status not in ENDED_NODE
        ]
        last = Event(
            execution_id, next(seq), at, "execution.cancelled", None, None, {"cause": cause}
        )
        return [*ended, last]

    def _check(self, graph: Graph) -> list[Diagnostic]:
        from planwave.graph.check import check

        return check(graph, self._rooms.catalogue, self._rooms.limits)

    def _within_limits(self, options: RunOptions | None) -> RunOptions:
        from planwave.executor.options import RunOptions

        limits, asked = self._rooms.limits, options or RunOptions()
        return asked._replace(
            max_parallel=_lower(asked.max_parallel, limits.parallel_nodes),
            node_timeout_s=_lower(asked.node_timeout_s, limits.node_timeout_s),
            run_timeout_s=_lower(asked.run_timeout_s, limits.run_timeout_s),
            max_events=_lower(asked.max_events, limits.events),
        )

    def _execution(
        self,
        plan: Plan,
        program: Program,
        live: Live,
        inputs: Mapping[str, Mapping[str, Json]],
        options: RunOptions,
        trigger: Json,
    ) -> Execution:
        from planwave.executor.run import Execution

        def published(events: list[Event]) -> None:
            live.publish(events)
            if any(event.type == "execution.paused" for event in events):
                self._tasks.create_task(self._keep_document(live.execution_id))

        return Execution(
            program,
            execution_id=live.execution_id,
            inputs=inputs,
            options=options,
            journal=self._store,
            last_seq=1,
            variables={"goal": plan.user_prompt, "trigger": trigger},
            services=self._rooms.node_services(plan.user_prompt),
            renderer=self._rooms.renderer,
            on_events=published,
        )

    async def _accept(self, record: ExecutionRecord, created: Event) -> None:
        try:
            await self._store.create_execution(record, [created])
        except asyncio.CancelledError:
            self._tasks.create_task(self._abandon(record.execution_id))
            raise

    async def _abandon(self, execution_id: str) -> None:
        """End an execution that was kept, or is about to be, when its caller had left already."""
        try:
            await self._store.claim(execution_id)  # queued behind its creation
            await self.cancel(execution_id, "the caller left before it started")
        except Exception as error:  # noqa: BLE001 - a task boundary: nobody is left to be told
            _log.warning("execution %s was abandoned: %s", execution_id, error)

    async def _run(self, live: Live, execution: Execution) -> None:
        try:
            await execution.run()
        except Exception as error:  # noqa: BLE001 - a task boundary: one broken run must not stop the others
            _log.warning("execution %s broke: %s", live.execution_id, error)
            live.error = error
        await self._keep_document(live.execution_id)
        if live.error is None:
            del self._live[live.execution_id]
        live.finish()

    async def _keep_document(self, execution_id: str) -> None:
        """Write the document of a paused or ended execution; the next start repeats what fails."""
        live = self._live.get(execution_id)
        try:
            # One at a time: the document of a pause must not land after that of the end.
            async with nullcontext() if live is None else live.document_lock:
                await self._write_document(execution_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: the run goes on without it
            _log.warning("document of %s not written: %s", execution_id, error)

    async def _write_document(self, execution_id: str) -> None:
        from planwave.storage.document import project, write_document

        if self.directory is None:
            return
        record = await self.execution(execution_id)
        events = await self._store.events(execution_id)
        document = await asyncio.to_thread(project, events, record)
        await write_document(self.directory, execution_id, document)
        await self._store.set_document_seq(execution_id, events[-1].seq)

    def _now(self) -> str:
        return self._rooms.now().astimezone(UTC).isoformat(timespec="microseconds")


def _refuse_ended(record: ExecutionRecord) -> None:
    if record.status in ENDED_STATUS:
        raise Conflict(f"execution {record.execution_id} is already {record.status}")


def _lower(asked: _Amount | None, limit: _Amount) -> _Amount:
    return limit if asked is None else min(asked, limit)
