"""What replies in a chat without a flow: a configuration, which is turned into a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planwave.errors import InputError
from planwave.expressions import escape_templates
from planwave.graph.diagnostics import short_repr
from planwave.graph.suggestions import closest_match
from planwave.service.flows.chat_entries import INVALID_CHAT

_CHAT_START: Final = "chat_start"
ENTRY_ID: Final = "entry-1"
AGENT_ID: Final = "agent-1"
_TOOLS_ID: Final = "tools-1"
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
                code=INVALID_CHAT,
                hint=f"did you mean {near!r}?" if near else f"its fields are {', '.join(FIELDS)}",
            )
    fields = {name: value for name, value in config.items() if value is not None}
    data = {field: fields[name] for name, field in _AGENT_FIELDS.items() if name in fields}
    prompts = (fields.get("system_prompt"), fields.get("instructions"))
    if system := "\n\n".join(each for each in prompts if each):
        data["systemPrompt"] = escape_templates(system)
    start = {"onDisconnect": fields["on_disconnect"]} if "on_disconnect" in fields else {}
    nodes = [
        {"id": ENTRY_ID, "type": _CHAT_START, "name": "Message", "data": start},
        {"id": AGENT_ID, "type": "agent", "name": "Answer", "data": data},
    ]
    edges = [_edge(ENTRY_ID, "messages", "messages", "flow")]
    if fields.get("tools"):
        nodes.append({"id": _TOOLS_ID, "type": "toolset", "data": {"names": fields["tools"]}})
        edges.append(_edge(_TOOLS_ID, "tools", "tools", "link"))
    return {"nodes": nodes, "edges": edges}


def _edge(source: str, source_handle: str, target_handle: str, channel: str) -> dict[str, Any]:
    return {
        "source": source,
        "sourceHandle": source_handle,
        "target": AGENT_ID,
        "targetHandle": target_handle,
        "data": {"channel": channel},
    }
