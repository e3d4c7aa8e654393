"""The tools of an agent: those that are linked to it, under names that a model can tell apart, and its own one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from planwave.errors import LimitExceeded, PermanentError
from planwave.events.plan_payloads import MAX_REQUEST_CHARS, REPLAN
from planwave.graph.model import LINK, Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext, RuntimeApi
from planwave.nodes.agents.tool import TOOLS_HANDLE, Tool, ToolCallContext
from planwave.nodes.agents.tool_names import LinkedName, first_duplicate, tool_name, unique_names
from planwave.nodes.services import limits_of

_LIMIT: Final = "agent_tools"
CHANGE_PLAN: Final = "change_plan"
"""The tool with which an agent asks for a change of the plan that it is a step of."""
_REQUEST: Final = "request"


async def linked_tools(context: FlowContext) -> list[Tool]:
    """Return the tools that are linked to the port ``tools`` of a node, in edge order.

    Each name occurs once: tools of one name from several nodes get the ids of their nodes as endings
    ("search_a", "search_b"). Characters that models may not use in names become ``_``.

    Raises:
        NodeError: ``channel-mismatch``: a linked node gives something else than tools;
            ``duplicate-tool``: two tools cannot be told apart; what making a tool raised.
        LimitExceeded: ``agent_tools``.
    """
    node_id = context.node_id
    edges = context.runtime.incoming_edges(node_id, channel=LINK, target_handle=TOOLS_HANDLE)
    if not edges:
        return []
    artefacts = await context.runtime.resolve_links(node_id, TOOLS_HANDLE)
    log_warnings(artefacts, context)
    tools = [
        replace(_of_node(tool, edge.source), definition=_definition(context.runtime, edge.source))
        for edge, artefact in zip(edges, artefacts, strict=True)
        for tool in _tools_in(artefact, edge.source, node_id)
    ]
    limits = limits_of(context)
    if limits is not None and len(tools) > limits.agent_tools:
        what = f"the tools of {node_id!r}"
        raise LimitExceeded(_LIMIT, limits.agent_tools, len(tools), what=what)
    return with_unique_names(tools, node_id)


def log_warnings(groups: Iterable[object], context: FlowContext) -> None:
    """Log what is to know about the tools of a node, once an attempt."""
    if context.answers:  # the attempt has logged it before
        return
    for warning in (each for group in groups for each in getattr(group, "warnings", ())):
        context.emit("log", {"message": warning, "level": "warning"})


def _definition(runtime: RuntimeApi, node_id: str) -> str:
    """Return a hash of a node's type, text and data, of what arrived, and of all that is linked into it."""
    node = runtime.get_node(node_id)
    facts = runtime.catalogue.type_info(node.type)
    document: Json = {
        "type": [node.type, 1 if facts is None else facts.version],
        "name": node.name,
        "description": node.description,
        "data": dict(node.data),
        "arrivals": [[each.target_handle, each.value.value] for each in runtime.arrivals(node_id)],
        "links": [
            [edge.target_handle, edge.source_handle, _definition(runtime, edge.source)]
            for edge in runtime.incoming_edges(node_id, channel=LINK)
        ],
    }
    return hashlib.sha256(canonical_json(document).encode("utf-8")).hexdigest()


def with_unique_names(tools: Iterable[Tool], node_id: str) -> list[Tool]:
    """Return the tools, renamed by the ids of their nodes where names are not unique.

    Args:
        tools: The tools; each with the node that gives it.
        node_id: The node that uses them, for messages.

    Raises:
        NodeError: ``duplicate-tool``: the new names are not unique either.
    """
    listed = list(tools)
    names = unique_names([LinkedName(tool.name, tool.node_id) for tool in listed])
    if (pair := first_duplicate(names)) is not None:
        first, second = pair
        raise PermanentError(
            f"{node_id!r} has two tools of the name {second.name!r}: of the links from "
            f"{first.node_id!r} and from {second.node_id!r}",
            code="duplicate-tool",
            hint="remove one of the two links, or give one of the tools another name",
        )
    return [replace(tool, name=each.name) for tool, each in zip(listed, names, strict=True)]


def _tools_in(artefact: Any, source: str, node_id: str) -> list[Tool]:
    many = isinstance(artefact, (list, tuple))
    artefacts = list(cast("Iterable[object]", artefact)) if many else [artefact]
    for each in artefacts:
        if not isinstance(each, Tool):
            raise PermanentError(
                f"node {source!r} is linked into {TOOLS_HANDLE!r} of {node_id!r}, but gives "
                f"{type(each).__name__}, which is no tool",
                code="channel-mismatch",
                hint="link a node that gives tools, such as 'tool' or 'toolset'",
            )
    return cast("list[Tool]", artefacts)


def _of_node(tool: Tool, source: str) -> Tool:
    """Return a tool with a name that models accept, and the node that gives it.

    Raises:
        NodeError: ``invalid-result``: it has no name.
    """
    name = tool_name(tool.name)
    if not name:
        raise PermanentError(
            f"node {source!r} gives a tool without a name",
            code="invalid-result",
            hint="name it with letters, digits, '_' and '-'",
        )
    return replace(tool, name=name, node_id=tool.node_id or source)


def plan_tools(context: FlowContext, taken: Collection[str]) -> list[Tool]:
    """Return the tool ``change_plan``, unless there is another one of this name.

    Args:
        context: The context of the agent's attempt.
        taken: The names of its other tools.
    """
    if CHANGE_PLAN in taken:
        return []
    tool = Tool(
        CHANGE_PLAN,
        "Ask for a change of the plan that your task is a step of, where what you have found out shows that the "
        "steps after yours should be others. Once you have replied, another model changes the plan; steps that have "
        "begun stay as they are. Call it at most once, and do your own task all the same.",
        {
            "type": "object",
            "properties": {
                _REQUEST: {
                    "type": "string",
                    "description": "What is to be different, and why: the one who changes the plan knows nothing else.",
                    "minLength": 1,
                    "maxLength": MAX_REQUEST_CHARS,
                }
            },
            "required": [_REQUEST],
            "additionalProperties": False,
        },
        _ask_for_change,
        "none",  # what the change may reach is checked once it is written
        node_id=context.node_id,
        is_recorded=False,  # the event is of the attempt
    )
    return [tool]


async def _ask_for_change(arguments: Mapping[str, Json], call_context: ToolCallContext) -> Json:
    await call_context.flow.record(REPLAN, {_REQUEST: arguments[_REQUEST]})
    return "Noted: the plan is changed once you have replied, if that is possible."
