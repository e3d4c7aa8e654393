"""``mcp_server``: tools of an MCP server, for the agents that are linked to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError

from planwave.errors import McpError, PermanentError, PlanwaveError, ToolError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Effect, Json
from planwave.graph.protocols import FlowContext
from planwave.graph.suggestions import Correction, closest_match
from planwave.mcp.servers import hint_to_set_up
from planwave.mcp.tools import ServerTool
from planwave.nodes.agents.tool import Approval, Tool, ToolCallContext, ToolGroup
from planwave.nodes.agents.tool_names import MAX_NAME_CHARS, tool_name
from planwave.nodes.authoring.data_fields import POLICY, POLICY_FOR_PLANS
from planwave.nodes.authoring.node_type import NodeData, NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.services import mcp_servers_of
from planwave.nodes.tools.tool_node import ToolNode, stricter_approval
from planwave.settings import McpServerSettings

if TYPE_CHECKING:
    from planwave.mcp.connection import Connection

_HASH_CHARS: Final = 8
_PROGRESS_S: Final = 1.0
"""The shortest time between two events of progress of a call."""
_MAX_PROGRESS_EVENTS: Final = 100
_MAX_PROGRESS_CHARS: Final = 200

_ToolNames = list[Annotated[str, Field(min_length=1, max_length=128)]]


class McpServerData(NodeData):
    """A server by its name, and which of its tools are used."""

    server: str = Field(
        min_length=1,
        description="Its name in the operator's settings.",
        json_schema_extra=POLICY_FOR_PLANS,
    )
    allow: _ToolNames | None = Field(None, description="The only tools to use; null for all.")
    deny: _ToolNames = Field([], description="Tools not to use.")
    prefix: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]{0,32}$",
        description="The beginning of the names that models see; null for the name of the server.",
    )
    call_timeout_s: Annotated[
        int | float | None,
        Field(
            gt=0,
            description="The longest time of one call, in seconds.",
            json_schema_extra={"limit": "mcp_call_s"},
        ),
    ] = None
    approval: Approval = Field(
        "write",
        description="Which calls a person approves: write is all that change something.",
        json_schema_extra=POLICY,
    )


class McpServer(ToolNode):
    """Gives agents the tools of an MCP server that the operator has set up (``[mcp.NAME]``).

    The server is started, or connected, once for each run of a graph, and its tools are listed then. A tool
    has the effect ``once``, unless the operator says that it only reads (``read``), or believes what the server says;
    one that takes a key for repeated calls ``write``. A person approves calls of these two, unless
    ``approval`` says otherwise; the operator's rule for the server holds if it is stricter. A person is also
    asked about a tool that its server describes differently since a call of it was approved. If the connection is lost, the calls that run fail, and the next one connects again.
    """

    node_type = "mcp_server"
    purpose = "Give agents the tools of an MCP server; link it into 'tools' of the agents."
    summary = "Give agents the tools of an MCP server."
    Data = McpServerData
    plan_fields = ("server", "allow", "deny", "prefix", "callTimeoutS")
    effect = "once"
    uses_services = True
    knows_tools = False

    async def make(
        self, data: McpServerData, inputs: Inputs, context: FlowContext
    ) -> AbstractAsyncContextManager[list[Tool]]:
        return _open_tools(data, context)

    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        try:
            read = McpServerData.model_validate(data)
        except ValidationError:
            return ()
        used = (name for name in read.allow or () if name not in read.deny)
        return [_name_for_models(name, read) for name in used]

    def check_data(self, data: McpServerData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        yield from check_server_name(data.server, view)
        for name in sorted({*(data.allow or ())} & {*data.deny}):
            yield NodeFinding(
                "invalid-data",
                f"the tool {name!r} is in data.allow and in data.deny",
                "/data/deny",
                "remove it from one of them",
            )


def check_server_name(name: str, view: NodeView) -> Iterator[NodeFinding]:
    """Find the name in ``data.server`` of a server that the operator has not set up."""
    servers = view.mcp_servers
    if servers is None or name in servers:
        return
    near = closest_match(name, servers)
    yield NodeFinding(
        "unknown-mcp-server",
        f"there is no MCP server {name!r}",
        "/data/server",
        f"did you mean {near!r}?" if near else hint_to_set_up(name, servers),
        correction=Correction(f"Use {near}", {"data": {"server": near}}) if near else None,
    )


@asynccontextmanager
async def _open_tools(data: McpServerData, context: FlowContext) -> AsyncGenerator[list[Tool]]:
    """Connect to the server and give its tools; closed with the run of the graph."""
    async with mcp_servers_of(context).connection(data.server) as connection:
        yield server_tools(connection, data, context)


def server_tools(connection: Connection, data: McpServerData, context: FlowContext) -> ToolGroup:
    """Return the tools of a connected server, and what is to know about them.

    Raises:
        NodeError: ``unknown-mcp-tool``, ``duplicate-tool``.
    """
    rules = mcp_servers_of(context).rules(data.server)
    used = _used_tools(connection, data)
    tools = _named_tools(connection, used, data, rules, context.node_id)
    return ToolGroup(tools, _warnings(connection, data))


def _warnings(connection: Connection, data: McpServerData) -> Iterator[str]:
    """Yield what is to know about the tools that are used, or would be."""
    listed = connection.listed
    for sentence in (*(f"{each}; it is left out" for each in listed.problems), *listed.notes):
        is_named = [name for name in (*(data.allow or ()), *data.deny) if repr(name) in sentence]
        if not any(name in data.deny for name in is_named) and (is_named or data.allow is None):
            yield f"MCP server {data.server}: {sentence}"


def _used_tools(connection: Connection, data: McpServerData) -> list[ServerTool]:
    listed = connection.listed.tools
    if data.allow is not None and (missing := [name for name in data.allow if name not in listed]):
        near = closest_match(missing[0], listed)
        reasons = [each for each in connection.listed.problems if repr(missing[0]) in each]
        raise McpError(
            f"the MCP server {connection.name!r} has no tool {missing[0]!r} that can be used"
            + "".join(f": {reason}" for reason in reasons),
            code="unknown-mcp-tool",
            hint=f"did you mean {near!r}?" if near else f"it has: {', '.join(listed) or 'none'}",
            retryable=False,
        )
    allowed = listed if data.allow is None else data.allow
    return [listed[name] for name in allowed if name not in data.deny]


def _named_tools(
    connection: Connection,
    used: Iterable[ServerTool],
    data: McpServerData,
    rules: McpServerSettings,
    node_id: str,
) -> list[Tool]:
    """Return the tools under the names that models see.

    Raises:
        NodeError: ``duplicate-tool``.
    """
    tools: dict[str, Tool] = {}
    for each in used:
        name = _name_for_models(each.name, data)
        if name in tools:
            raise PermanentError(
                f"two tools of the MCP server {data.server!r} have the name {name!r} for models: "
                f"{tools[name].details['tool']!r} and {each.name!r}",
                code="duplicate-tool",
                hint="put one of them into data.deny",
            )
        tools[name] = Tool(
            name=name,
            description=each.description,
            parameters=each.parameters,
            call=_Call(connection, each, data.call_timeout_s),
            effect=_effect_of(each, rules),
            approval=stricter_approval(data.approval, rules.approval),
            node_id=node_id,
            kind="mcp",
            timeout_s=data.call_timeout_s,
            details={"server": data.server, "tool": each.name},
            fingerprint=each.fingerprint,
        )
    return list(tools.values())


def _name_for_models(tool: str, data: McpServerData) -> str:
    """Return a name of letters, digits, ``_`` and ``-``, at most 64; a longer one ends in its hash."""
    prefix = data.server if data.prefix is None else data.prefix
    name = f"{prefix}_{tool}" if prefix else tool
    if len(name) <= MAX_NAME_CHARS:
        return tool_name(name)
    ending = sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{tool_name(name)[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{ending}"


def _effect_of(tool: ServerTool, rules: McpServerSettings) -> Effect:
    """Return the effect of a tool: of one about which nobody is believed, the strictest."""
    if tool.name in rules.read_tools or (rules.trust_hints and tool.reads_only):
        return "read"
    is_repeatable = tool.takes_key or (rules.trust_hints and tool.is_repeatable)
    return "write" if is_repeatable else "once"


class _Call:
    """Calls one tool of a server."""

    def __init__(self, connection: Connection, tool: ServerTool, timeout_s: float | None) -> None:
        self._connection = connection
        self._tool = tool
        self._timeout_s = timeout_s

    async def __call__(self, arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        try:
            return await self._connection.call(
                self._tool,
                arguments,
                key=context.idempotency_key,
                progress=_ProgressEvents(context),
                timeout_s=self._timeout_s,
            )
        except PlanwaveError as error:
            raise ToolError(
                error.message, code=error.code, hint=error.hint, retryable=error.retryable
            ) from error


class _ProgressEvents:
    """Emits how far a call is, at most once a second."""

    def __init__(self, context: ToolCallContext) -> None:
        self._context = context
        self._next_s = 0.0
        self._left = _MAX_PROGRESS_EVENTS

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = monotonic()
        if now < self._next_s or self._left == 0:
            return
        self._next_s, self._left = now + _PROGRESS_S, self._left - 1
        event: dict[str, Json] = {
            "call_id": self._context.call_id,
            "progress": progress,
            "total": total,
            "message": message and message[:_MAX_PROGRESS_CHARS],
        }
        self._context.flow.emit("tool_call_progress", event)
