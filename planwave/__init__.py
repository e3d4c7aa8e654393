"""planwave: from a goal to a watched, controllable, reproducible result.

Names below load on first use, so that ``import planwave`` costs next to nothing (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planwave.bootstrap import build, run, run_sync
    from planwave.client import AsyncClient, Client
    from planwave.errors import GraphInvalid, NodeError, PlanInvalid, PlanwaveError
    from planwave.events import Event
    from planwave.events.chat_chunks.encoder import chunks
    from planwave.executor.options import RunOptions
    from planwave.graph.builder import GraphBuilder
    from planwave.graph.inputs import Inputs
    from planwave.graph.model import DataValue, Edge, Graph, Node, Port
    from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
    from planwave.nodes.authoring.function import Result, node
    from planwave.nodes.authoring.node_type import LinkType, NodeData, NodeType, template
    from planwave.nodes.registry import Registry
    from planwave.service.library import BuiltGraph, Run, RunResult

__version__ = "0.1.0"

_MODULES = {
    "planwave.client": ("AsyncClient", "Client"),
    "planwave.errors": ("GraphInvalid", "NodeError", "PlanInvalid", "PlanwaveError"),
    "planwave.events": ("Event",),
    "planwave.events.chat_chunks.encoder": ("chunks",),
    "planwave.executor.options": ("RunOptions",),
    "planwave.graph.builder": ("GraphBuilder",),
    "planwave.graph.protocols": ("ExecutionResult", "FlowContext", "NodeEvent", "Suspension"),
    "planwave.graph.inputs": ("Inputs",),
    "planwave.graph.model": ("DataValue", "Edge", "Graph", "Node", "Port"),
    "planwave.bootstrap": ("build", "run", "run_sync"),
    "planwave.nodes.authoring.function": ("Result", "node"),
    "planwave.nodes.authoring.node_type": ("LinkType", "NodeData", "NodeType", "template"),
    "planwave.nodes.registry": ("Registry",),
    "planwave.service.library": ("BuiltGraph", "Run", "RunResult"),
}
_MODULE_OF = {name: home for home, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncClient",
    "BuiltGraph",
    "Client",
    "DataValue",
    "Edge",
    "Event",
    "ExecutionResult",
    "FlowContext",
    "Graph",
    "GraphBuilder",
    "GraphInvalid",
    "Inputs",
    "LinkType",
    "Node",
    "NodeData",
    "NodeError",
    "NodeEvent",
    "NodeType",
    "PlanInvalid",
    "PlanwaveError",
    "Port",
    "Registry",
    "Result",
    "Run",
    "RunOptions",
    "RunResult",
    "Suspension",
    "build",
    "chunks",
    "node",
    "run",
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
