"""Answers to the request for approval of a plan that change the plan.

An execution is bound to the hash of its graph. So an edited plan gets a new execution, which asks
again, and the execution that asked before ends as superseded. The new execution names the request that
it answers: if the process ends before the answer is stored, the recovery of the new execution stores it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from planwave.errors import GraphInvalid, InvalidAnswer, NotFound, PlanwaveError, PreconditionFailed
from planwave.events import ExecutionState
from planwave.events.types import SupersededDocument
from planwave.executor.inputs import validate_inputs
from planwave.executor.program import Program
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Json
from planwave.graph.operations import ReplaceGraph
from planwave.graph.plan import graph_hash
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.run_spec import (
    ReplacedExecution,
    RunSpec,
    run_spec_from_events,
)
from planwave.service.plans.documents import CheckedPlan, raise_for_run
from planwave.service.plans.plan_service import PlanService
from planwave.service.plans.policies import Policies, apply_policies
from planwave.storage.records import ExecutionRecord, PlanRecord

if TYPE_CHECKING:
    from planwave.service.executions.execution_service import ExecutionService

_VALUE: Final = "/value"
_HASH: Final = "plan_hash"
_UNCHANGED: Final = ("the plan is unchanged", "approve it, or change it first")


class PlanEdits:
    """Replaces executions whose plan is edited in the answer to the request for its approval."""

    def __init__(
        self, dependencies: ServiceDependencies, plans: PlanService, executions: ExecutionService
    ) -> None:
        self._dependencies = dependencies
        self._plans = plans
        self._executions = executions

    async def edit(self, state: ExecutionState, request_id: str, answer: Json) -> ExecutionRecord:
        """Answer a request for approval with an edited plan; return the execution of that plan.

        Args:
            state: The execution that asked.
            request_id: Its request.
            answer: The valid answer.

        Raises:
            GraphInvalid, InputError: The edited plan cannot run; nothing is stored and the request
                stays open.
        """
        dependencies = self._dependencies
        created = await dependencies.store.events(state.execution_id, limit=1)
        before = run_spec_from_events(state.execution_id, created, dependencies.limits)
        edited = await self._edited_plan(state, before, answer["value"], answer["note"])
        is_checked = isinstance(edited, CheckedPlan)
        graph = (edited.plan if is_checked else self._plans.readable_plan(edited)).graph
        supersedes: SupersededDocument = {
            "execution_id": state.execution_id,
            "request_id": request_id,
            "note": answer["note"],
        }
        if dropped := [each for each in before.policies or () if each not in graph.by_id]:
            supersedes["dropped_policies"] = dropped
        following = await self._executions.create(
            edited,
            inputs=before.inputs or None,
            options=before.options,
            policies=_policies_for(graph, before),
            trigger=before.trigger,
            require_approval=True,
            replaces=ReplacedExecution(before, supersedes),
            queued=True,
        )
        try:
            await self._executions.supersede(following.execution_id)
        except PlanwaveError:  # it was cancelled meanwhile, or the answer cannot be stored
            await self._executions.cancel_unneeded(following.execution_id, state.execution_id)
            raise
        return await self._executions.resume(following.execution_id)

    async def _edited_plan(
        self, state: ExecutionState, before: RunSpec, value: Json, note: str
    ) -> CheckedPlan | PlanRecord:
        """Return the edited plan: a revision of a stored one, or one to store.

        A graph becomes a revision of the plan to approve, unless that was changed meanwhile or is a flow,
        which others call: then it becomes a plan of its own. Nothing
        is stored if it cannot run with the inputs and policies of the execution that asked.
        """
        asked_hash = (state.approval or {}).get("plan_hash")
        if not isinstance(value, dict):
            raise _invalid("an edited plan is a graph", "give an object with nodes and edges")
        fields = cast("dict[str, Json]", value)
        if fields.keys() == {_HASH}:
            return await self._stored_plan(state, fields[_HASH])
        try:
            checked = await self._plans.parse_and_check(fields)
        except GraphInvalid as error:
            error.diagnostics = tuple(
                replace(finding, pointer=_VALUE + finding.pointer) for finding in error.diagnostics
            )
            raise
        policies = _policies_for(checked.plan.graph, before)
        graph = apply_policies(checked.plan.graph, policies, self._dependencies.limits)
        if graph_hash(graph) == asked_hash:
            raise _invalid(*_UNCHANGED)
        if graph is not checked.plan.graph:
            raise_for_run(self._plans.check_graph(graph))
        validate_inputs(Program(checked.plan.graph, self._dependencies.catalogue), before.inputs)
        # An edit of one execution of a flow is not for all who call the flow.
        if state.flow is None and state.plan_id is not None and state.plan_hash is not None:
            change = ReplaceGraph(checked.plan.graph.document)
            with suppress(PreconditionFailed, NotFound):
                return await self._plans.edit(
                    state.plan_id, [change], expected={state.plan_hash}, author="person", note=note
                )
        goal = before.goal_template or state.goal
        plan = replace(checked.plan, user_prompt=goal, title=state.title)
        return checked._replace(plan=plan)

    async def _stored_plan(self, state: ExecutionState, new_hash: Json) -> PlanRecord:
        """Return the plan, if its current revision has this hash."""
        if new_hash in (state.plan_hash, (state.approval or {}).get(_HASH)):
            raise _invalid(*_UNCHANGED)
        plan_id = state.plan_id if state.flow is None else None
        record = None if plan_id is None else await self._dependencies.store.plan(plan_id)
        if record is None or record.hash != new_hash:
            hint = "name the hash of the plan's current revision, or give the graph"
            raise _invalid("the plan has no such revision now", hint)
        return record


def _policies_for(graph: Graph, before: RunSpec) -> Policies:
    """Return the policies of the request for the nodes that the edited graph still has."""
    policies = before.policies or {}
    return {node_id: policy for node_id, policy in policies.items() if node_id in graph.by_id}


def _invalid(message: str, hint: str) -> InvalidAnswer:
    return InvalidAnswer([Diagnostic("invalid-answer", "error", message, _VALUE, hint=hint)])
