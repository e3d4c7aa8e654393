"""The Python library: ``planwave.run``, ``open``, ``executions``, ``plan``, ``run_goal`` and others.

A function whose name ends with "_sync" is for code without an event loop, the one without it for code with one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Unpack

from planwave.bootstrap import open_node_services, tracer_of_program
from planwave.executor.options import RunOptions
from planwave.expressions.renderer import Renderer
from planwave.nodes.builder import GraphBuilder
from planwave.nodes.checking.entries import entries_without_input
from planwave.nodes.model_choice import named_model
from planwave.nodes.registry import installed_types
from planwave.service.library.arguments import (
    GoalArguments,
    PlanArguments,
    RunArguments,
    arguments_of,
    check_flags,
    check_plan_arguments,
    check_text,
    known_arguments,
)
from planwave.service.library.event_loops import require_no_loop, run_now
from planwave.service.library.graphs import BuiltGraph, GraphSource, build_graph
from planwave.service.library.runs import Run, RunEnvironment
from planwave.service.library.sources import find_stored, list_stored, new_run, with_message
from planwave.service.library.stores import EventLog, check_source, open_store, require_directory
from planwave.source_locations import callers_level, hides_inner_frames

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.graph.protocols import NodeTypes
    from planwave.nodes.registry import Registry
    from planwave.nodes.services import PlanEvent
    from planwave.service.library.results import RunResult
    from planwave.service.library.sources import LoadedRun, StoredExecution
    from planwave.service.library.stores import StoreSource
    from planwave.service.tracing import ExecutionTracer
    from planwave.shapes.common import ExecutionStatus


@hides_inner_frames
@known_arguments
def build(spec: GraphSource, *, registry: Registry | None = None) -> BuiltGraph:
    """Read and check a graph, and bind it to its node types.

    A built graph serves any number of runs.

    Args:
        spec: ``{"nodes": [...], "edges": [...]}`` as JSON or YAML text or objects, a ``Graph``, a
            ``GraphBuilder``, or a ``Plan``.
        registry: The node types; those of the builder, or else the library, installed packages and
            ``@planwave.node`` functions by default.

    Raises:
        GraphInvalid: The graph has errors; ``diagnostics`` holds all of them.
        InputError: ``not-a-graph``.
        TypeError: ``registry`` is of another type.
    """
    _check_registry(registry)
    if registry is None and isinstance(spec, GraphBuilder):
        registry = spec.registry
    return build_graph(spec, registry or installed_types())


@hides_inner_frames
@known_arguments
def run(
    graph: BuiltGraph | GraphSource,
    message: Any = None,
    *,
    images: Sequence[str] = (),
    inputs: Mapping[str, Mapping[str, Json]] | None = None,
    options: RunOptions | None = None,
    services: Any = None,
    store: StoreSource | None = None,
    goal: str = "",
    registry: Registry | None = None,
    check: bool = True,
    require_approval: bool = False,
) -> Run:
    """Run a graph: iterate over the run for its events, await it for its result.

    Args:
        graph: A graph, or the result of [build][planwave.build].
        message: What the graph begins with: the value of its one entry node that ``inputs`` do not name.
            It is JSON, or has a JSON form: a model, a date, a list of them.
        images: URLs (also ``data:`` URLs) of images beside the message, for a ``user_input`` node.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values, not executed.
        options: Scheduling, failure policy and bounds; eager and unbounded by default.
        services: What nodes find as ``context.services``; by default, if a node calls a model or
            another service, those configured by environment and ``planwave.toml``.
        store: Where events are durable before dependent nodes start: a store, or the path of a
            directory for a SQLite store. None stores them in memory, as long as the run exists.
        goal: Shown to planned agents, and to expressions as ``goal``; by default that of a plan.
        registry: As in [build][planwave.build], if ``graph`` is not built yet.
        check: Whether awaiting the run raises ``ExecutionFailed`` if it failed.
        require_approval: Ask before the first node starts: the run is ``paused`` then, with one
            request, and [Run.answer][planwave.Run.answer] approves or rejects it.

    Raises:
        GraphInvalid: ``graph`` was not built yet and has errors.
        InputError: There is a message but not exactly one entry node for it; ``inputs`` have another
            shape, name no node, or hold a value that is not JSON; the options leave nothing to run.
        TypeError: An argument is of another type.
    """
    _check_types(options, store)
    check_text("a goal", goal)
    check_flags(check=check, require_approval=require_approval)
    if isinstance(images, str):
        raise TypeError(f"images must be a list of URLs: write images=[{images!r}]")
    built = graph if isinstance(graph, BuiltGraph) else build(graph, registry=registry)
    environment = _run_environment(built.program.catalogue, store, services, check=check)
    values = with_message(built.program, message, images, {} if inputs is None else inputs)
    new = new_run(built, values, options or RunOptions(), goal, require_approval=require_approval)
    _warn_of_missing_inputs(new)
    return Run(environment, new)


def _warn_of_missing_inputs(run: LoadedRun) -> None:
    """Warn at the caller's line of entry nodes that begin with an empty value."""
    spec, program = run.spec, run.program
    if spec.options.run_from or program is None:
        return
    for node_id in entries_without_input(spec.graph, program.catalogue, spec.inputs):
        output = program.types[spec.graph.by_id[node_id].type].facts.outputs[0].name
        warnings.warn(
            f"the entry node {node_id!r} has no input and begins with an empty value; pass "
            f"a message, inputs={{{node_id!r}: {{{output!r}: …}}}}, or give the node data of its own",
            stacklevel=callers_level(),
        )


@hides_inner_frames
@arguments_of(run)
def run_sync(
    graph: BuiltGraph | GraphSource, message: Any = None, **arguments: Unpack[RunArguments]
) -> RunResult:
    """Run a graph from code without an event loop; arguments as in [run][planwave.run].

    Returns:
        The result: of the whole run, or with the status ``paused`` if it needs an answer. Then
        ``result.run.answer(…)`` and ``result.run.wait()`` continue it.

    Raises:
        ExecutionFailed: The run failed, unless ``check=False``.
        GraphInvalid, InputError: See [run][planwave.run].
        RuntimeError: Called inside a running event loop; ``await planwave.run(…)`` there.
    """
    require_no_loop("planwave.run_sync", "planwave.run(…)")
    return run(graph, message, **arguments).wait()


@hides_inner_frames
@known_arguments
def open(
    store: StoreSource,
    execution_id: str,
    *,
    services: Any = None,
    registry: Registry | None = None,
    check: bool = True,
) -> Run:
    """Open a stored execution, to read, answer, resume, retry or fork it in this process.

    Nothing runs before [Run.answer][planwave.Run.answer] or [Run.resume][planwave.Run.resume]:
    ``run.result()`` and awaiting the run
    return what is stored, also while another process owns the directory.

    Args:
        store: A store, or the path of a directory of SQLite data.
        execution_id: The id of the execution, or at least four characters of its start or end; ``last``
            for the newest one.
        services: See [run][planwave.run].
        registry: The node types; the library and ``@planwave.node`` functions by default.
        check: See [run][planwave.run].

    Raises:
        NotFound: There is no such execution.
        InputError: ``ambiguous-id``: several executions have such an id.
        Conflict: ``unreadable``: the stored events were changed from outside.
        StoreError: There is no such directory, or it cannot be read.
        TypeError: ``store`` is neither a path nor a store, or ``execution_id`` is not text.
    """
    check_source(store)
    require_directory(store)
    check_text("the id of an execution", execution_id)
    check_flags(check=check)
    _check_registry(registry)
    environment = _run_environment(registry or installed_types(), store, services, check=check)
    return Run(environment, run_now(lambda: find_stored(store, execution_id)), is_due=False)


@hides_inner_frames
@known_arguments
def executions(
    store: StoreSource,
    *,
    status: ExecutionStatus | Literal["interrupted"] | None = None,
    text: str | None = None,
    since: str | None = None,
    limit: int | None = None,
) -> list[StoredExecution]:
    """Return the stored executions, newest first; [open][planwave.open] opens one of them.

    Args:
        store: A store, or the path of a directory of SQLite data, whoever owns it.
        status: Only those with this status; ``interrupted`` for those that no live process runs although
            their status says that they run.
        text: Only those whose title or goal contains this text.
        since: Only those created at this time or later, ISO 8601; without a zone, UTC.
        limit: The most of them; None for all.

    Raises:
        StoreError: There is no such directory, or it cannot be read.
        InputError: ``invalid-time``.
        ValueError: There is no such status.
        TypeError: ``store`` is neither a path nor a store, or ``limit`` is no whole number.
    """
    check_source(store)
    require_directory(store)
    return run_now(lambda: list_stored(store, status, text=text, since=since, limit=limit))


class _Program:
    """What holds for all runs of this process.

    Attributes:
        tracer: Makes spans of them; None makes none.
    """

    tracer: ExecutionTracer | None = None


_program = _Program()


@known_arguments
def instrument(tracer_provider: TracerProvider | None = None, *, content: bool = False) -> None:
    """Make spans of all runs and plans of this process that begin from now on; once is enough.

    They are those of a service (docs/operations.md): below the span that is current where a run begins,
    ``invoke_workflow``, its nodes, agents, model calls and calls of tools. With your provider, the id
    of a trace is not that of the execution, and a run that is continued has a trace of its own.

    Args:
        tracer_provider: Gives the tracer; None takes OpenTelemetry's global one, which Logfire, Langfuse
            or your own code sets.
        content: Whether spans hold prompts, replies, and arguments and results of tools, without the
            secrets of the settings.

    Raises:
        InputError: ``tracing-unavailable``: ``planwave[otel]`` is not installed.
        TypeError: ``content`` is no bool.
    """
    check_flags(content=content)
    _program.tracer = tracer_of_program(tracer_provider, content=content)


def _check_types(options: object, store: object) -> None:
    if options is not None and not isinstance(options, RunOptions):
        raise TypeError(f"options must be planwave.RunOptions(…), not {options!r}")
    if store is not None:
        check_source(store)


def _check_registry(registry: object) -> None:
    if registry is not None and not hasattr(registry, "type_info"):
        raise TypeError(f"registry must be a planwave.Registry, not {registry!r}")


def _run_environment(
    catalogue: NodeTypes, store: StoreSource | None, services: Any, *, check: bool
) -> RunEnvironment:
    return RunEnvironment(
        catalogue=catalogue,
        store=EventLog() if store is None else store,
        services=services,
        services_factory=partial(open_node_services, tracer=_program.tracer),
        renderer=Renderer(),
        check=check,
        tracer=_program.tracer,
    )


class Executor:
    """Runs plans and graphs with the same store, options and node types.

    Args:
        store: See [run][planwave.run]; one store for all executions.
        options: See [run][planwave.run].
        services: See [run][planwave.run].
        registry: See [build][planwave.build].

    Raises:
        TypeError: An argument is of another type.
    """

    def __init__(
        self,
        *,
        store: StoreSource | None = None,
        options: RunOptions | None = None,
        services: Any = None,
        registry: Registry | None = None,
    ) -> None:
        _check_types(options, store)
        _check_registry(registry)
        self._store, self._options = store, options
        self._services, self._registry = services, registry

    def execute(
        self,
        plan: Plan | BuiltGraph | GraphSource,
        message: Any = None,
        **arguments: Unpack[RunArguments],
    ) -> Run:
        """Return a run of a plan or graph; arguments and errors are those of [run][planwave.run]."""
        defaults: RunArguments = {
            "store": self._store,
            "options": self._options,
            "services": self._services,
            "registry": self._registry,
        }
        return run(plan, message, **(defaults | arguments))


@hides_inner_frames
@known_arguments
async def plan(
    goal: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    on_progress: Callable[[PlanEvent], None] | None = None,
    answers: Mapping[str, str] | None = None,
) -> Plan:
    """Let a language model write a plan for a goal, without a service.

    Args:
        goal: The task in the user's words.
        provider: The provider that plans and that runs the steps; None for the default one.
        model: The model of that provider, or both: ``"openai:gpt-5"``; None for its default.
        on_progress: Called with the progress while the plan is written; must not block.
        answers: Answers to the ``questions`` of an earlier plan of the goal, by question.

    Raises:
        InputError: The goal or an answer is empty or too long; the provider or model is unknown or
            unavailable.
        PlanInvalid: The model's plan still has errors after the repairs.
        ProviderError: A model call failed.
        TypeError: An argument is of another type.
    """
    check_plan_arguments("a goal", goal, provider, model, on_progress)
    provider, model = named_model(provider, model)
    tracer = _program.tracer
    async with open_node_services(goal, tracer=tracer) as services:
        if services.planner is None:
            raise RuntimeError("model services have no planner")
        with nullcontext() if tracer is None else tracer.planning(goal):
            return await services.planner.create_plan(
                goal, provider, model, on_progress=on_progress, answers=answers or {}
            )


@hides_inner_frames
@arguments_of(plan)
def plan_sync(goal: str, **arguments: Unpack[PlanArguments]) -> Plan:
    """Plan a goal from code without an event loop; arguments and errors as in [plan][planwave.plan]."""
    require_no_loop("planwave.plan_sync", "planwave.plan(…)")
    return asyncio.run(plan(goal, **arguments))


@hides_inner_frames
@known_arguments
async def run_goal(
    goal: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    on_progress: Callable[[PlanEvent], None] | None = None,
    answers: Mapping[str, str] | None = None,
    options: RunOptions | None = None,
    store: StoreSource | None = None,
    check: bool = True,
    require_approval: bool = False,
) -> RunResult:
    """Plan a goal and run the plan, without a service.

    Args and errors are those of [plan][planwave.plan] and [run][planwave.run].
    """
    _check_types(options, store)
    check_flags(check=check, require_approval=require_approval)
    if store is not None:
        async with open_store(store):  # fails before a model call is paid for
            pass
    new_plan = await plan(
        goal, provider=provider, model=model, on_progress=on_progress, answers=answers
    )
    return await run(
        new_plan, options=options, store=store, check=check, require_approval=require_approval
    )


@hides_inner_frames
@arguments_of(run_goal)
def run_goal_sync(goal: str, **arguments: Unpack[GoalArguments]) -> RunResult:
    """Plan and run a goal from code without an event loop; see [run_goal][planwave.run_goal]."""
    require_no_loop("planwave.run_goal_sync", "planwave.run_goal(…)")
    return asyncio.run(run_goal(goal, **arguments))
