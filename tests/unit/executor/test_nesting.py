"""Graphs that run inside nodes: what they see, what is known of them, when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from planwave.executor import nesting
from planwave.graph.model import Graph, Node
from tests.fakes.catalogue import graph_of
from tests.fakes.stones import Rig, gives
from tests.fakes.virtual_loop import virtual_time

Inputs = Context = Any


def reading(node_id: str, **data: str) -> Graph:
    """A graph of one node with these expressions."""
    return Graph((Node(node_id, "step", node_id, data=data),), ())


class Reader:
    """What a node type is that gives its data, resolved."""

    node_type = "step"

    def __init__(self, rig: Rig) -> None:
        self._stone = rig.program.steps[0].implementation

    async def execute(self, data: Mapping[str, Any], inputs: Inputs, context: Context) -> Any:
        if context.node_id in self._stone.acts:
            return await self._stone.acts[context.node_id](inputs, context)
        return gives(dict(data))


# -- names


@virtual_time
async def test_expressions_see_the_names_of_all_graphs_around_them() -> None:
    deepest = reading("r", text="{{ goal }} {{ item }} {{ index }} {{ n }}")
    got: list[Any] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        for index, item in enumerate("xy"):
            variables = {"item": item, "index": index}
            middle = graph_of("inner")
            await context.runtime.run_graph(f"{index}", middle, {}, variables=variables)
        return gives(1)

    async def inner(inputs: Inputs, context: Context) -> Any:
        for n in (7, 8):  # the inner name hides that of the graph around it
            own = {"n": n, "index": n}
            outputs = await context.runtime.run_graph(f"{n}", deepest, {}, variables=own)
            got.append(outputs["r"]["output"].value["text"])
        outputs = await context.runtime.run_graph("none", reading("r", text="{{ index }}"), {})
        got.append(outputs["r"]["output"].value["text"])
        return gives(1)

    rig = Rig(graph_of("outer"), {"outer": outer, "inner": inner}, variables={"goal": "g"})
    reader = Reader(rig)
    rig.program.catalogue.implementation = lambda node_type: reader  # type: ignore[method-assign]
    assert await rig.run() == "completed", rig.execution.error
    assert got == ["g x 7 7", "g x 8 8", 0, "g y 7 7", "g y 8 8", 1]


# -- how a graph runs


@virtual_time
async def test_a_graph_is_made_ready_once_however_often_it_runs(monkeypatch: Any) -> None:
    made: list[Graph] = []
    original = nesting.Program

    def counting(graph: Graph, catalogue: Any) -> Any:
        made.append(graph)
        return original(graph, catalogue)

    monkeypatch.setattr(nesting, "Program", counting)
    body = graph_of("i j", "i>j")

    async def a(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(context.runtime.run_graph(f"{n}", body, {}))
        return gives(1)

    assert await Rig(graph_of("a b", "a>b"), {"a": a, "b": a}).run() == "completed"
    assert made == [body]
