"""Creating executions: what is durable before anything of them runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from planwave.errors import (
    ShuttingDown,
)
from planwave.events import Event
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph
from planwave.graph.plan import Plan
from planwave.service.executions.commands import ExecutionCommands
from planwave.service.executions.queue_entry import RunSpec
from planwave.service.flows.flow_queries import FlowRef, plan_of_flow
from planwave.service.plans.documents import CheckedPlan, CheckReport, plan_of, record_of
from planwave.storage.records import ExecutionRecord, PlanRecord

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions

_log = logging.getLogger(__name__)
Executable: TypeAlias = str | Plan | CheckedPlan | FlowRef
"""The id of a stored plan, one that was read, or a flow."""
_Amount = TypeVar("_Amount", int, float)


class CreatedExecution(NamedTuple):
    """An execution that was just made."""

    record: ExecutionRecord
    created: Event
    spec: RunSpec


class ResolvedPlan(NamedTuple):
    """What is to be executed.

    Attributes:
        plan: Its graph and what is said of it.
        plan_to_store: The plan, where it is to be stored with the execution.
        flow: Which version of which flow it is.
        report: What this service has found of ``plan.graph`` just now.
    """

    plan: Plan
    plan_to_store: Plan | None = None
    flow: FlowRef | None = None
    report: CheckReport | None = None


class ExecutionService(ExecutionCommands):
    """How an execution comes to be; :class:`Service` says of what."""

    def _within_limits(self, options: RunOptions | None) -> RunOptions:
        from planwave.executor.options import RunOptions

        limits, asked = self._dependencies.limits, options or RunOptions()
        return asked._replace(
            max_parallel=_lower_of(asked.max_parallel, limits.parallel_nodes),
            node_timeout_s=_lower_of(asked.node_timeout_s, limits.node_timeout_s),
            run_timeout_s=_lower_of(asked.run_timeout_s, limits.run_timeout_s),
            max_events=_lower_of(asked.max_events, limits.events),
            max_result_bytes=_lower_of(asked.max_result_bytes, limits.largest_result_bytes),
            max_state_bytes=_lower_of(asked.max_state_bytes, limits.run_state_bytes),
            max_steps=_lower_of(asked.max_steps, limits.steps),
            max_depth=_lower_of(asked.max_depth, limits.nested_depth),
        )

    async def _resolve(self, source: Executable) -> ResolvedPlan:
        """Give what is to be executed; a plan that was only read is to be stored with it."""
        match source:
            case FlowRef():
                flow = await self.flow(*source)
                version = FlowRef(flow.flow_id, flow.version)
                return ResolvedPlan(plan_of_flow(flow, self.limits), flow=version)
            case CheckedPlan(plan, report, checked_by):
                return ResolvedPlan(
                    plan, plan_to_store=plan, report=report if checked_by is self else None
                )
            case Plan():
                return ResolvedPlan(source, plan_to_store=source)
            case _:
                return ResolvedPlan(plan_of(await self.plan(source), self.limits))

    def _diagnostics_of(self, graph: Graph, report: CheckReport | None) -> Sequence[Diagnostic]:
        """Find what stops a graph from running; a report of this very graph says so already."""
        if report is not None and report.graph is graph:
            return report.diagnostics
        return self._check(graph)

    async def _persist(
        self,
        plan: Plan,
        spec: RunSpec,
        execution_id: str | None,
        *,
        queued: bool,
        flow: FlowRef | None = None,
        plan_to_store: Plan | None = None,
    ) -> CreatedExecution:
        """Keep a new execution, and in the same commit the plan ``keeps`` where that is new.

        ``order`` becomes its own: what was kept is noted there.
        """
        from planwave.ids import new_id

        kept = None if plan_to_store is None else record_of(plan_to_store)
        record, created = new_execution(
            plan,
            spec,
            execution_id or new_id(),
            self._dependencies.timestamp(),
            queued=queued,
            flow=flow,
        )
        await self._store_created(record, created, kept)
        spec.epoch, spec.last_seq = record.epoch, created.seq
        return CreatedExecution(record, created, spec)

    async def _submit(self, made: CreatedExecution) -> ExecutionRecord:
        try:
            self._runner.submit(self._live_executions.create(made.created), made.spec)
        except ShuttingDown:
            await self._abandon(made.record.execution_id, "the service went down first")
            raise
        return made.record

    async def _store_created(
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


def _lower_of(asked: _Amount | None, limit: _Amount) -> _Amount:
    return limit if asked is None else min(asked, limit)


def new_execution(
    plan: Plan,
    spec: RunSpec,
    execution_id: str,
    at: str,
    *,
    queued: bool = False,
    flow: FlowRef | None = None,
) -> tuple[ExecutionRecord, Event]:
    """Give the row and the first event of a new execution of a plan, or of a flow's graph.

    Args:
        plan: The plan; of a flow one without an id.
        spec: With what it is to be run.
        execution_id: Its id.
        at: When it is made, UTC, ISO 8601.
        queued: Its start is accepted with it.
        flow: Which version of which flow it is.
    """
    facts = _created_data(plan, spec)
    if flow is not None:
        facts |= {"flow_id": flow.flow_id, "flow_version": flow.version}
    record = ExecutionRecord(
        execution_id,
        plan.plan_id or None,
        plan.title,
        plan.user_prompt,
        "starting",
        at,
        last_seq=1,
        queued=queued,
        flow_id=facts.get("flow_id"),
        flow_version=facts.get("flow_version"),
    )
    return record, Event(execution_id, 1, at, "execution.created", None, None, facts)


def _created_data(plan: Plan, spec: RunSpec) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "goal": plan.user_prompt,
        "title": plan.title,
        "plan_id": plan.plan_id or None,
        "plan_hash": plan.hash,
        "graph": plan.graph.document,
        "options": spec.options.as_json(),
    }
    if spec.inputs:
        facts["inputs"] = spec.inputs
    if spec.trigger is not None:
        facts["trigger"] = spec.trigger
    if spec.parent is not None:
        facts["parent"] = spec.parent
    return facts
