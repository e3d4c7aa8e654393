"""planwave through its public Python API: one node type of our own, ``build``, ``run``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import planwave
from planwave.nodes.library.loop import Loop

NAME = "planwave"
MODE = "eager"


def version():
    return "planwave " + planwave.__version__


class Body:
    """A node that runs the workload's body on what arrived, in edge order."""

    node_type = "body"
    purpose = "Run the workload's node body."
    inputs = (planwave.Port("input", multiple=True),)
    outputs = (planwave.Port("output"),)

    def __init__(self, body):
        self.body = body

    async def execute(self, data, inputs, context):
        value = await self.body(context.node_id, [a.value.value for a in inputs.arrivals])
        return planwave.ExecutionResult({"output": planwave.DataValue("any", value)})


def document(dag):
    return {
        "nodes": [{"id": n, "type": "body"} for n in dag.nodes],
        "edges": [
            {"source": d, "target": n, "data": {"channel": "flow"}}
            for n in dag.nodes
            for d in dag.deps[n]
        ],
    }


def build(dag, body):
    return planwave.build(document(dag), registry=planwave.Registry([Body(body)]))


async def consume(graph, **options):
    """Run a graph, taking every event as a caller would."""
    last = None
    async for event in planwave.run(graph, **options):
        last = event
    assert last.type == "execution.completed", last


async def run(graph):
    await consume(graph)


async def durable_open(folder):
    from planwave.storage.sqlite.store import SqliteStore

    return SqliteStore.open(Path(folder))


async def durable_run(store, dag, body, uid):
    result = await planwave.run(build(dag, body), store=store)
    assert result.status == "completed", result.error


async def durable_close(store):
    await store.close()


class Item(Body):
    """A node that runs the body on the item of the loop it is in."""

    template_fields = ("item",)

    async def execute(self, data, inputs, context):
        value = await self.body(context.node_id, [data["item"]])
        return planwave.ExecutionResult({"output": planwave.DataValue("any", value)})


def build_each(count, parallel, body):
    inside = {"nodes": [{"id": "b", "type": "body", "data": {"item": "{{ item }}"}}], "edges": []}
    data = {"items": list(range(count)), "parallel": parallel, "body": inside}
    graph = {"nodes": [{"id": "loop", "type": "loop", "data": data}], "edges": []}
    return planwave.build(graph, registry=planwave.Registry([Loop, Item(body)]))


async def each(graph):
    """Run a loop, taking every event as a caller would; give what its items came to."""
    async for event in planwave.run(graph):
        if event.path == "loop" and event.type == "node.completed":
            values = event.data["outputs"]["output"]["value"]
    assert event.type == "execution.completed", event
    return values


class Tokens:
    node_type = "tokens"
    purpose = "Stream tokens."
    inputs = ()
    outputs = (planwave.Port("output"),)

    def __init__(self, count):
        self.count = count

    async def execute(self, data, inputs, context):
        node_id, run_id = context.node_id, context.run_id
        for _ in range(self.count):
            await asyncio.sleep(0)
            yield planwave.NodeEvent(node_id, "tokens", "delta", run_id, {"text": "tok"})
        yield planwave.ExecutionResult({"output": planwave.DataValue("text", "done")})


async def stream(n):
    graph = planwave.build(
        {"nodes": [{"id": "t", "type": "tokens"}], "edges": []},
        registry=planwave.Registry([Tokens(n)]),
    )
    async for event in planwave.run(graph):
        if event.type == "node.delta":
            yield event.data["text"]
