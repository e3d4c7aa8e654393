"""``toolset``: several registered tools at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, cast

from pydantic import Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.tool import Tool
from planwave.nodes.authoring.node_type import NodeData, NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.library.tool import check_tool_name, registered_tool
from planwave.nodes.tools.tool_node import ApprovalField, ToolNode, stricter_approval


class ToolsetData(NodeData):
    """Tools that the operator made available."""

    names: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="The names of the tools; `planwave tools` lists them."
    )
    approval: ApprovalField = None


class Toolset(ToolNode):
    """Gives several registered tools over one link.

    ``data.approval`` can be stricter than each tool, not laxer. The effect is the strongest of theirs.
    """

    node_type = "toolset"
    purpose = "Give an agent several tools over one link."
    summary = "Give an agent several tools that it may call."
    Data = ToolsetData
    effect = "once"
    effect_of_tools = "names"

    async def make(self, data: ToolsetData, inputs: Inputs, context: FlowContext) -> list[Tool]:
        tools = [registered_tool(name, context) for name in data.names]
        return [
            replace(tool, approval=stricter_approval(tool.approval, data.approval))
            for tool in tools
        ]

    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        names = data.get("names")
        listed = cast("list[Json]", names) if isinstance(names, list) else []
        return [name for name in listed if isinstance(name, str)]

    def check_data(self, data: ToolsetData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None or view.is_wired("names"):
            return
        for number, name in enumerate(data.names):
            yield from check_tool_name(name, f"/data/names/{number}", view)
