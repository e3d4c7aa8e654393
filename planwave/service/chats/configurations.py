"""What replies in a chat: a stored flow, or a configuration, which is turned into a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from planwave.errors import InputError
from planwave.graph.diagnostics import short_repr
from planwave.graph.suggestions import closest_match

CHAT_START: Final = "chat_start"
ENTRY_ID: Final = "entry-1"
AGENT_ID: Final = "agent-1"
_TOOLS_ID: Final = "tools-1"
_CODE: Final = "invalid-chat"
_AGENT_FIELDS: Final = {
    "provider": "provider",
    "model": "model",
    "temperature": "temperature",
    "reasoning_effort": "reasoningEffort",
    "max_tokens": "maxTokens",
    "approval": "approval",
}
"""Fields of a configuration that are those of the agent."""
FIELDS: Final = (*_AGENT_FIELDS, "system_prompt", "instructions", "tools", "on_disconnect")


class EntryNode(NamedTuple):
    """The node of a graph that is given the messages.

    Attributes:
        on_disconnect: What becomes of a reply when its last client leaves.
    """

    node_id: str
    on_disconnect: str


def graph_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the graph of a configuration: ``chat_start → agent``, with a ``toolset`` for its tools.

    Raises:
        InputError: ``invalid-chat``: a field is unknown.
    """
    for name in config:
        if name not in FIELDS:
            near = closest_match(name, FIELDS)
            raise InputError(
                f"config has no field {short_repr(name)}",
                code=_CODE,
                hint=f"did you mean {near!r}?" if near else f"its fields are {', '.join(FIELDS)}",
            )
    given = {name: value for name, value in config.items() if value is not None}
    data = {field: given[name] for name, field in _AGENT_FIELDS.items() if name in given}
    prompts = (given.get("system_prompt"), given.get("instructions"))
    if system := "\n\n".join(each for each in prompts if each):
        data["systemPrompt"] = system
    start = {"onDisconnect": given["on_disconnect"]} if "on_disconnect" in given else {}
    nodes = [
        {"id": ENTRY_ID, "type": CHAT_START, "name": "Message", "data": start},
        {"id": AGENT_ID, "type": "agent", "name": "Answer", "data": data},
    ]
    edges = [_edge(ENTRY_ID, "messages", "messages", "flow")]
    if given.get("tools"):
        nodes.append({"id": _TOOLS_ID, "type": "toolset", "data": {"names": given["tools"]}})
        edges.append(_edge(_TOOLS_ID, "tools", "tools", "link"))
    return {"nodes": nodes, "edges": edges}


def entry_of(graph: Mapping[str, Any], node_id: str | None, name: str) -> EntryNode:
    """Return the entry node of the graph of a flow.

    Args:
        graph: The document.
        node_id: The node that is meant; None for the only one.
        name: The name of the flow.

    Raises:
        InputError: ``invalid-chat``: there is no such node, or several.
    """
    found = [node for node in graph["nodes"] if node["type"] == CHAT_START]
    chosen = [node for node in found if node_id in (None, node["id"])]
    if len(chosen) == 1:
        data: Mapping[str, Any] = chosen[0].get("data") or {}
        return EntryNode(chosen[0]["id"], str(data.get("onDisconnect") or "continue"))
    ids = ", ".join(repr(node["id"]) for node in found)
    if not found:
        message = f"flow {name!r} has no node of the type {CHAT_START!r}"
        hint = f"begin it with a {CHAT_START} node"
    elif node_id is None:
        message, hint = f"flow {name!r} has several {CHAT_START} nodes", f"node_id is one of {ids}"
    else:
        message = f"flow {name!r} has no {CHAT_START} node {short_repr(node_id)}"
        hint = f"node_id is one of {ids}"
    raise InputError(message, code=_CODE, hint=hint)


def _edge(source: str, source_handle: str, target_handle: str, channel: str) -> dict[str, Any]:
    return {
        "source": source,
        "sourceHandle": source_handle,
        "target": AGENT_ID,
        "targetHandle": target_handle,
        "data": {"channel": channel},
    }
