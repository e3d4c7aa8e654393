"""``tool``: a registered tool, linked to the agents that may call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext
from planwave.graph.suggestions import Correction
from planwave.nodes.agents.tool import Tool
from planwave.nodes.agents.tool_registry import ToolRegistry, tools_of
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.tools.tool_node import ApprovalField, ToolNode, name_in, stricter_approval

_CODE = "unknown-tool"
_LOAD_OWN_TOOL = (
    "a tool of your own, declared with @planwave.tool(), is known when its module is imported; the "
    "command line and the service import the node_modules of planwave.toml"
)


class ToolData(NodeData):
    """A tool that the operator made available."""

    name: str = Field(
        min_length=1, description="The name of the tool; `planwave tools` lists them."
    )
    description: str | None = template(
        None, description="What the model reads about it, in place of the tool's own description."
    )
    approval: ApprovalField = None


class RegisteredToolNode(ToolNode):
    """Gives a tool that was registered with ``@planwave.tool``, or comes with an installed package.

    ``data.approval`` can be stricter than the tool, not laxer. The effect is that of the tool.
    """

    node_type = "tool"
    purpose = (
        "Give an agent a tool: link it from 'tools' into 'tools' of the agent that is to call it."
    )
    summary = "Give an agent a tool that it may call."
    Data = ToolData
    plan_fields = ("name", "description")
    effect = "once"
    effect_of_tools = "name"
    planned = True

    async def make(self, data: ToolData, inputs: Inputs, context: FlowContext) -> Tool:
        tool = registered_tool(data.name, context)
        return replace(
            tool,
            description=data.description or tool.description,
            approval=stricter_approval(tool.approval, data.approval),
        )

    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        return name_in(data)

    def check_data(self, data: ToolData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None and not view.is_wired("name"):
            yield from check_tool_name(data.name, "/data/name", view, "name")


def registered_tool(name: str, context: FlowContext) -> Tool:
    """Return a registered tool.

    Raises:
        NodeError: ``unknown-tool``.
    """
    tools = tools_of(context)
    entry = tools.get(name)
    if entry is None:
        message, hint, _ = _unknown(name, tools)
        raise PermanentError(f"node {context.node_id!r}: {message}", code=_CODE, hint=hint)
    return entry.tool


def check_tool_name(
    name: str, pointer: str, view: NodeView, field: str | None = None
) -> Iterator[NodeFinding]:
    """Find the name of a tool that is not registered.

    Args:
        name: The name.
        pointer: Where it is.
        view: The node.
        field: The data field that holds nothing but the name, for a correction.
    """
    tools = view.index.tools
    if tools is None or tools.get(name) is not None:
        return
    message, hint, near = _unknown(name, tools)
    correction = None
    if near is not None and field is not None:
        correction = Correction(f"Use the tool {near}", {"data": {field: near}})
    yield NodeFinding(_CODE, message, pointer, hint, correction=correction)


def _unknown(name: str, tools: ToolRegistry) -> tuple[str, str, str | None]:
    near = tools.closest(name)
    names = tools.names()
    listed = f"there are: {', '.join(names)}; {_LOAD_OWN_TOOL}" if names else _LOAD_OWN_TOOL
    hint = f"did you mean {near!r}?" if near else listed
    return f"there is no tool {name!r}", hint, near
