"""Making executions: what is durable before anything of them runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from planwave.errors import Draining
from planwave.events import Event
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph
from planwave.graph.plan import Plan
from planwave.service.control import Control
from planwave.service.documents import (
    CheckedPlan,
    CheckReport,
    birth_of,
    plan_of,
    plan_of_flow,
    record_of,
)
from planwave.service.flow_history import FlowChoice
from planwave.service.orders import Order
from planwave.storage.records import ExecutionRecord, PlanRecord

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions

_log = logging.getLogger(__name__)
Executable: TypeAlias = str | Plan | CheckedPlan | FlowChoice
"""The id of a stored plan, one that was read, or a flow."""
_Amount = TypeVar("_Amount", int, float)


class Made(NamedTuple):
    """An execution that was just made."""

    record: ExecutionRecord
    created: Event
    order: Order


class Chosen(NamedTuple):
    """What is to be executed.

    Attributes:
        plan: Its graph and what is said of it.
        keeps: The plan, where it is to be stored with the execution.
        flow: Which version of which flow it is.
        report: What this service has found of ``plan.graph`` just now.
    """

    plan: Plan
    keeps: Plan | None = None
    flow: FlowChoice | None = None
    report: CheckReport | None = None


class Making(Control):
    """How an execution comes to be; :class:`Service` says of what."""

    def _within_limits(self, options: RunOptions | None) -> RunOptions:
        from planwave.executor.options import RunOptions

        limits, asked = self._rooms.limits, options or RunOptions()
        return asked._replace(
            max_parallel=_lower(asked.max_parallel, limits.parallel_nodes),
            node_timeout_s=_lower(asked.node_timeout_s, limits.node_timeout_s),
            run_timeout_s=_lower(asked.run_timeout_s, limits.run_timeout_s),
            max_events=_lower(asked.max_events, limits.events),
            max_result_bytes=_lower(asked.max_result_bytes, limits.largest_result_bytes),
            max_state_bytes=_lower(asked.max_state_bytes, limits.run_state_bytes),
            max_steps=_lower(asked.max_steps, limits.steps),
            max_depth=_lower(asked.max_depth, limits.nested_depth),
        )

    async def _chosen(self, what: Executable) -> Chosen:
        """Give what is to be executed; a plan that was only read is to be stored with it."""
        match what:
            case FlowChoice():
                flow = await self.flow(*what)
                version = FlowChoice(flow.flow_id, flow.version)
                return Chosen(plan_of_flow(flow, self.limits), flow=version)
            case CheckedPlan(plan, report, checked_by):
                return Chosen(plan, keeps=plan, report=report if checked_by is self else None)
            case Plan():
                return Chosen(what, keeps=what)
            case _:
                return Chosen(plan_of(await self.plan(what), self.limits))

    def _faults_of(self, graph: Graph, report: CheckReport | None) -> Sequence[Diagnostic]:
        """Find what stops a graph from running; a report of this very graph says so already."""
        if report is not None and report.graph is graph:
            return report.diagnostics
        return self._check(graph)

    async def _born(
        self,
        plan: Plan,
        order: Order,
        execution_id: str | None,
        *,
        queued: bool,
        flow: FlowChoice | None = None,
        keeps: Plan | None = None,
    ) -> Made:
        """Keep a new execution, and in the same commit the plan ``keeps`` where that is new.

        ``order`` becomes its own: what was kept is noted there.
        """
        from planwave.storage.ids import new_id

        kept = None if keeps is None else record_of(keeps)
        record, created = birth_of(
            plan,
            order,
            execution_id or new_id(),
            self._rooms.time(),
            queued=queued,
            flow=flow,
        )
        await self._accept(record, created, kept)
        order.epoch, order.last_seq = record.epoch, created.seq
        return Made(record, created, order)

    async def _submit(self, made: Made) -> ExecutionRecord:
        try:
            self._carrier.submit(self._lives.begin(made.created), made.order)
        except Draining:
            await self._abandon(made.record.execution_id, "the service went down first")
            raise
        return made.record

    async def _accept(
        self, record: ExecutionRecord, created: Event, plan: PlanRecord | None
    ) -> None:
        try:
            await self._store.create_execution(record, [created], plan)
        except asyncio.CancelledError:
            why = "the caller left before it started"
            self._tasks.create_task(self._abandon(record.execution_id, why))
            raise

    async def _abandon(self, execution_id: str, cause: str) -> None:
        """End an execution that was kept, or is about to be, and will never be started."""
        try:
            await self._store.claim(execution_id)  # queued behind its creation
            await self.cancel(execution_id, cause)
        except Exception as error:  # noqa: BLE001 - a task boundary: nobody is left to be told
            _log.warning("execution %s was abandoned: %s", execution_id, error)


def _lower(asked: _Amount | None, limit: _Amount) -> _Amount:
    return limit if asked is None else min(asked, limit)
