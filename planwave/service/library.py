"""Graphs run from Python, without a service: no store, no limits, nothing left behind.

::

    graph = planwave.build({"nodes": [...], "edges": [...]}, message="Hello")
    async for event in planwave.run(graph):
        print(event.type, event.path)
    print(planwave.run_sync(graph).text)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from planwave.errors import GraphInvalid, InputError
from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.inputs import validate_inputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.expressions.renderer import Renderer
from planwave.graph.builder import GraphBuilder
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Graph, Json
from planwave.graph.protocols import Catalogue
from planwave.graph.subgraphs import all_nodes
from planwave.graph.upstream_text import result_text
from planwave.ids import new_id
from planwave.storage.records import ExecutionRecord, Store

ServicesFactory = Callable[[str], AbstractAsyncContextManager[Any]]
"""Opens what nodes that call models need, for a goal; closed when the run has ended."""


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """A checked graph, ready to be run any number of times.

    Attributes:
        graph: The graph as read.
        program: The graph bound to its node types.
        inputs: ``{node_id: {handle: value}}``, from ``message``.
        diagnostics: Warnings and fixes; a graph with errors is never built.
    """

    graph: Graph
    program: Program
    inputs: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Any])
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def calls_model(self) -> bool:
        """Whether a node of it, or of a graph inside one, calls a language model."""
        kinds, catalogue = self.program.types.values(), self.program.catalogue
        used = [kind.implementation for kind in kinds]
        if any(kind.facts.graph_fields for kind in kinds):
            types = {placed.node.type for placed in all_nodes(self.graph, catalogue)}
            used += [catalogue.implementation(name) for name in types]
        return any(getattr(each, "calls_model", False) for each in used)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    Attributes:
        execution_id: Its id.
        status: ``completed``, ``failed`` or ``cancelled``.
        outputs: What each node gave: ``{node_id: {handle: DataValue}}``.
        text: The results of the last nodes (those nothing reads) as text, blank line between.
        error: ``{"code", "message", "hint"?}`` where it failed.
    """

    execution_id: str
    status: str
    outputs: Mapping[str, Mapping[str, DataValue]]
    text: str
    error: Mapping[str, Any] | None = None


def build_graph(spec: Any, catalogue: Catalogue, message: Json = None) -> BuiltGraph:
    """Read and check a graph; see ``planwave.build``."""
    source = spec.document() if isinstance(spec, GraphBuilder) else spec
    graph, findings = read_and_check(source, catalogue)
    if graph is None or errors_in(findings):
        raise GraphInvalid(findings)
    program = Program(graph, catalogue)
    inputs = _message_inputs(program, message) if message is not None else {}
    return BuiltGraph(graph, program, inputs, tuple(findings))


def _message_inputs(program: Program, message: Json) -> dict[str, dict[str, Json]]:
    """Return the inputs that set the first output of the one entry node to a message."""
    entries = [program.steps[n] for n in sorted(program.entry_nodes)]
    if len(entries) != 1:
        found = f"{len(entries)} entry nodes" if entries else "no entry node"
        raise InputError(
            f"the graph has {found}, so the message has no place to go",
            code="no-entry" if not entries else "several-entries",
            hint="give the graph one 'start' node, or pass inputs={node_id: {handle: value}}",
        )
    entry = entries[0]
    outputs = entry.facts.outputs
    handle = DEFAULT_SOURCE_HANDLE if not outputs else outputs[0].name
    return {entry.node.id: {handle: message}}


class Run:
    """One run: iterate it for its events, await it for its result, or first one, then the other.

    The events can be read once, from the start; the result can be awaited any number of times. The
    run goes on while events are being read and does not wait for a slow reader. Leaving the
    iteration early cancels it, and so does cancelling a task that awaits it.
    """

    def __init__(
        self,
        built: BuiltGraph,
        services_factory: ServicesFactory,
        *,
        inputs: Mapping[str, Mapping[str, Json]] | None = None,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        services: Any = None,
        store: Store | None = None,
        goal: str = "",
        execution_id: str | None = None,
    ) -> None:
        self._built, self._services_factory = built, services_factory
        self._services, self._goal = services, goal
        self._renderer = Renderer()
        execution_id = execution_id or new_id()
        given = validate_inputs(built.program, built.inputs if inputs is None else inputs)
        facts = {"goal": goal, "title": goal, "options": options.as_json()}
        if given:
            facts["inputs"] = given
        self.execution = Execution(
            built.program,
            execution_id=execution_id,
            inputs=given,
            options=options,
            journal=None
            if store is None
            else _CreatingJournal(store, execution_id, built.graph, facts),
            last_seq=1 if store is not None else 0,
            variables={"goal": goal, "trigger": None},
            services=services,
            renderer=self._renderer,
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def graph(self) -> Graph:
        """The graph that is run."""
        return self._built.graph

    def cancel(self, cause: str = "cancelled by the caller") -> None:
        """Cancel the run; it ends with status ``cancelled``."""
        self.execution.cancel(cause)

    def answer(self, request_id: str, answer: Json) -> None:
        """Answer a waiting node (event ``node.waiting``)."""
        self.execution.answer(request_id, answer)

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._finish().__await__()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """Yield every event as it happens, up to the terminal event.

        Raises:
            RuntimeError: The run has begun already, so its first events are gone.
        """
        if self._task is not None:
            raise RuntimeError(
                "the events of a run can be read once, from the start, and this one has begun; "
                "call planwave.run(…) again for a new run, or keep its events with store=…"
            )
        events = self.execution.events()
        driver = self._start()
        driver.add_done_callback(lambda _: events.close())
        try:
            async for batch in events.batches():
                for event in batch:
                    yield event
            await driver
        finally:
            await self._stop("the caller stopped listening")

    async def _finish(self) -> RunResult:
        try:
            await asyncio.shield(self._start())
        except asyncio.CancelledError:
            await self._stop("the caller was cancelled")
            raise
        return self.result()

    def _start(self) -> asyncio.Task[None]:
        """Return the task that drives the run; the first call starts it."""
        if self._task is None:
            # Not a TaskGroup: leaving the loop early raises GeneratorExit in the reader, and a
            # group would wrap it in an ExceptionGroup.
            self._task = asyncio.get_running_loop().create_task(self._drive())
        return self._task

    async def _stop(self, cause: str) -> None:
        """Cancel the run, and wait until its end is published and durable."""
        driver = self._task
        if driver is None:
            return
        if not driver.done():
            self.cancel(cause)
            await asyncio.wait([driver])
        if not driver.cancelled():
            driver.exception()  # no other caller retrieves it, and asyncio would log it as lost

    def result(self) -> RunResult:
        """Return the result so far; the whole result once the run has ended."""
        execution, graph = self.execution, self._built.graph
        outputs = execution.outputs
        read = {edge.source for edge in graph.edges}
        last = [outputs[n.id] for n in graph.nodes if n.id not in read and n.id in outputs]
        texts = [text for given in last if (text := result_text(given))]
        return RunResult(
            execution.execution_id, execution.status, outputs, "\n\n".join(texts), execution.error
        )

    async def _drive(self) -> None:
        try:
            if self._services is None and self._built.calls_model:
                async with self._services_factory(self._goal) as services:
                    self.execution.use_services(services)
                    await self.execution.run()
            else:
                await self.execution.run()
        finally:
            await self._renderer.close()


class _CreatingJournal:
    """A store as the journal of a new execution: its first batch also creates it, in one commit.

    A run from Python publishes its id when it starts, so nothing has to be durable earlier.
    """

    def __init__(
        self, store: Store, execution_id: str, graph: Graph, facts: Mapping[str, Any]
    ) -> None:
        self._store = store
        self._is_created = False
        self._execution_id, self._graph, self._facts = execution_id, graph, facts

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        if self._is_created:
            await self._store.append(execution_id, epoch, events)
            return
        self._is_created = True
        record, created = self._create(events[0].at)
        await self._store.create_execution(record, [created, *events])

    def _create(self, at: str) -> tuple[ExecutionRecord, Event]:
        graph, goal = self._graph, self._facts["goal"]
        data = {**self._facts, "graph": graph.document}
        record = ExecutionRecord(self._execution_id, None, goal, goal, "starting", at)
        return record, Event(self._execution_id, 1, at, "execution.created", None, None, data)
