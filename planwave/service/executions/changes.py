"""Change the graph of an execution while it runs or waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, cast

from planwave.graph.model import Json
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.command_rules import Revise
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.executions.run_spec import run_spec_from_events
from planwave.service.flows.flow_queries import flows_of_caller
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.plan_service import PlanService, require_stored_plan

if TYPE_CHECKING:
    from planwave.shapes.common import GraphDocument
    from planwave.shapes.nodes import PlanChangeResponse


class ExecutionChanges:
    """Changes of the graphs of executions.

    Args:
        dependencies: What executions are run with here.
        executions: They get the commands.
        plans: Read and check the graphs.
    """

    def __init__(
        self, dependencies: ServiceDependencies, executions: ExecutionService, plans: PlanService
    ) -> None:
        self._dependencies, self._executions, self._plans = dependencies, executions, plans

    async def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Json],
        *,
        expected: Collection[str] | None = None,
        note: str = "",
    ) -> PlanChangeResponse:
        """Change the graph of an execution that runs or waits; the change is durable when this returns.

        What has begun stays as it is, with what decided its inputs; all else may be changed, added and dropped.

        Args:
            execution_id: Which.
            graph: The graph that it becomes, or a plan with it; nodes are the same by their ids.
            expected: The hashes of which the graph that is run must have one; None for any.
            note: Why; kept with the change.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``already-ended``, ``not-started``, ``approval-needed``, ``restricted-run``, ``plan-changed``.
            PreconditionFailed: ``plan-changed``: it runs another graph than any of those expected.
            GraphInvalid: The graph cannot run, or what has begun would change: ``frozen-node``, ``frozen-input``,
                ``used-id``; ``nothing-changed``.
            StoreError, ShuttingDown: It stays as it is.
        """
        self._executions.driver.check_open()
        state = await self._executions.live_executions.state(execution_id)
        checked = await self._plans.parse_and_check(graph)
        raise_for_run(checked.report.diagnostics)
        new = checked.plan.graph
        events = await self._dependencies.store.events(execution_id, limit=1)
        before = run_spec_from_events(execution_id, events, self._dependencies.limits)
        await self._executions.require_flows(
            new, await flows_of_caller(self._dependencies.store, before.flows)
        )
        await require_stored_plan(self._dependencies, new, before.written_by, before.judged_plan_id)
        who = current_principal().as_json()
        versions = None if expected is None else sorted(expected)
        command = Revise(cast("GraphDocument", new.document), versions, note, who)
        command.check(state)
        await self._executions.send_command(execution_id, command)
        return (await self._executions.live_executions.state(execution_id)).changes.records[-1]
