"""planwave: from a goal to a watched, controllable, reproducible result.

Names below load on first use, so that ``import planwave`` costs next to nothing (PEP 562). The exceptions
that programs catch most are among them; ``planwave.errors`` has all.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planwave import errors as errors
    from planwave.client import AsyncClient, Client
    from planwave.errors import (
        Conflict,
        ExecutionFailed,
        GraphInvalid,
        InputError,
        NodeError,
        NotFound,
        PermanentError,
        PlanInvalid,
        PlanwaveError,
    )
    from planwave.events import Event
    from planwave.events.chat_chunks import chunks
    from planwave.executor.node_api.runtime import GraphRuntime
    from planwave.executor.options import RunOptions
    from planwave.graph.builder import NodeRef
    from planwave.graph.inputs import Inputs
    from planwave.graph.model import DataValue, Edge, Graph, Node, Port, Retry
    from planwave.graph.plan import Plan
    from planwave.graph.protocols import (
        EffectByField,
        ExecutionResult,
        FlowContext,
        NodeEvent,
        Suspension,
    )
    from planwave.library import (
        Executor,
        build,
        executions,
        instrument,
        open,
        plan,
        plan_sync,
        run,
        run_goal,
        run_goal_sync,
        run_sync,
    )
    from planwave.nodes.agents.tool import Tool, ToolCallContext
    from planwave.nodes.agents.tool_function import tool
    from planwave.nodes.authoring.function import Collected, Result, node
    from planwave.nodes.authoring.node_type import (
        LinkType,
        NodeData,
        NodeType,
        ResumableType,
        template,
    )
    from planwave.nodes.builder import GraphBuilder
    from planwave.nodes.registry import Registry
    from planwave.planner.planner import Planner
    from planwave.service.library.graphs import BuiltGraph
    from planwave.service.library.proposals import Proposal
    from planwave.service.library.results import Failure, Missing, RunResult
    from planwave.service.library.runs import Run
    from planwave.service.library.sources import StoredExecution
    from planwave.storage.postgres.store import PostgresStore
    from planwave.storage.sqlite.memory import MemoryStore
    from planwave.storage.sqlite.store import SqliteStore

__version__ = "0.1.0"

_MODULES = {
    "planwave.client": ("AsyncClient", "Client"),
    "planwave.errors": (
        "Conflict",
        "ExecutionFailed",
        "GraphInvalid",
        "InputError",
        "NodeError",
        "NotFound",
        "PermanentError",
        "PlanInvalid",
        "PlanwaveError",
    ),
    "planwave.events": ("Event",),
    "planwave.events.chat_chunks": ("chunks",),
    "planwave.executor.node_api.runtime": ("GraphRuntime",),
    "planwave.executor.options": ("RunOptions",),
    "planwave.graph.builder": ("NodeRef",),
    "planwave.graph.protocols": (
        "EffectByField",
        "ExecutionResult",
        "FlowContext",
        "NodeEvent",
        "Suspension",
    ),
    "planwave.graph.inputs": ("Inputs",),
    "planwave.graph.model": ("DataValue", "Edge", "Graph", "Node", "Port", "Retry"),
    "planwave.graph.plan": ("Plan",),
    "planwave.library": (
        "Executor",
        "build",
        "executions",
        "instrument",
        "open",
        "plan",
        "plan_sync",
        "run",
        "run_goal",
        "run_goal_sync",
        "run_sync",
    ),
    "planwave.nodes.agents.tool": ("Tool", "ToolCallContext"),
    "planwave.nodes.agents.tool_function": ("tool",),
    "planwave.nodes.authoring.function": ("Collected", "Result", "node"),
    "planwave.nodes.authoring.node_type": (
        "LinkType",
        "NodeData",
        "NodeType",
        "ResumableType",
        "template",
    ),
    "planwave.nodes.builder": ("GraphBuilder",),
    "planwave.nodes.registry": ("Registry",),
    "planwave.planner.planner": ("Planner",),
    "planwave.service.library.graphs": ("BuiltGraph",),
    "planwave.service.library.proposals": ("Proposal",),
    "planwave.service.library.results": ("Failure", "Missing", "RunResult"),
    "planwave.service.library.runs": ("Run",),
    "planwave.service.library.sources": ("StoredExecution",),
    "planwave.storage.postgres.store": ("PostgresStore",),
    "planwave.storage.sqlite.memory": ("MemoryStore",),
    "planwave.storage.sqlite.store": ("SqliteStore",),
}
_MODULE_OF = {name: home for home, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncClient",
    "BuiltGraph",
    "Client",
    "Collected",
    "Conflict",
    "DataValue",
    "Edge",
    "EffectByField",
    "Event",
    "ExecutionFailed",
    "ExecutionResult",
    "Executor",
    "Failure",
    "FlowContext",
    "Graph",
    "GraphBuilder",
    "GraphInvalid",
    "GraphRuntime",
    "InputError",
    "Inputs",
    "LinkType",
    "MemoryStore",
    "Missing",
    "Node",
    "NodeData",
    "NodeError",
    "NodeEvent",
    "NodeRef",
    "NodeType",
    "NotFound",
    "PermanentError",
    "Plan",
    "PlanInvalid",
    "Planner",
    "PlanwaveError",
    "Port",
    "PostgresStore",
    "Proposal",
    "Registry",
    "Result",
    "ResumableType",
    "Retry",
    "Run",
    "RunOptions",
    "RunResult",
    "SqliteStore",
    "StoredExecution",
    "Suspension",
    "Tool",
    "ToolCallContext",
    "build",
    "chunks",
    "errors",
    "executions",
    "instrument",
    "node",
    "open",
    "plan",
    "plan_sync",
    "run",
    "run_goal",
    "run_goal_sync",
    "run_sync",
    "template",
    "tool",
]


if not TYPE_CHECKING:  # a type checker would take every name for an attribute

    def __getattr__(name: str) -> Any:
        if name == "errors":
            return import_module("planwave.errors")
        home = _MODULE_OF.get(name)
        if home is None:
            message = f"module 'planwave' has no attribute {name!r}"
            if name[:1].isupper() and hasattr(import_module("planwave.errors"), name):
                message += f"; it is planwave.errors.{name}"
            raise AttributeError(message, name=name, obj=sys.modules[__name__])
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
