"""A context for running one node without the engine: a fake runtime over one graph, models that are functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planwave.expressions import compile_template
from planwave.graph.inputs import Inputs
from planwave.graph.model import Arrival, Channel, DataValue, Edge, Graph, Json, Node
from planwave.graph.plan import Plan
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeEvent,
    Suspension,
    WrittenBy,
)
from planwave.nodes.registry import Registry, default_registry
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import Delta, ModelReply, ModelRequest
from tests.support.llm.fake_providers import ListedProviders
from tests.support.llm.watched_model import WatchedModel

ReplyFunction = Callable[[ModelRequest], Iterable[str | Delta | ModelReply]]
"""Makes the pieces of a reply."""


class _VariableLookup:
    """What expressions may name, by name."""

    def __init__(self, variables: Mapping[str, Json]) -> None:
        self._variables = variables

    def lookup(self, root: str) -> Json:
        return self._variables[root]


@dataclass
class FakeRuntime:
    """The runtime of one node in a graph; ``links`` has the artifacts of its link sources."""

    graph: Graph
    links: Mapping[tuple[str, str], list[Any]] = field(default_factory=dict)

    def get_node(self, node_id: str) -> Node:
        return self.graph.by_id.get(node_id) or Node(node_id, "other", node_id)

    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> list[Edge]:
        return [
            edge
            for edge in self.graph.edges
            if edge.target == node_id
            and channel in (None, edge.channel)
            and target_handle in (None, edge.target_handle)
        ]

    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> list[Edge]:
        return [
            edge
            for edge in self.graph.edges
            if edge.source == node_id
            and channel in (None, edge.channel)
            and source_handle in (None, edge.source_handle)
        ]

    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]:
        return ()

    async def resolve_links(self, node_id: str, target_handle: str) -> list[Any]:
        return self.links[(node_id, target_handle)]

    def cache_get(self, namespace: str, key: str) -> Any:
        return None

    def cache_set(self, namespace: str, key: str, value: Any) -> None:
        return None

    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
        written_by: WrittenBy | None = None,
    ) -> Mapping[str, Mapping[str, DataValue]]:
        return {}

    async def run_linked(
        self, key: str, node_id: str, inputs: Mapping[str, Json]
    ) -> Mapping[str, DataValue]:
        return {}

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        return await fn()

    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json:
        template = compile_template(value)
        return (
            value if template is None else await template.resolve(_VariableLookup(variables), None)
        )

    @property
    def variables(self) -> Mapping[str, Json]:
        return {}

    @property
    def written_by(self) -> WrittenBy | None:
        return None

    @property
    def catalogue(self) -> Registry:
        return default_registry()


class OneStepPlanner:
    """Plans any goal as one text node; records the requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def request_for(self, prompt: str, provider: str, model: str, **rules: Any) -> ModelRequest:
        return ModelRequest(provider, model, prompt, system=f"{sorted(rules.items())}")

    async def create_plan(
        self, prompt: str, provider: str | None = None, model: str | None = None, **rules: Any
    ) -> Plan:
        self.requests.append({"prompt": prompt, "provider": provider, "model": model, **rules})
        graph = Graph((Node("say", "text", "Say", data={"text": f"done: {prompt}"}),), ())
        usage = {"input_tokens": 3, "output_tokens": 5, "cost_usd": 0.5, "estimated": False}
        return Plan(
            "p", prompt, "Say it", graph, "h", "2026-01-01T00:00:00+00:00",
            provider=provider, model=model, attempts=[{"usage": usage}],
        )  # fmt: skip


def context_for(
    node: Node,
    *,
    edges: Sequence[Edge] = (),
    services: NodeServices | None = None,
    links: Mapping[tuple[str, str], list[Any]] | None = None,
) -> FlowContext:
    """Return the context of one node in a graph of this node and dangling edges."""
    runtime = FakeRuntime(Graph((node,), tuple(edges)), links or {})
    return FlowContext(node.id, "run-1", node.id, 1, None, None, runtime, services)


def services_with(
    reply: ReplyFunction, providers: ListedProviders | None = None, **options: Any
) -> tuple[NodeServices, WatchedModel]:
    """Return node services whose models reply with a function, and these models."""
    models = WatchedModel(lambda request: iter(reply(request)))
    chosen = providers or ListedProviders({"openai": ["m", "n"]})
    return NodeServices(models, chosen, **{"planner": OneStepPlanner(), **options}), models


def make_inputs(*values: Any, handle: str = "input") -> Inputs:
    """Return inputs with these values from nodes ``s0``, ``s1`` … in order.

    A value may be a ``(handle, value)`` pair.
    """
    pairs = [value if isinstance(value, tuple) else (handle, value) for value in values]
    return Inputs(
        tuple(
            Arrival(f"e{i}", f"s{i}", f"Source {i}", "output", to, DataValue("any", value))
            for i, (to, value) in enumerate(pairs)
        )
    )


async def last_item(execution: Any) -> ExecutionResult | Suspension:
    """Await or exhaust what ``execute`` returned; return the result or the suspension."""
    if not hasattr(execution, "__aiter__"):
        return await execution
    *_, last = [item async for item in execution]
    return last


async def result_and_events(execution: Any) -> tuple[ExecutionResult, list[NodeEvent]]:
    """Await or exhaust what ``execute`` returned; return the result and all events."""
    if not hasattr(execution, "__aiter__"):
        result = await execution
        assert isinstance(result, ExecutionResult)
        return result, list(result.events)
    items = [item async for item in execution]
    assert isinstance(items[-1], ExecutionResult)
    events = [item for item in items[:-1] if isinstance(item, NodeEvent)]
    assert len(events) == len(items) - 1
    return items[-1], [*events, *items[-1].events]
