"""Changes of the graph of a run: by a new graph, or by one that a model proposes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from planwave.errors import Conflict, GraphInvalid
from planwave.events import ENDED_STATUS, ExecutionState
from planwave.events.plan_changes import NO_GRAPH
from planwave.executor.driver.execution import utc_now
from planwave.executor.program import Program
from planwave.graph.editing.revision import changed_graph, graph_change
from planwave.graph.model import Graph
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_graph
from planwave.nodes.model_choice import named_model
from planwave.principals import LIBRARY
from planwave.service.executions.command_rules import (
    NOTE_CHARS,
    Replan,
    Revise,
    change_findings,
    require_changeable,
    require_failed,
    version_of,
)
from planwave.service.executions.run_spec import require_inputs_for
from planwave.service.library.commands import RunCommands
from planwave.service.library.environment import RunDependencies, RunEnvironment
from planwave.service.library.graphs import GraphSource, build_graph, uses_services
from planwave.service.library.sources import LoadedRun
from planwave.service.library.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planwave.nodes.services import PlanEvent
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.plans import AdditionDocument, ReplanResponse


class Proposal(NamedTuple):
    """A change of a run that a model wrote; [Run.revise][planwave.Run.revise] takes it.

    Attributes:
        answer: The sentence of the model on what it changes.
        additions: All that the changed graph would reach outside of itself and the present one does not: look
            at it before you take the change, because the model has read what steps gave.
        graph: The changed graph.
        document: The proposal as ``POST /api/executions/{execution_id}/replan`` returns it, with the differences.
    """

    answer: str
    additions: Sequence[AdditionDocument]
    graph: Graph
    document: ReplanResponse


def revise_command(
    source: GraphSource | Proposal,
    note: str,
    run: LoadedRun,
    catalogue: NodeTypes,
    dependencies: RunDependencies | None,
    pending: RunCommands,
) -> Revise:
    """Return the command that changes the graph of a run.

    Args:
        source: The graph that it becomes.
        note: Why.
        run: The run.
        catalogue: The node types.
        dependencies: What the run is driven with; None while it rests.
        pending: Its commands that nothing drives yet.

    Raises:
        GraphInvalid: The graph has errors, or cannot become that of the run.
        InputError: ``invalid-inputs``: the graph needs an input that the run was not given.
        Conflict, PreconditionFailed: See ``Revise.check``; ``change-pending``: there is one already.
    """
    _require_none_pending(pending)
    state = run.state()
    expected = [version_of(state)]
    if isinstance(source, Proposal):
        expected, note = (
            [source.document["base"]],
            note or f"in words: {source.document['request']}",
        )
        source = source.graph
    new = build_graph(source, catalogue, lambda each: change_findings(state, each, catalogue)).graph
    before = state.graph or NO_GRAPH
    document = changed_graph(before, graph_change(before, new.document))
    shown = ((), None) if state.approval is None else _shown(state, new, catalogue, dependencies)
    command = Revise(document, expected, note[:NOTE_CHARS], LIBRARY.as_json(), *shown)
    command.check(state)
    if findings := change_findings(state, new, catalogue):
        raise GraphInvalid(findings)
    require_inputs_for(run.spec, new, catalogue)
    return command


def _require_none_pending(pending: RunCommands) -> None:
    """Raise if a run is to be changed already once it goes on: the next change is one of the changed graph.

    Raises:
        Conflict: ``change-pending``.
    """
    if pending.of(Revise) or pending.of(Replan):
        raise Conflict(
            "the run has a change that is made once it goes on",
            code="change-pending",
            hint="await the run, or iterate over it, before the next change",
        )


def _shown(
    state: ExecutionState, graph: Graph, catalogue: NodeTypes, dependencies: RunDependencies | None
) -> tuple[Sequence[AdditionDocument], ForecastResponse | None]:
    """Return what is shown to who approves a changed graph: what it reaches, and its forecast."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.planner.plan_access import additions_of
    from planwave.service.plans.proposals import forecast_of_rest

    before, _ = read_graph(state.graph or NO_GRAPH)
    parts = catalogue, None if dependencies is None else dependencies.providers
    return additions_of(before, graph, *parts), forecast_of_rest(state, graph, *parts)


def replan_command(
    words: str | None,
    chosen: tuple[str | None, str | None],
    state: ExecutionState,
    pending: RunCommands,
) -> Replan:
    """Return the command that has a model change the graph of a run.

    Args:
        words: What is to be different; None for what replaces the steps that failed.
        chosen: The provider and the model; None for the default.
        state: The state of the run.
        pending: Its commands that nothing drives yet.

    Raises:
        Conflict, InputError: See ``Replan.check``; ``change-pending``: there is one already.
    """
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.service.plans.proposals import require_words

    _require_none_pending(pending)
    if words is not None:
        require_words(words, None)
    expected = [version_of(state)]
    command = Replan(words, expected, LIBRARY.as_json(), *named_model(*chosen))
    command.check(state)
    return command


def require_services(
    command: Revise | Replan, dependencies: RunDependencies | None, catalogue: NodeTypes
) -> None:
    """Refuse a change of a run that goes on and has no services, which a model or the changed graph needs.

    Raises:
        Conflict: ``no-services``.
    """
    if isinstance(command, Replan):
        if dependencies is None or dependencies.planner is None:
            raise Conflict(
                "a model is to change the run, which began without services that have a planner",
                code="no-services",
                hint="pass services=… where the run begins, or ask while it waits: it opens them when it goes on",
            )
        return
    has_services = dependencies is not None and dependencies.services is not None
    if has_services or not uses_services(Program(read_graph(command.graph)[0], catalogue)):
        return
    raise Conflict(
        "the changed graph calls models or other services, and the run began without any",
        code="no-services",
        hint="pass services=… where the run begins, or revise it while it waits: it opens them when it goes on",
    )


async def propose(
    environment: RunEnvironment,
    state: ExecutionState,
    words: str | None,
    chosen: tuple[str | None, str | None],
    on_progress: Callable[[PlanEvent], None] | None,
) -> Proposal:
    """Have a model write a change of a run; see ``Run.replan``."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.service.executions.written_changes import failure_words
    from planwave.service.plans.proposals import plan_of_run, replan_document, require_words

    if words is None:
        require_failed(state)
        words = failure_words(state)
    require_words(words, None)
    if state.status not in ENDED_STATUS:  # else a fork takes it
        require_changeable(state, None)
    plan = plan_of_run(state)
    async with open_store(environment.store, read_only=True) as store:
        opened = RunDependencies(environment, store)
        async with opened.open_services(state.goal) as services:
            planner = getattr(services, "planner", None)
            if planner is None:
                raise Conflict(
                    "the services of the run have no planner",
                    code="no-planner",
                    hint="leave out services=…, or pass some with a planner",
                )
            revision = await planner.revise(
                plan, words, *named_model(*chosen), on_progress=on_progress
            )
    document = await asyncio.to_thread(
        replan_document,
        state,
        plan,
        words,
        revision,
        environment.catalogue,
        services.providers,
        utc_now(),
    )
    graph, _ = read_graph(document["graph"])
    return Proposal(document["answer"], document["additions"], graph, document)
