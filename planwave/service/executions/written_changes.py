"""The changes of its own graph that a running execution asks for, as a model writes them.

The model reads what steps gave, and why they failed, which may come from anywhere. So a person decides about a
change that reaches something new before anything of it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from planwave.errors import InputError, LimitExceeded, PlanInvalid, ProviderError
from planwave.events import Event, ExecutionState, fold
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.executor.ports import ChangeCalls, WrittenChange
from planwave.graph.editing.revision import changed_graph, graph_change
from planwave.graph.model import Graph
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_graph
from planwave.nodes.llm_calls import CallBudget
from planwave.planner.plan_access import additions_of
from planwave.planner.progress import PlanProgress, ProgressListener
from planwave.planner.revised_plan import RevisedPlan, Revision
from planwave.providers.protocols import CallScope, Providers
from planwave.service.executions.command_rules import (
    NOTE_CHARS,
    failed_steps,
    require_changeable,
)
from planwave.service.executions.plan_approval import change_request
from planwave.service.plans.proposals import forecast_of_rest, plan_of_run
from planwave.settings import Limits

if TYPE_CHECKING:
    from planwave.events.types import UsageData

_SHOWN_CHARS: Final = 400
"""The characters of why a step failed that the model is shown."""
_SHOWN_FAILURES: Final = 8
_SHOWN_PARTS: Final = frozenset({"node", "edge", "operation", "repair"})
"""The parts of a change that are shown while it is written."""


class Reviser(Protocol):
    """Port: has a model write the change of a plan. ``planner/`` satisfies it."""

    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: ProgressListener | None = None,
        scope: CallScope | None = None,
    ) -> Revision: ...


class WritingDependencies(Protocol):
    """What changes are written with."""

    @property
    def planner(self) -> object: ...
    @property
    def providers(self) -> Providers: ...
    @property
    def catalogue(self) -> NodeTypes: ...
    @property
    def limits(self) -> Limits | None: ...


async def write_change(
    dependencies: WritingDependencies,
    asked: PlanRequestedData,
    number: int,
    events: Sequence[Event],
    calls: ChangeCalls,
) -> WrittenChange:
    """Have a model write a change; see ``ChangeWriter``.

    A repeated request is served the recorded replies of the model, so that they are paid for once. Each call
    reserves what it may use of the budget, as those of nodes do.

    Raises:
        Conflict: The graph of the execution cannot be changed now; see ``require_changeable``.
        InputError: ``no-planner``; ``model-cannot-plan``; ``nothing-changed``.
        LimitExceeded: ``plan_nodes``.
    """
    if dependencies.planner is None:
        raise InputError("no model writes changes of plans here", code="no-planner")
    planner, state = cast("Reviser", dependencies.planner), fold(events)
    limits = dependencies.limits
    require_changeable(state, None if limits is None else limits.plan_revisions)
    plan, scope = plan_of_run(state), CallScope(state.execution_id, "", number)
    writer = asked.get("writer") or {"provider": None, "model": None}
    chosen = dependencies.providers.resolve(writer["provider"], writer["model"])
    with _Paying(dependencies.providers, chosen, scope, calls) as paying:
        revision = await planner.revise(
            plan, words_of(asked, state), *paying.model, on_progress=paying.on_progress, scope=scope
        )
        paying.count(revision.attempts)
    graph = _accepted(dependencies, asked, state, plan, revision)
    data: PlanRevisedData = {
        "change": len(state.changes) + 1,
        "base": graph_hash(plan.graph),
        "hash": graph_hash(graph),
        "graph_change": graph_change(state.graph or NO_GRAPH, graph.document),
        "floor": 1,
        "note": revision.reading.answer[:NOTE_CHARS],
        "by": asked["by"],
    }
    if "requested_by" in asked:
        data["revised_by"] = asked["requested_by"]
    parts = dependencies.catalogue, dependencies.providers
    new = additions_of(plan.graph, graph, *parts)
    if not new and state.approval is None:
        return WrittenChange(graph, data)
    rest = forecast_of_rest(state, graph, *parts)
    request = change_request(asked, data, (plan.graph, graph), new, rest)
    return WrittenChange(graph, data, request=request)


class _Paying:
    """The payment for the calls of a model that writes a change.

    Args:
        providers: They know the prices.
        model: See the attribute.
        scope: That of the calls.
        calls: What the execution counts.

    Attributes:
        model: The provider and the model that are called.
    """

    def __init__(
        self, providers: Providers, model: tuple[str, str], scope: CallScope, calls: ChangeCalls
    ) -> None:
        self.model = model
        self._calls, self._counted = calls, 0
        self._budget = CallBudget(calls.budget, providers, scope)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, PlanInvalid | ProviderError):
            self.count(error.attempts)
        self._budget.release()

    def on_progress(self, progress: PlanProgress) -> None:
        """Show a part of the change, and count a call whose reply is sent back."""
        if progress.usage is not None:
            self._ended(progress.usage)
        if progress.kind in _SHOWN_PARTS:
            parts = {name: each for name, each in progress.data.items() if name != "diagnostics"}
            self._calls.wrote({"kind": progress.kind, **parts})

    def count(self, attempts: Sequence[Mapping[str, Any]]) -> None:
        """Count the calls that are not counted yet, of all that were made."""
        for each in attempts[self._counted :]:
            self._ended(each["usage"])

    def _ended(self, usage: Mapping[str, Any]) -> None:
        provider, model = self.model
        self._counted += 1
        self._calls.ended(cast("UsageData", {"provider": provider, "model": model, **usage}))
        self._budget.release()


def words_of(asked: PlanRequestedData, state: ExecutionState) -> str:
    """Return what a model is asked for: the words of a person or a node; without any, what failed."""
    if asked["by"] == "node":
        return f"Step {asked.get('path')} of this plan has found out what calls for another plan: {asked.get('request')}"
    return asked.get("request") or failure_words(state)


def failure_words(state: ExecutionState) -> str:
    """Return what a model is asked for where steps of an execution failed."""
    failed = ((node.path, node.error or {}) for node in failed_steps(state)[:_SHOWN_FAILURES])
    told = [
        f"- {path}: {error.get('code')}: {(error.get('message') or '')[:_SHOWN_CHARS]}"
        for path, error in failed
    ]
    return "\n".join(
        [
            "Steps of this plan failed while it ran, and what depends on them cannot run. Change the plan so that "
            "its goal is still reached in another way: remove a failed step and add one with a new id in its place, "
            "or go on without it. Where no change of the plan can help, change nothing, and say so. What failed:",
            *told,
        ]
    )


def _accepted(
    dependencies: WritingDependencies,
    asked: PlanRequestedData,
    state: ExecutionState,
    plan: RevisedPlan,
    revision: Revision,
) -> Graph:
    """Return the graph that a change makes.

    Raises:
        InputError: ``nothing-changed``: it would be the same; or one that was run before, and no person wants that.
        LimitExceeded: ``plan_nodes``, with the nodes that were dropped.
    """
    reading = revision.reading
    said = reading.answer or "the model wrote no change"
    if reading.graph is None:
        raise InputError(said, code="nothing-changed")
    graph = _in_order(state, reading.graph)
    earlier = () if asked["by"] == "person" else _earlier(state)  # else it may change to and fro
    if graph_hash(graph) in {state.plan_hash, graph_hash(plan.graph), *earlier}:
        message = f"the plan was the same before: {said}"
        raise InputError(message, code="nothing-changed")
    limits, count = dependencies.limits, len(graph.nodes) + len(state.changes.dropped)
    if limits is not None and count > limits.plan_nodes:
        what = "the steps of all changes together"
        raise LimitExceeded("plan_nodes", limits.plan_nodes, count, what=what)
    return graph


def _in_order(state: ExecutionState, graph: Graph) -> Graph:
    """Return a graph in which what is there already keeps its place."""
    before = state.graph or NO_GRAPH
    document = changed_graph(before, graph_change(before, graph.document))
    return read_graph(cast("Mapping[str, Any]", document))[0]


def _earlier(state: ExecutionState) -> list[str]:
    return [each[name] for each in state.changes.records for name in ("base", "hash")]
