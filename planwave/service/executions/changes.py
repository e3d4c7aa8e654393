"""Change the graph of an execution while it runs or waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planwave.errors import GraphInvalid
from planwave.events import ENDED_STATUS
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.plan_payloads import revision_of
from planwave.events.request_text import is_change_request
from planwave.graph.diagnostics import errors_in, sorted_by_location
from planwave.graph.editing.revision import changed_graph, graph_change
from planwave.graph.model import Json
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.planner.plan_access import additions_of
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.command_rules import (
    NOTE_CHARS,
    Replan,
    Revise,
    change_findings,
    require_changeable,
    require_failed,
    require_version,
    version_of,
)
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.executions.run_spec import require_inputs_for, run_spec_from_events
from planwave.service.executions.written_changes import failure_words
from planwave.service.flows.flow_queries import flows_of_caller
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.plan_service import PlanService, require_stored_plan
from planwave.service.plans.proposals import (
    forecast_of_rest,
    plan_of_run,
    replan_document,
    require_words,
)
from planwave.service.plans.revision_service import RevisionService

if TYPE_CHECKING:
    from planwave.events import ExecutionState
    from planwave.events.node_state import OpenRequest
    from planwave.graph.model import Graph
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
    from planwave.shapes.plans import AdditionDocument, ReplanResponse


def change_that_waits(request: OpenRequest) -> PlanChangeResponse | None:
    """Return the change that a request asks a person about; None for other requests."""
    if not is_change_request(request.request):
        return None
    data = revision_of(request.request)
    return {
        "change": data["change"],
        "at": request.since,
        "base": data["base"],
        "hash": data["hash"],
        "note": data.get("note", ""),
        "by": data.get("by"),
        "revised_by": data.get("revised_by"),
        "graph_change": data["graph_change"],
        "dropped": [],
        "request_id": request.request_id,
    }


def _made_or_asked(state: ExecutionState, plan_hash: str) -> PlanChangeResponse:
    """Return the change to the graph with a hash: the one that waits for an approval, else the newest that was made."""
    asked = (change_that_waits(each) for each in state.requests.values())
    found = next((each for each in asked if each and each["hash"] == plan_hash), None)
    records = reversed(state.changes.records)
    return found or next(each for each in records if each["hash"] == plan_hash)


class ExecutionChanges:
    """Changes of the graphs of executions.

    Args:
        dependencies: What executions are run with here.
        executions: They get the commands.
        plans: Read and check the graphs.
        revisions: Have models write changes.
    """

    def __init__(
        self,
        dependencies: ServiceDependencies,
        executions: ExecutionService,
        plans: PlanService,
        revisions: RevisionService,
    ) -> None:
        self._dependencies, self._executions = dependencies, executions
        self._plans, self._revisions = plans, revisions

    async def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Json],
        *,
        expected: Collection[str] | None = None,
        note: str = "",
    ) -> PlanChangeResponse:
        """Change the graph of an execution that runs or waits; the change is durable when this returns.

        What has begun stays as it is, with what decided its inputs; all else may be changed, added and dropped. Where the
        plan needs an approval, a person is asked about the change first: ``request_id`` of what is returned.

        Args:
            execution_id: Which.
            graph: The graph that it becomes, or a plan with it; nodes are the same by their ids.
            expected: The hashes of which the graph that is run must have one; None for any.
            note: Why; kept with the change.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``already-ended``, ``not-started``, ``approval-open``, ``restricted-run``, ``plan-changed``;
                ``revision-limit``: it was changed as often as the limit ``plan_revisions`` says.
            PreconditionFailed: ``plan-changed``: it runs another graph than any of those expected.
            GraphInvalid: The graph cannot run, or what has begun would change: ``frozen-node``, ``frozen-input``,
                ``used-id``; ``nothing-changed``. With all findings of both kinds.
            InputError: ``invalid-inputs``: the graph needs an input that the execution was not given.
            StoreError, ShuttingDown: It stays as it is.
        """
        self._executions.driver.check_open()
        state = await self._executions.live_executions.state(execution_id)
        new = self._read(state, graph)
        events = await self._dependencies.store.events(execution_id, limit=1)
        before = run_spec_from_events(execution_id, events, self._dependencies.limits)
        await self._executions.require_flows(
            new, await flows_of_caller(self._dependencies.store, before.flows)
        )
        await require_stored_plan(self._dependencies, new, before.written_by, before.judged_plan_id)
        require_inputs_for(before, new, self._dependencies.catalogue)
        before_graph = state.graph or NO_GRAPH
        document = changed_graph(before_graph, graph_change(before_graph, new.document))
        versions = None if expected is None else sorted(expected)
        by, shown = current_principal().as_json(), self._shown(state, new)
        most = self._dependencies.limits.plan_revisions
        command = Revise(document, versions, note[:NOTE_CHARS], by, *shown, most)
        command.check(state)
        await self._executions.send_command(execution_id, command)
        after = await self._executions.live_executions.state(execution_id)
        return _made_or_asked(after, graph_hash(read_graph(document)[0]))

    def _read(self, state: ExecutionState, document: Mapping[str, Json]) -> Graph:
        """Return the graph that an execution is to become.

        Raises:
            GraphInvalid: It cannot run; with why it cannot be that of the execution, too.
            UnknownProvider, UnavailableProvider, UnknownModel: Only that stands in the way.
        """
        report = self._plans.check(document)
        graph, findings = report.graph, report.diagnostics
        if graph is None:
            raise GraphInvalid(findings)
        if errors_in(findings):
            also = change_findings(state, graph, self._dependencies.catalogue)
            raise_for_run(sorted_by_location([*findings, *also]))
        return graph

    def _shown(
        self, state: ExecutionState, graph: Graph
    ) -> tuple[Sequence[AdditionDocument], ForecastResponse | None]:
        """Return what is shown to who approves a graph: what it reaches, and its forecast; nothing where nobody does."""
        if state.approval is None:
            return (), None
        present, _ = read_graph(state.graph or NO_GRAPH)
        parts = self._dependencies.catalogue, self._dependencies.providers
        return additions_of(present, graph, *parts), forecast_of_rest(state, graph, *parts)

    async def replan(
        self,
        execution_id: str,
        request: str | None = None,
        *,
        expected: Collection[str] | None = None,
        provider: str | None = None,
        model: str | None = None,
    ) -> ReplanAccepted:
        """Have a model write a change of the graph of an execution, which holds its starts until that is made or refused.

        It is the same as a change that the execution asks for itself after a failure: the calls are paid from its budget
        and recorded, and a change that reaches something new asks a person first.

        Args:
            execution_id: Which.
            request: What is to be different, in the words of a person; None for what replaces the steps that failed.
            expected: See ``revise``; None for the graph that is run now.
            provider: Who writes it; None for the default.
            model: See ``provider``.

        Returns:
            The number that the change will have; it is durable by then that it is being written.

        Raises:
            NotFound: There is none of that id.
            Conflict: As ``revise``; ``paused``; ``change-requested``: a change is being written already.
            PreconditionFailed: ``plan-changed``: it runs another graph than any of those expected.
            InputError: ``nothing-failed``: there are no words, and no step has failed; ``model-cannot-plan``.
            UnknownProvider, UnavailableProvider, UnknownModel: Of who is to write it.
            StoreError, ShuttingDown: It stays as it is.
        """
        self._executions.driver.check_open()
        limits = self._dependencies.limits
        if request is not None:
            require_words(request, limits.goal_chars)
        versions = None if expected is None else sorted(expected)
        by, most = current_principal().as_json(), limits.plan_revisions
        state = await self._executions.live_executions.state(execution_id)
        if versions is None:  # so that the number is the one of this change
            versions = [version_of(state)]
        command = Replan(request, versions, by, provider, model, most)
        command.check(state)
        self._dependencies.planner.require_reviser(provider, model)
        change = len(state.changes) + 1
        await self._executions.send_command(execution_id, command)
        return {"execution_id": execution_id, "change": change}

    async def propose(
        self,
        execution_id: str,
        request: str | None = None,
        *,
        expected: Collection[str] | None = None,
        provider: str | None = None,
        model: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ReplanResponse:
        """Have a model propose a change of the graph of an execution; it goes on as it is until a person takes that.

        ``revise`` with the graph of the proposal makes it; where the execution has ended, a fork with that graph, for
        which nothing is fixed: the steps that stay as they are lend their results.

        Args:
            execution_id: Which.
            request: See ``replan``.
            expected: See ``replan``.
            provider: See ``replan``.
            model: See ``replan``.
            on_progress: Called with each progress event; must not block.

        Raises:
            NotFound: There is none of that id.
            Conflict: The graph of the execution cannot be changed now; see ``revise``.
            PreconditionFailed: See ``replan``.
            InputError: ``nothing-failed``; ``nothing-changed``: the words ask for nothing that can be done; and those of
                ``Planner.revise``, as all its other errors.
        """
        dependencies, chosen = self._dependencies, (provider, model)
        if request is not None:
            require_words(request, dependencies.limits.goal_chars)
        state = await self._executions.live_executions.state(execution_id)
        if request is None:
            require_failed(state)
            request = failure_words(state)
        require_version(state, expected)
        if state.status not in ENDED_STATUS:  # else a fork takes it
            require_changeable(state, dependencies.limits.plan_revisions)
        plan = plan_of_run(state)
        revision = await self._revisions.write_revision(
            state.plan_id or new_id(), plan, request, chosen, on_progress
        )
        parts = dependencies.catalogue, dependencies.providers
        return await asyncio.to_thread(
            replan_document, state, plan, request, revision, *parts, dependencies.timestamp()
        )
