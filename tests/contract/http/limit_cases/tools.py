"""Limits of the tools of agents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from planwave.graph.model import LINK, DataValue, Json, Node, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.agents.linked_tools import linked_tools
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.services import NodeServices
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
    refusal_in_events,
    run_graph,
)
from tests.support.graph.builders import make_edge, make_graph
from tests.support.llm.fake_providers import FakeProviders
from tests.support.llm.watched_model import WatchedModel


async def _nothing(arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
    return None


class _ManyTools:
    """Gives a number of tools to the nodes linked to it."""

    node_type = "gives-tools"
    outputs = (Port("tools", "tool", channel=LINK),)

    def __init__(self, number: int) -> None:
        self._number = number

    async def materialize(self, data: Any, output_handle: str, context: FlowContext) -> list[Tool]:
        return [Tool(f"t{number}", "", {}, _nothing) for number in range(self._number)]


class _TakesTools:
    """Counts its tools."""

    node_type = "takes-tools"
    inputs = (Port("tools", "tool", channel=LINK, multiple=True),)

    async def execute(self, data: Any, inputs: Any, context: FlowContext) -> ExecutionResult:
        found = await linked_tools(context)
        return ExecutionResult({"output": DataValue("integer", len(found))})


@case("agent_tools", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    nodes = Node("g", "gives-tools", "G"), Node("t", "takes-tools", "T")
    link = make_edge("g", "t", source_handle="tools", target_handle="tools", channel=LINK)
    services = partial(NodeServices, WatchedModel(""), FakeProviders(), limits=limits)
    graph = make_graph(*nodes, edges=[link])
    events = await run_graph(
        limits, graph, _ManyTools(amount), _TakesTools(), node_services=services
    )
    return refusal_in_events(events, "node.failed")
