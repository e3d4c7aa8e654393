"""planwave through its public Python API: one node type of our own, ``build``, ``run``."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from workloads import no_op

import planwave
from planwave.bootstrap import open_models, open_providers, open_service
from planwave.nodes.agents.tool import Tool
from planwave.nodes.library.agent import Agent
from planwave.nodes.library.loop import Loop
from planwave.nodes.services import NodeServices
from planwave.service.executions.execution_service import UnstoredPlan
from planwave.settings import Settings

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


class Adder:
    """A node that gives the workload's function as a tool."""

    node_type = "adder"
    outputs = (planwave.Port("tools", "tool", channel="link"),)

    def __init__(self, function):
        self.function = function

    async def materialize(self, data, output_handle, context):
        async def call(arguments, call_context):
            return await self.function(**arguments)

        numbers = {name: {"type": "integer"} for name in ("a", "b")}
        schema = {"type": "object", "properties": numbers, "required": ["a", "b"]}
        return Tool("add", "Add two numbers.", schema, call)


def agent_open(base_url, model, prompt, tool, store=None):
    settings = Settings(openai_api_key="none", openai_base_url=base_url)
    providers, _ = open_providers(settings)
    models = open_models(settings, providers, store)
    data = {"provider": "openai", "model": model, "userPrompt": prompt}
    link = {"sourceHandle": "tools", "targetHandle": "tools", "data": {"channel": "link"}}
    graph = planwave.build(
        {
            "nodes": [{"id": "tool", "type": "adder"}, {"id": "a", "type": "agent", "data": data}],
            "edges": [{"source": "tool", "target": "a", **link}],
        },
        registry=planwave.Registry([Agent, Adder(tool)], providers=providers),
    )
    return graph, NodeServices(models, providers, recorder=store), store


async def agent_open_durable(folder, *given):
    return agent_open(*given, store=await durable_open(folder))


async def agent_turn(opened):
    """Run an agent, taking every event as a caller would; give its text."""
    graph, services, store = opened
    async for event in planwave.run(graph, services=services, store=store):
        if event.path == "a" and event.type == "node.completed":
            text = event.data["outputs"]["output"]["value"]
    assert event.type == "execution.completed", event
    return text


async def agent_close(opened):
    _, services, store = opened
    await services.models.close()
    if store is not None:
        await store.close()


@asynccontextmanager
async def service_open(folder, database_url=None):
    """Open a service over a folder or a database, with the limits that it has by default."""
    service = open_service(Settings(storage_dir=Path(folder), database_url=database_url))
    service.catalogue.register(Body(no_op), replace=True)
    async with service:
        yield service


async def service_run(service, dag, count):
    """Start so many executions together, and wait for their ends."""
    plan = UnstoredPlan(await service.plans.read(document(dag)))
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(service.executions.execute(plan)) for _ in range(count)]
    ended = [await service.executions.wait(each.result().execution_id) for each in started]
    assert {each.status for each in ended} == {"completed"}, ended
