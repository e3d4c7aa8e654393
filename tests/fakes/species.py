"""Node types that nobody has heard of: every combination of what a type can do, and what must come.

A creature's value names everything that went into it, so that a value which arrived twice, too early
or from elsewhere shows. ``Habitat`` notes what the engine did; ``Prophet`` says without any engine what
every node has to come to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping
from hashlib import sha256
from itertools import product
from typing import Any

import planwave
from planwave.graph.capabilities import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.graph.model import FLOW, LINK, Edge, Graph, Node, Port
from planwave.graph.topology import linked_ids
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.registry import Registry

GIVES = ("p", "q")
"""Handles on which every creature that runs gives something."""
FORMS = ("", "coroutine", "generator", "awaitable")
"""How a type executes; "" for one that does not."""


class Made:
    """An artefact: an object with a value, of which two are never the same."""

    def __init__(self, value: str) -> None:
        self.value = value


def summed(*parts: Any) -> str:
    """Give a short text that is another one for other parts."""
    return sha256(repr(parts).encode()).hexdigest()[:12]


class Habitat:
    """What the engine has asked of the creatures of one run.

    Attributes:
        begun: How often each node was executed from the top.
        resumed: How often each node went on with an answer.
        made: How often each ``(node, handle)`` was materialised.
        lent: The artefacts each node was given, by ``(asking node, source, handle)``.
    """

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.resumed: Counter[str] = Counter()
        self.made: Counter[tuple[str, str]] = Counter()
        self.lent: dict[tuple[str, str, str], list[Made]] = {}

    def registry(self) -> Registry:
        """Give a catalogue of all species that can exist."""
        return Registry(
            _species(form, makes, goes_on)(self)
            for form, makes, goes_on in product(FORMS, (False, True), (False, True))
            if form or makes
        )


def name_of(form: str, makes: bool, goes_on: bool) -> str:
    """Give the type that executes in a form, materialises, and goes on after a wait, or does not."""
    return "-".join(["zork", *filter(None, (form, makes and "maker", goes_on and "waiter"))])


class _Creature:
    """What all species share; which of it a type can do is decided by its class."""

    inputs = (Port("{name}", multiple=True), Port("{name}", channel=LINK, multiple=True))
    outputs = (Port("{name}"), Port("{name}", channel=LINK))
    template_fields = ()
    node_type: str

    def __init__(self, habitat: Habitat) -> None:
        self.habitat = habitat

    async def act(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext, answers: list[Any]
    ) -> ExecutionResult | Suspension:
        """Use everything that is linked, then ask, or give a value."""
        sums = await self.used(context)
        await asyncio.sleep(data.get("delay", 0))
        if len(answers) < data.get("asks", 0):
            return Suspension({"number": len(answers)}, [*answers])
        came = [(a.target_handle, a.source_id, a.value.value) for a in inputs.arrivals]
        value = summed(context.node_id, came, sums, answers)
        return ExecutionResult({h: DataValue("any", summed(value, h)) for h in GIVES})

    async def coroutine(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        self.habitat.begun[context.node_id] += 1
        return await self.act(data, inputs, context, [])

    def awaitable(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> Awaitable[ExecutionResult | Suspension]:
        return self.coroutine(data, inputs, context)

    async def generator(self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext) -> Any:
        yield NodeEvent(context.node_id, self.node_type, "hum", context.run_id, {"loud": True})
        yield await self.coroutine(data, inputs, context)

    async def going_on(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> ExecutionResult | Suspension:
        self.habitat.resumed[context.node_id] += 1
        return await self.act(data, inputs, context, [*state, answer])

    async def making(self, data: Any, output_handle: str, context: FlowContext) -> Made:
        self.habitat.made[context.node_id, output_handle] += 1
        came = [
            (a.target_handle, a.source_id, a.value.value)
            for a in context.runtime.arrivals(context.node_id)
        ]
        await asyncio.sleep(data.get("delay", 0))
        return Made(summed(context.node_id, output_handle, came, await self.used(context)))

    async def used(self, context: FlowContext) -> list[Any]:
        """Give what all links bring, by handle; they are asked for at the same time, each twice."""
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
                self.habitat.lent.setdefault(place, []).append(made)
        return [(handle, [made.value for made in task.result()]) for handle, task in tasks[::2]]


def _species(form: str, makes: bool, goes_on: bool) -> type[_Creature]:
    can: dict[str, Any] = {"node_type": name_of(form, makes, goes_on)}
    if form:
        can["execute"] = getattr(_Creature, form)
    if makes:
        can["materialize"] = _Creature.making
    if goes_on:
        can["resume"] = _Creature.going_on
    return type("Species", (_Creature,), can)


class Prophet:
    """Says what every node of a graph has to come to, by plain recursion."""

    def __init__(self, graph: Graph, answers: Mapping[str, list[Any]]) -> None:
        passive = {node.id for node in graph.nodes if not _executes(node)}
        self.linked = linked_ids(graph, passive)
        self._graph, self._answers = graph, answers
        self._known: dict[tuple[str, str], str] = {}
        self.asked_for: set[tuple[str, str]] = set()
        """Every ``(node, handle)`` that somebody needs made."""

    def outputs(self) -> dict[str, dict[str, str]]:
        """Give the values of every node that is executed, by handle."""
        return {
            node.id: {handle: self._given(node.id, handle) for handle in GIVES}
            for node in self._graph.nodes
            if node.id not in self.linked
        }

    def made(self, node: str, handle: str) -> str:
        """Give the value of an artefact."""
        self.asked_for.add((node, handle))
        key = node, f"~{handle}"
        if key not in self._known:
            self._known[key] = summed(node, handle, self._came(node), self._used(node))
        return self._known[key]

    def _given(self, node: str, handle: str) -> str:
        key = node, ">"
        if key not in self._known:
            answers = self._answers.get(node, [])
            self._known[key] = summed(node, self._came(node), self._used(node), answers)
        return summed(self._known[key], handle)

    def _came(self, node: str) -> list[Any]:
        return [
            (edge.target_handle, edge.source, self._given(edge.source, edge.source_handle))
            for edge in self._into(node, FLOW)
            if edge.source_handle in GIVES
        ]

    def _used(self, node: str) -> list[Any]:
        edges = self._into(node, LINK)
        return [
            (
                handle,
                [self.made(e.source, e.source_handle) for e in edges if e.target_handle == handle],
            )
            for handle in sorted({edge.target_handle for edge in edges})
        ]

    def _into(self, node: str, channel: str) -> list[Edge]:
        return [e for e in self._graph.edges if e.target == node and e.channel == channel]


def _executes(node: Node) -> bool:
    return any(form and form in node.type for form in FORMS)


async def lived(
    graph: Graph,
    registry: Registry,
    options: planwave.RunOptions,
    answers: Mapping[str, list[Any]],
    patience: int = 1,
) -> planwave.RunResult:
    """Run a graph of creatures; whatever asks is answered, once ``patience`` questions are open.

    Args:
        graph: A graph without faults.
        registry: Knows the creatures.
        options: How it runs.
        answers: What each node is answered, in order.
        patience: How many questions may be open before the newest is answered; when nothing else
            goes on, all are.
    """
    run = planwave.run(planwave.build(graph, registry=registry), options=options)
    waiting: list[planwave.Event] = []
    async for event in run:
        if event.type == "node.waiting":
            waiting.append(event)
        rests = event.type == "execution.paused"
        while waiting and (rests or len(waiting) >= patience):
            asked = waiting.pop()
            number = asked.data["request"]["number"]
            run.answer(asked.data["request_id"], answers[asked.path or ""][number])
    return await run
