"""Calls of tools without an agent."""

from __future__ import annotations

from typing import Any

from planwave.graph.model import Json, Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.services import NodeServices
from tests.support.nodes.node_context import context_for


def call_context(
    services: NodeServices | None = None, flow: FlowContext | None = None, call_id: str = "call_1"
) -> ToolCallContext:
    """Return the context of one call by a node ``a``."""
    flow = flow or context_for(Node("a", "agent", "A"), services=services)
    return ToolCallContext(flow, call_id, f"run-1/a/{call_id}")


async def call_tool(tool: Tool, *, services: NodeServices | None = None, **arguments: Any) -> Json:
    """Call a tool with arguments."""
    return await tool.call(arguments, call_context(services))
