"""Proposals: changes of a plan that a model wrote and that a person has not taken yet.

A plan has one at most, the newest; it is part of the plan's document, and any new revision, title or goal takes it away,
because it was made for what was there before. It is taken by the hash of the graph that it makes, so that a person takes what was shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.errors import Conflict, InputError, LimitExceeded
from planwave.events import ENDED_STATUS, ExecutionState
from planwave.events.plan_changes import NO_GRAPH
from planwave.graph.editing.difference import graph_difference
from planwave.graph.editing.editor import PlanContent
from planwave.graph.model import FLOW
from planwave.graph.operations import Operation, operation_from_json, operation_json
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_graph
from planwave.graph.result import result_text
from planwave.planner.cost_estimate import forecast
from planwave.planner.plan_access import additions_of
from planwave.planner.revised_plan import RevisedPlan, Revision
from planwave.principals import current_principal
from planwave.providers.protocols import Providers

if TYPE_CHECKING:
    from planwave.graph.model import Graph
    from planwave.shapes.common import GraphDocument
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.plans import ProposalDocument, ReplanResponse
    from planwave.storage.records import PlanRecord

PROPOSAL: Final = "proposal"
"""The field of a plan's document that has its proposal."""
_SHOWN_CHARS: Final = 400
"""The characters of a result that the model is shown."""


def proposal_of(
    plan: RevisedPlan,
    request: str,
    revision: Revision,
    catalogue: NodeTypes,
    providers: Providers | None,
    at: str,
) -> ProposalDocument | None:
    """Return the proposal of a change; None where it changes nothing.

    Args:
        plan: The plan that is changed.
        request: What a person asked for.
        revision: What a model wrote.
        catalogue: The node types.
        providers: The providers; None where a run has no services.
        at: The present time.
    """
    reading = revision.reading
    if reading.graph is None or reading.content is None:
        return None
    content: PlanContent = reading.content
    before, after = plan.graph.to_document(), reading.graph.to_document()
    title = [plan.content.title, content.title]
    by = current_principal()
    proposal: dict[str, Any] = {
        "request": request,
        "answer": reading.answer,
        "base": graph_hash(plan.graph),
        "hash": graph_hash(reading.graph),
        "title": content.title,
        "operations": [operation_json(each) for each in reading.operations],
        "difference": {
            "title": title if title[0] != title[1] else None,
            **graph_difference(before, after),
        },
        "additions": additions_of(plan.graph, reading.graph, catalogue, providers),
        "diagnostics": [each.as_json() for each in reading.diagnostics],
        "provider": revision.provider,
        "model": revision.model,
        "attempts": [*revision.attempts],
        "created_at": at,
        "created_by": by.as_json(),
    }
    return cast("ProposalDocument", proposal)


def plan_of_run(state: ExecutionState) -> RevisedPlan:
    """Return the graph of an execution as the plan that is to be changed, with how far it has come."""
    graph, _ = read_graph(state.graph or NO_GRAPH)
    given = ((path, node.delivered) for path, node in state.nodes.items() if "[" not in path)
    return RevisedPlan(
        state.goal,
        PlanContent(state.title, graph.to_document()),
        graph,
        state.changes.progress(state.nodes, graph),
        {path: result_text(outputs)[:_SHOWN_CHARS] for path, outputs in given if outputs},
        has_ended=state.status in ENDED_STATUS,
    )


def forecast_of_rest(
    state: ExecutionState, graph: Graph, catalogue: NodeTypes, providers: Providers | None
) -> ForecastResponse | None:
    """Return what the nodes of a graph will take that an execution has not begun, and that no failure blocks.

    Args:
        state: That of the execution.
        graph: The one that it runs, or that it would become.
        catalogue: The node types.
        providers: The providers, with their prices; without any, nothing is known.
    """
    if providers is None:
        return None
    given = ((path, node.delivered) for path, node in state.nodes.items() if "[" not in path)
    values = {
        path: {handle: each.value for handle, each in outputs.items()}
        for path, outputs in given
        if outputs
    }
    progress = state.changes.progress(state.nodes, graph)
    begun = {*progress.begun, *_blocked_by(progress.spent, graph)}
    return forecast(graph, catalogue, providers, goal=state.goal, inputs=values, begun=begun)


def _blocked_by(spent: Collection[str], graph: Graph) -> set[str]:
    """Return the nodes that cannot run, as nodes have failed for good; with these."""
    blocked, stack = {*spent}, [*spent]
    while stack:
        for edge in graph.outgoing.get(stack.pop(), ()):
            target = graph.by_id[edge.target]
            edges = [e for e in graph.incoming[target.id] if e.channel == FLOW]
            failed = (each.source in blocked for each in edges)
            is_blocked = all(failed) if target.policy.join == "any" else any(failed)
            if edge.channel == FLOW and is_blocked and target.id not in blocked:
                blocked.add(target.id)
                stack.append(target.id)
    return blocked


def replan_document(
    state: ExecutionState,
    plan: RevisedPlan,
    request: str,
    revision: Revision,
    catalogue: NodeTypes,
    providers: Providers | None,
    at: str,
) -> ReplanResponse:
    """Return the proposal of a change of an execution; arguments as those of ``proposal_of``.

    Raises:
        InputError: ``nothing-changed``.
    """
    proposal = proposal_of(plan, request, revision, catalogue, providers, at)
    changed = revision.reading.graph
    if proposal is None or changed is None or proposal["hash"] == proposal["base"]:
        stays = "stays as it was" if plan.has_ended else "goes on as it is"
        raise nothing_changed(f"the execution {stays}", revision.reading.answer)
    document = cast("GraphDocument", changed.document)
    proposal["base"] = state.plan_hash or proposal["base"]  # without policies of its request
    return {**proposal, "execution_id": state.execution_id, "graph": document}


def accepted_operations(plan: PlanRecord, accepted: str) -> tuple[list[Operation], str]:
    """Return the operations of the proposal with a hash, and what was asked for.

    Raises:
        Conflict: ``no-proposal``: the plan has none, or another one.
    """
    proposal: Mapping[str, Any] | None = plan.document.get(PROPOSAL)
    if proposal is None or proposal["hash"] != accepted:
        raise Conflict(
            f"plan {plan.plan_id} has no proposal with the hash {accepted!r}",
            code="no-proposal",
            hint="it was taken, or the plan was changed since: ask for the change again",
        )
    operations = [operation_from_json(each) for each in proposal["operations"]]
    return operations, proposal["request"]


def without_proposal(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a plan without its proposal."""
    return {name: each for name, each in document.items() if name != PROPOSAL}


def require_words(request: str, most: int | None) -> None:
    """Check what a person asks for.

    Raises:
        InputError: ``empty-goal``.
        LimitExceeded: ``goal_chars``.
    """
    if not request.strip():
        hint = "say what is to be different"
        raise InputError("the request is empty", code="empty-goal", hint=hint)
    if most is not None and len(request) > most:
        raise LimitExceeded("goal_chars", most, len(request), what="the request")


def nothing_changed(what: str, said: str) -> InputError:
    """Return the error of words that ask for nothing that can be done.

    Args:
        what: What stays as it is.
        said: The sentence of the model.
    """
    said = said or "the words ask for nothing that changes it"
    hint = "say what is to be different, or edit the plan"
    return InputError(f"{what}: {said}", code="nothing-changed", hint=hint)
