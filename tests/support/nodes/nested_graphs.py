"""Runs one node with a nested graph, with node types that record what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import planwave
from planwave.errors import NodeError
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.reuse.result_key import dependencies, result_key
from planwave.executor.state import Attempt
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.service.library.results import RunResult
from planwave.service.library.runs import Run
from planwave.settings import Limits
from tests.support.nodes.node_context import services_with


class WorkNode:
    """Takes ``seconds``, then returns ``value``; ``fails`` makes it fail. Counts running nodes."""

    node_type = "work"
    template_fields = None

    def __init__(self) -> None:
        self.values: list[Json] = []
        self.running = self.max_running = self.cancelled = 0

    async def execute(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        self.values.append(data.get("value"))
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            await asyncio.sleep(data.get("seconds", 0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        if data.get("fails"):
            raise NodeError(f"{data.get('value')} went wrong", hint="mend it")
        return ExecutionResult({"output": DataValue("any", data.get("value"))})


def node_document(node_id: str, kind: str, **data: Any) -> dict[str, Any]:
    """Return a node of a graph document."""
    return {"id": node_id, "type": kind, "data": data}


def graph_document(*nodes: dict[str, Any], edges: Sequence[tuple[str, ...]] = ()) -> dict[str, Any]:
    """Return a graph document; an edge is source, target, and perhaps their handles."""
    names = ("source", "target", "sourceHandle", "targetHandle")
    flow = {"data": {"channel": "flow"}}
    return {
        "nodes": list(nodes),
        "edges": [{**dict(zip(names, edge, strict=False)), **flow} for edge in edges],
    }


def registry_with(*types: Any, limits: Limits | None = None) -> Registry:
    """Return a registry of the library and some more types."""
    return Registry([*LIBRARY, *types]).with_providers(None, limits=limits)


async def run_to_end(
    graph: Mapping[str, Any], *types: Any, services: NodeServices | None = None, **options: Any
) -> RunResult:
    """Run a graph to its end."""
    if services is None:
        services, _ = services_with(lambda _: ["reply"])
    return await with_long_render_time(
        planwave.run(
            graph, registry=registry_with(*types), services=services, check=False, **options
        )
    )


def with_long_render_time(run: Run) -> Run:
    """Raise the time limit of templates, which a busy machine may exceed."""
    run.environment.renderer.wall_s = 60.0
    return run


async def run_node(kind: str, *types: Any, **data: Any) -> Any:
    """Run one node; return its outputs by handle, or code and message of the error."""
    return values_or_error(
        await run_to_end(graph_document(node_document("n", kind, **data)), *types)
    )


def values_or_error(result: RunResult) -> Any:
    """Return the outputs of the node ``n`` by handle, or code and message of the run's error."""
    if result.error is not None:
        return result.error["code"], result.error["message"]
    return {handle: value.value for handle, value in result.outputs["n"].items()}


def errors_of(
    graph: Mapping[str, Any], *types: Any, limits: Limits | None = None
) -> list[tuple[str, str]]:
    """Return code and pointer of every error in a graph."""
    found = errors_in(diagnostics_of(graph, *types, limits=limits))
    return [(each.code, each.pointer) for each in found]


def diagnostics_of(
    graph: Mapping[str, Any], *types: Any, limits: Limits | None = None
) -> list[Diagnostic]:
    """Return all findings of a graph."""
    return read_and_check(graph, registry_with(*types, limits=limits), limits)[1]


class FakeFlowStore:
    """Flows by id, each the list of its versions; records the requests for them."""

    def __init__(self, **flows: Sequence[Mapping[str, Any]]) -> None:
        self.flows = flows
        self.requests: list[tuple[str, str | None]] = []

    async def get(self, flow_id: str, version: str | None) -> Any:
        self.requests.append((flow_id, version))
        versions = self.flows.get(flow_id)
        if versions is None:
            raise NodeError(f"no flow {flow_id!r}", code="unknown-flow")
        chosen = versions[-1] if version is None else versions[int(version)]
        return read_graph(chosen)[0]

    async def find(self, name: str) -> str:
        """Return the id of a flow, which is its name in small letters."""
        return name.lower()


async def run_with_answers(
    graph: Mapping[str, Any], decide: Callable[[Any], Json], *types: Any, **options: Any
) -> RunResult:
    """Run a graph to its end; each request is answered by a decision over what it asks."""
    services, _ = services_with(lambda _: ["reply"])
    run = with_long_render_time(
        planwave.run(
            graph, registry=registry_with(*types), services=services, check=False, **options
        )
    )
    async for event in run:
        if event.type == "node.waiting":
            decision = decide(event.data["request"])
            run.answer(event.data["request_id"], {"decision": decision})
    return run.result()


async def result_key_of(graph: Mapping[str, Any], node_id: str, **outputs: Json) -> str:
    """Return all that a node's result depends on, given the outputs of the nodes before it."""
    program = Program(read_graph(graph)[0], registry_with())
    variables = {"goal": "a goal", "trigger": None}
    host = NodeHost("x1", variables, None, None, None, None)
    graph_run = create_graph_run(program, host, RunOptions(), {})
    values = graph_run.values
    for source, value in outputs.items():
        given = {"output": DataValue("any", value)}
        values.outputs[program.topology.index[source]] = given
    node = program.topology.index[node_id]
    besides = await dependencies(host, Attempt(graph_run, node))
    return f"{await result_key(host, values, node)} {besides}"
