"""A tool as an agent gets it over a link, and the context of one call of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from planwave.graph.model import Effect, Json
from planwave.graph.protocols import FlowContext
from planwave.providers.protocols import ToolSpec

TOOL: Final = "tool"
"""The socket type of tools."""
TOOLS_HANDLE: Final = "tools"
"""The handle by which nodes give tools, and the one by which agents take them."""
TOOLS_OUT: Final = "tools-out"
"""The handle by which an agent is itself a tool of another one."""

AGENT: Final = "agent"
"""``Tool.kind`` of another agent."""
FLOW: Final = "flow"
"""``Tool.kind`` of a stored flow."""

Approval = Literal["never", "always", "write"]
"""When a person approves a call: ``write`` for tools that change something (``write``, ``once``)."""


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """The context of one call of a tool. The tool itself is made once a run, for all its calls.

    Attributes:
        flow: The context of the agent's attempt that makes the call: time left, events, nested runs.
        call_id: The id that the model gave the call; unique within the attempt.
        idempotency_key: The same whenever this call is made again, after a crash too.
        depth: How many agents are above the one that calls: 0 for an agent that is a stage.
        run_key: A name for a nested run of this call, unique within the agent, and the same whenever
            this call is made again.
    """

    flow: FlowContext
    call_id: str
    idempotency_key: str
    depth: int = 0
    run_key: str = ""


CallTool = Callable[[Mapping[str, Json], ToolCallContext], Awaitable[Json]]
"""Calls a tool with arguments that fit its schema.

Raises:
    ToolError: The call failed in a way that the model is to see.
    Exception: Its own code failed; the model sees type and message.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool for a model: what a link of the type ``tool`` brings, alone or in a list.

    Attributes:
        name: What the model calls it: letters, digits, ``_`` and ``-``, at most 64.
        description: What it does and when to use it, for the model.
        parameters: The JSON Schema of its arguments, an object.
        call: See ``CallTool``.
        effect: What a call does to the world: ``once`` must not happen twice, a ``write`` may be
            repeated with the same idempotency key, a ``read`` freely. Without one it is ``once``.
        approval: When a person approves a call.
        node_id: The node that gives it, for messages and unique names.
        kind: ``tool``, ``mcp``, ``http``, ``flow`` or ``agent``; in events and in the document.
        timeout_s: The time of one call, in seconds; None for that of the agent.
        checks_arguments: Whether ``call`` itself refuses arguments that do not fit: then planwave accepts
            a schema that it cannot check, such as a recursive one.
        details: More about it for events: the server of an MCP tool, the flow of a flow tool.
        definition: A hash of the node that gives it and of all that is linked into that node; the agent
            sets it. A recorded call of a tool with another definition is not served.
        fingerprint: A hash of what a server says about its tool ``details["tool"]``: a person is asked where it
            is another one than that of the last call that a person has approved.
        result_schema: The JSON Schema of its results; None where it says nothing about them.
        is_recorded: Whether its results are recorded and served where the attempt is executed again; one that
            acts within the attempt alone is called again.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: CallTool
    effect: Effect = "once"
    approval: Approval = "never"
    node_id: str = ""
    kind: str = "tool"
    timeout_s: float | None = None
    checks_arguments: bool = False
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    definition: str = ""
    fingerprint: str = ""
    result_schema: Mapping[str, Any] | None = None
    is_recorded: bool = True

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        return ToolSpec(self.name, self.description, self.parameters)


class ToolGroup(list[Tool]):
    """Several tools over one link, and what the log of the run says about them.

    Attributes:
        warnings: Sentences, such as why a tool is left out.
    """

    def __init__(self, tools: Iterable[Tool], warnings: Iterable[str] = ()) -> None:
        super().__init__(tools)
        self.warnings = tuple(warnings)
