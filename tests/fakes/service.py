"""A service over memory, with a scripted planner and nodes that a test can hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planwave.graph.capabilities import ExecutionResult, FlowContext
from planwave.graph.model import Edge, Graph, Node
from planwave.graph.plan import Plan, graph_hash
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.registry import Registry
from planwave.planner.progress import PlanProgress
from planwave.service.rooms import ServiceDependencies
from planwave.settings import Limits
from planwave.storage.memory import MemoryStore
from tests.fakes.planning import FakeProviders, library_registry
from tests.fakes.wires import make_edge


class HeldNode:
    """A node type that says it has started and waits until it is let go."""

    node_type = "held"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        self.started.set()
        await self.release.wait()
        return ExecutionResult({"output": DataValue("text", f"{context.node_id} let go")})


class FailingNode:
    """A node type that fails."""

    node_type = "broken"

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        raise ValueError("it broke")


@dataclass
class FixedPlanner:
    """A planner that gives what a test made, and tells what a test says."""

    plan: Plan
    progress: Sequence[PlanProgress] = ()
    goals: list[str] = field(default_factory=list)

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanProgress], None] | None = None,
    ) -> Plan:
        self.goals.append(prompt)
        for each in self.progress:
            if on_progress is not None:
                on_progress(each)
        return replace(self.plan, user_prompt=prompt)


def text_node(node_id: str, text: str = "", **more: Any) -> Node:
    """Make a ``text`` node."""
    return Node(node_id, "text", more.pop("name", node_id), data={"text": text or node_id}, **more)


def make_graph(*nodes: Node, edges: Sequence[tuple[str, str] | Edge] = ()) -> Graph:
    """Make a graph; pairs are flow edges."""
    made = tuple(e if isinstance(e, Edge) else make_edge(*e) for e in edges)
    return Graph(tuple(nodes), made)


def make_plan(graph: Graph, plan_id: str = "01900000-0000-7000-8000-000000000001") -> Plan:
    """Make a plan of a graph."""
    return Plan(plan_id, "a goal", "A title", graph, graph_hash(graph), "2026-01-01T00:00:00+00:00")


def dependencies(
    graph: Graph | None = None,
    *,
    directory: Path | None = None,
    types: Sequence[Any] = (),
    store: Any = None,
    **more: Any,
) -> ServiceDependencies:
    """Make the parts of a service; ``types`` come on top of the node library."""
    catalogue: Registry = library_registry()
    for each in types:
        catalogue.register(each)
    return ServiceDependencies(
        store=store or MemoryStore(),
        catalogue=catalogue,
        providers=FakeProviders(),
        planner=more.pop("planner", None) or FixedPlanner(make_plan(graph or make_graph(text_node("a")))),
        limits=more.pop("limits", Limits()),
        directory=directory,
        **more,
    )
