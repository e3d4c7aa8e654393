"""planwave: from a goal to a watched, controllable, reproducible result.

Names below load on first use, so that ``import planwave`` costs next to nothing (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planwave.client import AsyncClient, Client
    from planwave.errors import (
        Conflict,
        ExecutionFailed,
        Forbidden,
        Gone,
        GraphInvalid,
        InputError,
        InvalidOperation,
        LimitExceeded,
        McpError,
        NodeError,
        NotFound,
        OutboundError,
        PermanentError,
        PlanInvalid,
        PlanwaveError,
        PreconditionFailed,
        PreconditionRequired,
        ProviderError,
        QueueFull,
        QuotaExceeded,
        SchemaTooNew,
        ShuttingDown,
        SlowConsumer,
        StaleEpoch,
        StoreError,
        TooManyRequests,
        Unauthorized,
        UnavailableProvider,
        UnknownModel,
        UnknownProvider,
        Unreachable,
    )
    from planwave.events import Event
    from planwave.events.chat_chunks import chunks
    from planwave.executor.node_api.runtime import GraphRuntime
    from planwave.executor.options import RunOptions
    from planwave.graph.builder import GraphBuilder
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
        open,
        plan,
        plan_async,
        run,
        run_goal,
        run_goal_async,
        run_sync,
    )
    from planwave.nodes.agents.tool import Tool, ToolCallContext, ToolError
    from planwave.nodes.agents.tool_function import tool
    from planwave.nodes.authoring.function import Collected, Result, node
    from planwave.nodes.authoring.node_type import (
        LinkType,
        NodeData,
        NodeType,
        ResumableType,
        template,
    )
    from planwave.nodes.registry import Registry
    from planwave.planner.planner import Planner
    from planwave.service.executions.answers import InvalidAnswer
    from planwave.service.executions.fork import InvalidChanges
    from planwave.service.library.graphs import BuiltGraph
    from planwave.service.library.results import Failure, RunResult
    from planwave.service.library.runs import Run
    from planwave.storage.sqlite.sql_store import MemoryStore
    from planwave.storage.sqlite.store import SqliteStore

__version__ = "0.1.0"

_MODULES = {
    "planwave.client": ("AsyncClient", "Client"),
    "planwave.errors": (
        "Conflict",
        "ExecutionFailed",
        "Forbidden",
        "Gone",
        "GraphInvalid",
        "InputError",
        "InvalidOperation",
        "LimitExceeded",
        "McpError",
        "NodeError",
        "NotFound",
        "OutboundError",
        "PermanentError",
        "PlanInvalid",
        "PlanwaveError",
        "PreconditionFailed",
        "PreconditionRequired",
        "ProviderError",
        "QueueFull",
        "QuotaExceeded",
        "SchemaTooNew",
        "ShuttingDown",
        "SlowConsumer",
        "StaleEpoch",
        "StoreError",
        "TooManyRequests",
        "Unauthorized",
        "UnavailableProvider",
        "UnknownModel",
        "UnknownProvider",
        "Unreachable",
    ),
    "planwave.events": ("Event",),
    "planwave.events.chat_chunks": ("chunks",),
    "planwave.executor.node_api.runtime": ("GraphRuntime",),
    "planwave.executor.options": ("RunOptions",),
    "planwave.graph.builder": ("GraphBuilder",),
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
        "open",
        "plan",
        "plan_async",
        "run",
        "run_goal",
        "run_goal_async",
        "run_sync",
    ),
    "planwave.nodes.agents.tool": ("Tool", "ToolCallContext", "ToolError"),
    "planwave.nodes.agents.tool_function": ("tool",),
    "planwave.nodes.authoring.function": ("Collected", "Result", "node"),
    "planwave.nodes.authoring.node_type": (
        "LinkType",
        "NodeData",
        "NodeType",
        "ResumableType",
        "template",
    ),
    "planwave.nodes.registry": ("Registry",),
    "planwave.planner.planner": ("Planner",),
    "planwave.service.executions.answers": ("InvalidAnswer",),
    "planwave.service.executions.fork": ("InvalidChanges",),
    "planwave.service.library.graphs": ("BuiltGraph",),
    "planwave.service.library.results": ("Failure", "RunResult"),
    "planwave.service.library.runs": ("Run",),
    "planwave.storage.sqlite.sql_store": ("MemoryStore",),
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
    "Forbidden",
    "Gone",
    "Graph",
    "GraphBuilder",
    "GraphInvalid",
    "GraphRuntime",
    "InputError",
    "Inputs",
    "InvalidAnswer",
    "InvalidChanges",
    "InvalidOperation",
    "LimitExceeded",
    "LinkType",
    "McpError",
    "MemoryStore",
    "Node",
    "NodeData",
    "NodeError",
    "NodeEvent",
    "NodeType",
    "NotFound",
    "OutboundError",
    "PermanentError",
    "Plan",
    "PlanInvalid",
    "Planner",
    "PlanwaveError",
    "Port",
    "PreconditionFailed",
    "PreconditionRequired",
    "ProviderError",
    "QueueFull",
    "QuotaExceeded",
    "Registry",
    "Result",
    "ResumableType",
    "Retry",
    "Run",
    "RunOptions",
    "RunResult",
    "SchemaTooNew",
    "ShuttingDown",
    "SlowConsumer",
    "SqliteStore",
    "StaleEpoch",
    "StoreError",
    "Suspension",
    "TooManyRequests",
    "Tool",
    "ToolCallContext",
    "ToolError",
    "Unauthorized",
    "UnavailableProvider",
    "UnknownModel",
    "UnknownProvider",
    "Unreachable",
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
    "tool",
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
