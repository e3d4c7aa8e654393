"""Node types with every combination of methods, and the results that they must give.

The value of a node contains all its inputs, so that a value which arrived twice, too early
or from another node is detected. ``CallLog`` records the calls of the engine; ``ExpectedResults`` computes without an engine what
every node has to return.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping
from hashlib import sha256
from itertools import product
from typing import Any

import planwave
from planwave.executor.driver.execution import Execution
from planwave.executor.driver.publisher import Subscription
from planwave.executor.program import Program
from planwave.graph.inputs import Inputs
from planwave.graph.model import FLOW, LINK, DataValue, Edge, Graph, Node, Port
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.graph.topology import materialized_ids
from planwave.nodes.registry import Registry

OUTPUT_HANDLES = ("p", "q")
"""Handles on which every executed node has a value."""
EXECUTE_FORMS = ("", "coroutine", "generator", "awaitable")
"""How a type executes; "" for one that does not."""


class Artifact:
    """An artefact: an object with a value, of which two are never the same."""

    def __init__(self, value: str) -> None:
        self.value = value


def digest(*parts: Any) -> str:
    """Return a short hash of some parts."""
    return sha256(repr(parts).encode()).hexdigest()[:12]


class CallLog:
    """The calls of the engine to the nodes of one run.

    Attributes:
        executed: How often each node was executed from the top.
        resumed: How often each node was resumed with an answer.
        materialized: How often each ``(node, handle)`` was materialised.
        received_artifacts: The artifacts each node received, by ``(node, source, handle)``.
    """

    def __init__(self) -> None:
        self.executed: Counter[str] = Counter()
        self.resumed: Counter[str] = Counter()
        self.materialized: Counter[tuple[str, str]] = Counter()
        self.received_artifacts: dict[tuple[str, str, str], list[Artifact]] = {}

    def registry(self) -> Registry:
        """Return a registry of all possible types."""
        return Registry(
            _make_type(form, makes, goes_on)(self)
            for form, makes, goes_on in product(EXECUTE_FORMS, (False, True), (False, True))
            if form or makes
        )


def type_name(form: str, materializes: bool, resumes: bool) -> str:
    """Return the type name for a form of ``execute`` and the presence of the other methods."""
    return "-".join(["zork", *filter(None, (form, materializes and "maker", resumes and "waiter"))])


class _MatrixNode:
    """The methods of all types; a class selects those that its type has."""

    inputs = (Port("{name}", multiple=True), Port("{name}", channel=LINK, multiple=True))
    outputs = (Port("{name}"), Port("{name}", channel=LINK))
    template_fields = ()
    node_type: str

    def __init__(self, call_log: CallLog) -> None:
        self.call_log = call_log

    async def compute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext, answers: list[Any]
    ) -> ExecutionResult | Suspension:
        """Use all links, then suspend or return a value."""
        sums = await self.resolve_all_links(context)
        await asyncio.sleep(data.get("delay", 0))
        if len(answers) < data.get("asks", 0):
            return Suspension({"number": len(answers)}, [*answers])
        came = [(a.target_handle, a.source_id, a.value.value) for a in inputs.arrivals]
        value = digest(context.node_id, came, sums, answers)
        return ExecutionResult({h: DataValue("any", digest(value, h)) for h in OUTPUT_HANDLES})

    async def coroutine(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        self.call_log.executed[context.node_id] += 1
        return await self.compute(data, inputs, context, [])

    def awaitable(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> Awaitable[ExecutionResult | Suspension]:
        return self.coroutine(data, inputs, context)

    async def generator(self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext) -> Any:
        yield NodeEvent(context.node_id, self.node_type, "hum", context.run_id, {"loud": True})
        yield await self.coroutine(data, inputs, context)

    async def resume_with(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> ExecutionResult | Suspension:
        self.call_log.resumed[context.node_id] += 1
        return await self.compute(data, inputs, context, [*state, answer])

    async def make_artifact(self, data: Any, output_handle: str, context: FlowContext) -> Artifact:
        self.call_log.materialized[context.node_id, output_handle] += 1
        came = [
            (a.target_handle, a.source_id, a.value.value)
            for a in context.runtime.arrivals(context.node_id)
        ]
        await asyncio.sleep(data.get("delay", 0))
        return Artifact(
            digest(context.node_id, output_handle, came, await self.resolve_all_links(context))
        )

    async def resolve_all_links(self, context: FlowContext) -> list[Any]:
        """Return the artifacts of all links by handle; each link is resolved twice concurrently."""
        runtime, node_id = context.runtime, context.node_id
        edges = runtime.incoming_edges(node_id, channel=LINK)
        handles = sorted({edge.target_handle for edge in edges})
        async with asyncio.TaskGroup() as group:
            tasks = [
                (handle, group.create_task(runtime.resolve_links(node_id, handle)))
                for handle in handles
                for _ in range(2)
            ]
        for handle, task in tasks:
            into = [edge for edge in edges if edge.target_handle == handle]
            for edge, made in zip(into, task.result(), strict=True):
                place = node_id, edge.source, edge.source_handle
                self.call_log.received_artifacts.setdefault(place, []).append(made)
        return [(handle, [made.value for made in task.result()]) for handle, task in tasks[::2]]


def _make_type(form: str, materializes: bool, resumes: bool) -> type[_MatrixNode]:
    can: dict[str, Any] = {"node_type": type_name(form, materializes, resumes)}
    if form:
        can["execute"] = getattr(_MatrixNode, form)
    if materializes:
        can["materialize"] = _MatrixNode.make_artifact
    if resumes:
        can["resume"] = _MatrixNode.resume_with
    return type("Species", (_MatrixNode,), can)


class ExpectedResults:
    """The expected outputs of every node of a graph, by plain recursion."""

    def __init__(self, graph: Graph, answers: Mapping[str, list[Any]]) -> None:
        passive = {node.id for node in graph.nodes if not _executes(node)}
        self.linked = materialized_ids(graph, passive)
        self._graph, self._answers = graph, answers
        self._known: dict[tuple[str, str], str] = {}
        self.requested_artifacts: set[tuple[str, str]] = set()
        """Every ``(node, handle)`` that somebody needs made."""

    def outputs(self) -> dict[str, dict[str, str]]:
        """Return the values of every node that is executed, by handle."""
        return {
            node.id: {handle: self._output(node.id, handle) for handle in OUTPUT_HANDLES}
            for node in self._graph.nodes
            if node.id not in self.linked
        }

    def artifact(self, node: str, handle: str) -> str:
        """Return the value of an artefact."""
        self.requested_artifacts.add((node, handle))
        key = node, f"~{handle}"
        if key not in self._known:
            self._known[key] = digest(node, handle, self._arrivals(node), self._links(node))
        return self._known[key]

    def _output(self, node: str, handle: str) -> str:
        key = node, ">"
        if key not in self._known:
            answers = self._answers.get(node, [])
            self._known[key] = digest(node, self._arrivals(node), self._links(node), answers)
        return digest(self._known[key], handle)

    def _arrivals(self, node: str) -> list[Any]:
        return [
            (edge.target_handle, edge.source, self._output(edge.source, edge.source_handle))
            for edge in self._incoming(node, FLOW)
            if edge.source_handle in OUTPUT_HANDLES
        ]

    def _links(self, node: str) -> list[Any]:
        edges = self._incoming(node, LINK)
        return [
            (
                handle,
                [
                    self.artifact(e.source, e.source_handle)
                    for e in edges
                    if e.target_handle == handle
                ],
            )
            for handle in sorted({edge.target_handle for edge in edges})
        ]

    def _incoming(self, node: str, channel: str) -> list[Edge]:
        return [e for e in self._graph.edges if e.target == node and e.channel == channel]


def _executes(node: Node) -> bool:
    return any(form and form in node.type for form in EXECUTE_FORMS)


async def run_with_answers_from(
    graph: Graph,
    registry: Registry,
    options: planwave.RunOptions,
    answers: Mapping[str, list[Any]],
    open_requests: int = 1,
) -> Execution:
    """Run a graph; answer requests once ``open_requests`` of them are open.

    Args:
        graph: A valid graph.
        registry: The types of its nodes.
        options: How it runs.
        answers: The answers to the requests of each node, in order.
        open_requests: How many requests may be open before the newest is answered; when nothing else
            runs, all are.
    """
    execution = Execution(Program(graph, registry), execution_id="x", options=options)
    async with asyncio.TaskGroup() as group:
        events = execution.events()
        group.create_task(execution.run())
        await _answer_all(execution, events, answers, open_requests)
    return execution


async def _answer_all(
    execution: Execution,
    events: Subscription,
    answers: Mapping[str, list[Any]],
    open_requests: int,
) -> None:
    waiting: list[planwave.Event] = []
    async for event in events:
        if event.type == "node.waiting":
            waiting.append(event)
        is_paused = event.type == "execution.paused"
        while waiting and (is_paused or len(waiting) >= open_requests):
            request = waiting.pop()
            number = request.data["request"]["number"]
            execution.answer(request.data["request_id"], answers[request.path or ""][number])
