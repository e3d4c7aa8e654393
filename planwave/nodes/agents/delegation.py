"""Agents as tools of other agents: the tool, its limits, and where an agent is that was called so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.errors import ToolError
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, Json, Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.tool import AGENT, Tool, ToolCallContext
from planwave.nodes.agents.tool_names import tool_name

if TYPE_CHECKING:
    from planwave.settings import Limits

TASK: Final = "task"
"""The one argument of an agent that is called as a tool."""
_VARIABLE: Final = "delegation"


class Delegation(NamedTuple):
    """The call by which an agent runs; the default is that of an agent that is a stage of its graph.

    Attributes:
        depth: Number of agents above it.
        call_id: The id of that call; None for a stage.
        path: The path of the agent that was called; None for a stage.
        callers: The paths and the attempts of the agents above it, that of the stage first; none for
            a stage.
    """

    depth: int = 0
    call_id: str | None = None
    path: str | None = None
    callers: tuple[tuple[str, int], ...] = ()

    def attempts_of(self, context: FlowContext) -> Sequence[tuple[str, int]]:
        """Return path and attempt of the agents that an agent works for, the stage first, and its own."""
        callers = self.callers if self.path == context.path else ()
        return *callers, (context.path, context.attempt)


def delegation_of(context: FlowContext) -> Delegation:
    """Return the call that a node runs in, its own or that of an agent around it."""
    variable = context.runtime.variables.get(_VARIABLE)
    if not isinstance(variable, Mapping):
        return Delegation()
    fields = cast("Mapping[str, Any]", variable)
    return Delegation(
        int(fields.get("depth", 0)),
        fields.get("call_id"),
        fields.get("path"),
        tuple((str(path), int(attempt)) for path, attempt in fields.get("callers", ())),
    )


def is_called(context: FlowContext) -> bool:
    """Return whether another agent called this one as a tool."""
    return delegation_of(context).path == context.path


def agent_as_tool(node: Node) -> Tool:
    """Return an agent as a tool: ``delegate_NAME(task)``, which runs it below the one that calls.

    Args:
        node: The agent's node, in the graph of the agents that call it.
    """

    async def call(arguments: Mapping[str, Json], call_context: ToolCallContext) -> Json:
        flow, key = call_context.flow, call_context.run_key
        path = f"{flow.path}[{key}]/{node.id}"
        callers = delegation_of(flow).attempts_of(flow)
        called = Delegation(call_context.depth + 1, call_context.call_id, path, tuple(callers))
        outputs = await flow.runtime.run_linked(
            key,
            node.id,
            {DEFAULT_TARGET_HANDLE: arguments[TASK]},
            variables={
                _VARIABLE: {**called._asdict(), "callers": [list(each) for each in callers]}
            },
        )
        output = outputs.get(DEFAULT_SOURCE_HANDLE)
        if output is None:
            raise ToolError(f"the agent {node.name!r} gave no result")
        return output.value

    about = node.description.strip() or f"The agent {node.name}."
    return Tool(
        tool_name(f"delegate_{node.name or node.id}"),
        f"Give a task to another agent and get its result. {about}",
        {
            "type": "object",
            "properties": {
                TASK: {
                    "type": "string",
                    "description": "The whole task: the agent knows nothing else.",
                }
            },
            "required": [TASK],
            "additionalProperties": False,
        },
        call,
        "none",  # its own tools and nodes say what they do
        node_id=node.id,
        kind=AGENT,
        details={"agent": {"id": node.id, "name": node.name or node.id}},
    )


def usable_tools(
    tools: Iterable[Tool], delegation: Delegation, limits: Limits | None
) -> Sequence[Tool]:
    """Return the tools that an agent may use: no other agents where it is as deep as agents may be."""
    if limits is None or delegation.depth < limits.subagent_depth:
        return list(tools)
    return [tool for tool in tools if tool.kind != AGENT]
