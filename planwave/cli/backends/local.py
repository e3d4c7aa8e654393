"""The backend in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planwave.cli.backends.backend import PlanUpdate
from planwave.cli.inputs import InputArgument, resolve_inputs
from planwave.errors import GraphInvalid

if TYPE_CHECKING:
    from planwave.cli.inputs import Source
    from planwave.executor.options import RunOptions
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import NodeChanges
    from planwave.service.flows.flow_queries import Flow, FlowRef
    from planwave.service.service import Service


class LocalBackend:
    """This process does the work; it owns the storage directory meanwhile."""

    runs_in_process = True

    def __init__(self, service: Service) -> None:
        self.service = self._service = service
        self._source: Plan | FlowRef | None = None
        self.watch = service.watch
        self.wait = service.wait
        self.cancel = service.cancel
        self.pause, self.resume = service.pause, service.resume
        self.requests, self.answer = service.requests, service.answer
        self.document = service.document
        self.document_path = service.document_path

    def planner_name(self) -> str:
        """See :meth:`Workplace.planner_name`."""
        return "/".join(self._service.providers.resolve(None, None))

    async def plan_goal(self, goal: str, on_progress: Callable[[PlanUpdate], None]) -> Plan:
        """See :meth:`Workplace.plan_goal`."""
        return await self._service.create_plan(goal, on_progress=on_progress)

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """See :meth:`Workplace.plan_source`."""
        try:
            plan = await self._service.read_plan(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        resolve_inputs(inputs, plan.graph, self._service.catalogue)
        self._source = plan
        return plan

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """See :meth:`Workplace.plan_flow`."""
        from planwave.service.flows.flow_queries import FlowRef, plan_of_flow

        try:
            read = await self._service.read_plan(flow.graph)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        plan = replace(plan_of_flow(flow), diagnostics=read.diagnostics, forecast=read.forecast)
        resolve_inputs(inputs, plan.graph, self._service.catalogue)
        self._source = FlowRef(flow.flow_id, flow.version)
        return plan

    async def start(
        self, plan: Plan, inputs: Sequence[InputArgument], options: RunOptions | None
    ) -> str:
        """See :meth:`Workplace.start_command`."""
        given = resolve_inputs(inputs, plan.graph, self._service.catalogue)
        what = self._source or plan.plan_id
        record = await self._service.execute(what, inputs=given, options=options)
        return record.execution_id

    async def retry(self, execution_id: str) -> str:
        """See :meth:`Workplace.retry`."""
        return (await self._service.retry(execution_id)).execution_id

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: NodeChanges) -> str:
        """See :meth:`Workplace.fork`."""
        made = await self._service.fork(execution_id, rerun=rerun, changes=changes or None)
        return made.execution_id
