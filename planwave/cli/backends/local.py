"""The backend in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from planwave.cli.backends.backend import PlanUpdate
from planwave.cli.inputs import InputArgument, Source, resolve_inputs
from planwave.errors import Conflict, GraphInvalid, NotFound
from planwave.service.executions.parent_results import preview_json
from planwave.service.flows.flow_queries import FlowRef, plan_of_flow

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.executor.options import RunOptions
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import ForkChanges
    from planwave.service.flows.flow_queries import Flow
    from planwave.service.service import Service
    from planwave.shapes.graphs import ForkPreviewResponse
    from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
    from planwave.shapes.plans import ReplanResponse
    from planwave.storage.records import ExecutionRecord


_Feature = TypeVar("_Feature")


class LocalBackend:
    """The service in this process, which owns the storage directory while it is open.

    Attributes:
        service: The service; whoever opens this backend enters it.
    """

    runs_in_process = True

    def __init__(self, service: Service) -> None:
        self.service = service
        self.plans, self.revisions = service.plans, service.revisions
        self.flows, self.executions = service.flows, service.executions.for_operator()
        self.delete_execution = service.maintenance.delete_execution
        self._source: Plan | FlowRef | None = None
        self._followed = set[str]()

    def choose(
        self, local: Callable[[Service], _Feature], _remote: Callable[[AsyncClient], _Feature], /
    ) -> _Feature:
        """See ``Backend.choose``."""
        return local(self.service)

    def planner_name(self) -> str:
        """See ``Backend.planner_name``."""
        return "/".join(self.service.providers.resolve(None, None))

    async def plan_goal(
        self, goal: str, on_progress: Callable[[PlanUpdate], None], answers: Mapping[str, str]
    ) -> Plan:
        """See ``Backend.plan_goal``."""
        return await self.service.plans.create(goal, on_progress=on_progress, answers=answers)

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """See ``Backend.plan_source``."""
        try:
            plan = await self.service.plans.read(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        self._source = plan
        return self._with_inputs(plan, inputs)

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """See ``Backend.plan_flow``."""
        try:
            checked = await self.service.plans.read(flow.graph)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        plan = replace(
            plan_of_flow(flow), diagnostics=checked.diagnostics, forecast=checked.forecast
        )
        self._source = FlowRef(flow.plan_id, flow.revision)
        return self._with_inputs(plan, inputs)

    def _with_inputs(self, plan: Plan, inputs: Sequence[InputArgument]) -> Plan:
        """Return a plan with the forecast for the inputs of its execution, which are checked first."""
        values = resolve_inputs(inputs, plan.graph, self.service.catalogue)
        if not values:
            return plan
        found = self.service.plans.forecast_graph(plan.graph, plan.user_prompt, values)
        return replace(plan, forecast=found)

    async def resume(self, execution_id: str) -> None:
        """See ``Backend.resume``."""
        await self.service.executions.resume(execution_id)
        self._followed.add(execution_id)

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> str:
        """See ``Backend.answer``."""
        return self._follow(await self.service.executions.answer(execution_id, request_id, answer))

    async def cancel_running(self, cause: str) -> None:
        """Cancel what this command has started and what still runs, as it cannot be followed."""
        for execution_id in self._followed:
            with suppress(Conflict, NotFound):
                if (await self.service.executions.get(execution_id)).status == "executing":
                    await self.service.executions.cancel(execution_id, cause)

    def _follow(self, record: ExecutionRecord) -> str:
        self._followed.add(record.execution_id)
        return record.execution_id

    async def models(self, graph: Mapping[str, Json]) -> Sequence[Mapping[str, Any]]:
        """See ``Backend.models``."""
        found = self.service.plans.forecast_report(self.service.plans.check(graph))
        return (found or {}).get("models") or ()

    async def check(self, document: dict[str, Json]) -> Sequence[Diagnostic]:
        """See ``Backend.check``."""
        return self.service.plans.check(document).diagnostics

    async def start(
        self,
        plan: Plan,
        inputs: Sequence[InputArgument],
        options: RunOptions | None,
        *,
        require_approval: bool = False,
    ) -> str:
        """See ``Backend.start``."""
        values = resolve_inputs(inputs, plan.graph, self.service.catalogue)
        record = await self.service.executions.execute(
            self._source or plan.plan_id,
            inputs=values,
            options=options,
            require_approval=require_approval,
        )
        return self._follow(record)

    async def retry(self, execution_id: str) -> str:
        """See ``Backend.retry``."""
        return self._follow(await self.service.executions.retry(execution_id))

    async def fork(self, execution_id: str, changes: ForkChanges) -> str:
        """See ``Backend.fork``."""
        return self._follow(await self.service.executions.fork(execution_id, **changes))

    async def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Json],
        note: str,
        expected: str | None = None,
    ) -> PlanChangeResponse:
        """See ``Backend.revise``."""
        versions = None if expected is None else [expected]
        return await self.service.changes.revise(execution_id, graph, expected=versions, note=note)

    async def replan(
        self, execution_id: str, request: str | None, expected: str | None = None
    ) -> ReplanAccepted:
        """See ``Backend.replan``."""
        versions = None if expected is None else [expected]
        return await self.service.changes.replan(execution_id, request, expected=versions)

    async def propose(self, execution_id: str, request: str | None) -> ReplanResponse:
        """See ``Backend.propose``."""
        return await self.service.changes.propose(execution_id, request)

    async def preview_fork(self, execution_id: str, changes: ForkChanges) -> ForkPreviewResponse:
        """See ``Backend.preview_fork``."""
        return preview_json(await self.service.executions.preview_fork(execution_id, **changes))
