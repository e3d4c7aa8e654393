"""A graph that starts inside a plan of a model is judged by the rules for such plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import planwave
from planwave.errors import GraphInvalid
from planwave.graph.reading.documents import read_graph
from planwave.nodes.authoring.node_type import NodeData, NodeType
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.graph.builders import make_plan

GIVEN = {"nodes": [{"id": "x", "type": "number", "data": {"value": 7}}], "edges": []}
"""Plans of models have no nodes of the type ``number``."""
TAKEN = {"nodes": [{"id": "x", "type": "text", "data": {"text": "seven"}}], "edges": []}


class RunsData(NodeType):
    """A type of the operator that runs whatever graph arrives."""

    node_type = "runs_data"

    class Data(NodeData):
        """A graph that no check sees."""

        given: Any = None

    async def run(self, data: Any, inputs: Any, context: Any) -> Any:
        graph, _ = read_graph(data.given)
        outputs = await context.runtime.run_graph("given", graph, {})
        return outputs["x"]["output"].value


REGISTRY = Registry([*LIBRARY, RunsData])


def holding(given: Any, *around: str) -> dict[str, Any]:
    """Return a graph that runs another one as data, inside these nodes that run graphs."""
    graph: dict[str, Any] = {
        "nodes": [{"id": "n", "type": "runs_data", "data": {"given": given}}], "edges": [],
    }  # fmt: skip
    for name in around:
        data = {"items": [1], "body": graph}
        graph = {"nodes": [{"id": "n", "type": name, "data": data}], "edges": []}
    return graph


async def run(document: dict[str, Any], author: str | None) -> Any:
    plan = replace(make_plan(read_graph(document)[0]), provider=author)
    return await planwave.run(plan, registry=REGISTRY, check=False)


@pytest.mark.parametrize("around", [(), ("loop",), ("loop", "loop")])
async def test_a_graph_that_comes_as_data_is_judged_where_it_starts(
    around: tuple[str, ...],
) -> None:
    refused = await run(holding(GIVEN, *around), "openai")
    assert refused.status == "failed"
    assert "plans of models may not use" in str(refused.error)
    assert (await run(holding(TAKEN, *around), "openai")).status == "completed"
    assert (await run(holding(GIVEN, *around), None)).status == "completed", "a person's graph"


async def test_a_graph_that_stands_in_the_plan_is_judged_with_it() -> None:
    loop = {
        "nodes": [{"id": "n", "type": "loop", "data": {"items": [1], "body": GIVEN}}],
        "edges": [],
    }
    with pytest.raises(GraphInvalid, match="'number', which plans of models may not use"):
        await run(loop, "openai")
    assert (await run(loop, None)).status == "completed", "a person's graph"
