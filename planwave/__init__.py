"""planwave: from a goal to a watched, controllable, reproducible result.

Names below load on first use, so that ``import planwave`` costs next to nothing (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planwave.client import AsyncClient, Client
    from planwave.errors import (
        ExecutionFailed,
        GraphInvalid,
        NodeError,
        PermanentError,
        PlanInvalid,
        PlanwaveError,
    )
    from planwave.events import Event
    from planwave.events.chat_chunks.encoder import chunks
    from planwave.executor.node_api.runtime import GraphRuntime
    from planwave.executor.options import RunOptions
    from planwave.graph.builder import GraphBuilder
    from planwave.graph.inputs import Inputs
    from planwave.graph.model import DataValue, Edge, Graph, Node, Port
    from planwave.graph.plan import Plan
    from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
    from planwave.library import (
        Executor,
        build,
        open,
        plan,
        plan_async,
        run,
        run_goal,
        run_goal_async,
        run_sync,
    )
    from planwave.nodes.authoring.function import Result, node
    from planwave.nodes.authoring.node_type import LinkType, NodeData, NodeType, template
    from planwave.nodes.registry import Registry
    from planwave.planner.planner import Planner
    from planwave.service.library.graphs import BuiltGraph
    from planwave.service.library.results import RunResult
    from planwave.service.library.runs import Run
    from planwave.storage.memory import MemoryStore
    from planwave.storage.sqlite.store import SqliteStore

__version__ = "0.1.0"

_MODULES = {
    "planwave.client": ("AsyncClient", "Client"),
    "planwave.errors": (
        "ExecutionFailed",
        "GraphInvalid",
        "NodeError",
        "PermanentError",
        "PlanInvalid",
        "PlanwaveError",
    ),
    "planwave.events": ("Event",),
    "planwave.events.chat_chunks.encoder": ("chunks",),
    "planwave.executor.node_api.runtime": ("GraphRuntime",),
    "planwave.executor.options": ("RunOptions",),
    "planwave.graph.builder": ("GraphBuilder",),
    "planwave.graph.protocols": ("ExecutionResult", "FlowContext", "NodeEvent", "Suspension"),
    "planwave.graph.inputs": ("Inputs",),
    "planwave.graph.model": ("DataValue", "Edge", "Graph", "Node", "Port"),
    "planwave.graph.plan": ("Plan",),
    "planwave.library": (
        "Executor",
        "build",
        "open",
        "plan",
        "plan_async",
        "run",
        "run_goal",
        "run_goal_async",
        "run_sync",
    ),
    "planwave.nodes.authoring.function": ("Result", "node"),
    "planwave.nodes.authoring.node_type": ("LinkType", "NodeData", "NodeType", "template"),
    "planwave.nodes.registry": ("Registry",),
    "planwave.planner.planner": ("Planner",),
    "planwave.service.library.graphs": ("BuiltGraph",),
    "planwave.service.library.results": ("RunResult",),
    "planwave.service.library.runs": ("Run",),
    "planwave.storage.memory": ("MemoryStore",),
    "planwave.storage.sqlite.store": ("SqliteStore",),
}
_MODULE_OF = {name: home for home, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncClient",
    "BuiltGraph",
    "Client",
    "DataValue",
    "Edge",
    "Event",
    "ExecutionFailed",
    "ExecutionResult",
    "Executor",
    "FlowContext",
    "Graph",
    "GraphBuilder",
    "GraphInvalid",
    "GraphRuntime",
    "Inputs",
    "LinkType",
    "MemoryStore",
    "Node",
    "NodeData",
    "NodeError",
    "NodeEvent",
    "NodeType",
    "PermanentError",
    "Plan",
    "PlanInvalid",
    "Planner",
    "PlanwaveError",
    "Port",
    "Registry",
    "Result",
    "Run",
    "RunOptions",
    "RunResult",
    "SqliteStore",
    "Suspension",
    "build",
    "chunks",
    "node",
    "open",
    "plan",
    "plan_async",
    "run",
    "run_goal",
    "run_goal_async",
    "run_sync",
    "template",
]


def __getattr__(name: str) -> Any:
    home = _MODULE_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'planwave' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
