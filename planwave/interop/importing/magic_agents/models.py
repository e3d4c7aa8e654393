"""Steps that ask models, and what is linked to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from planwave.interop.importing.drafts import Target
from planwave.interop.importing.magic_agents.fields import note_unread
from planwave.interop.importing.magic_agents.flow import Step, Wire
from planwave.interop.importing.magic_agents.graphs import Graph, Made, Plug
from planwave.interop.importing.magic_agents.rendered import single_input
from planwave.interop.importing.reading import list_of, number_of, object_of, objects_in, text_of

_ROLES: Final = frozenset({"system", "user", "assistant"})
_ENGINE: Final = ("engine", "provider")
_MODEL: Final = ("model", "model_name")
_API: Final = ("api_info", "config", "credentials")
_MAX_TOKENS: Final = 200_000
_TOOLS: Final = ("handle-tool", "handle_tool")
_LLM_FIELDS: Final[Mapping[str, str]] = {
    "handle-system-context": "system",
    "handle-chat": "messages",
    "handle-llm-temperature": "temperature",
    "handle-llm-max_tokens": "maxTokens",
    "handle-llm-json_output": "jsonOutput",
    "handle-llm-stream": "stream",
}
_AGENT_FIELDS: Final[Mapping[str, str]] = {
    "handle-system-context": "systemPrompt",
    "handle-llm-temperature": "temperature",
    "handle-llm-max_tokens": "maxTokens",
}
_VALUE_OF_OBJECT: Final = (
    "{{ (input.value if input.value is defined else (input.content if input.content is defined "
    "else input)) if input is mapping else input }}"
)
"""The prompt where an object may arrive: its ``value``, or else its ``content``."""


def client(graph: Graph, step: Step) -> Made:
    """Make a model; its credentials are the operator's."""
    data = model_of(step)
    target = step.node.becomes("model", data, node_id=step.id, graph=graph.draft)
    if "provider" in data:
        graph.conversion.needs("provider", data["provider"], target)
    else:
        step.node.change("it names no engine: the default provider is asked")
    for name in _API:
        if step.data.get(name):
            step.node.note(
                "import-ignored",
                "the address and the key of a provider are settings of the operator",
                f"{step.node.pointer}/data/{name}",
            )
    for wire in graph.wires_into(step):
        step.node.lose(
            "which model it is comes from another step", wire.source.id, wire.edge.pointer
        )
    note_unread(step, {*_ENGINE, *_MODEL, *_API})
    return Made(lambda handle: Plug(target, handle, True), lambda _: Plug(target, "output", True))


def model_of(step: Step) -> dict[str, str]:
    """Return the provider and the model that a client names."""
    fields = {"provider": _ENGINE, "model": _MODEL}
    found = {
        field: next((text for name in names if (text := text_of(step.data, name))), "")
        for field, names in fields.items()
    }
    return {field: text for field, text in found.items() if text}


def llm(graph: Graph, step: Step) -> Made:
    """Make a call of a model; with tools an agent."""
    wires = graph.wires_into(step)
    has_tools = any(_is_tool(wire) for wire in wires)
    data = _settings(step, has_tools)
    fields = _AGENT_FIELDS if has_tools else _LLM_FIELDS
    into = single_input(
        graph, step, "handle_user_message", *fields, "handle-client-provider", *_tool_handles(wires)
    )
    asked = [wire for wire in wires if wire.into == "handle_user_message"]
    field = "userPrompt" if has_tools else "prompt"
    if any(_may_be_object(wire) for wire in asked):
        data[field] = _VALUE_OF_OBJECT
    elif has_tools:
        data[field] = "{{ PREVIOUS_OUTPUT }}"
    if not asked and not any(wire.into == "handle-chat" for wire in wires):
        step.node.lose("no message leads to it", "", code="import-dangling")
    target = step.node.becomes(
        "agent" if has_tools else "llm", data, node_id=step.id, graph=graph.draft
    )
    clients = [wire for wire in wires if wire.source.kind == "client"]
    if not clients:
        step.node.change("no client leads to it: there it failed, here the default model is asked")
    for wire in clients:
        if not graph.has(wire) and wire.source not in graph.steps:
            target.node["data"] = {**model_of(wire.source), **target.node.get("data", {})}
            wire.edge.absorbed("a body has no wires from outside: the step names its model itself")
    plugs = {handle: Plug(target, name) for handle, name in fields.items()}
    plugs["handle-client-provider"] = Plug(target, "model", True)
    plugs |= {handle: Plug(target, "tools", True) for handle in _tool_handles(wires)}
    return into.made(target, plugs)


def _settings(step: Step, has_tools: bool) -> dict[str, Any]:
    pointer = f"{step.node.pointer}/data"
    data: dict[str, Any] = {}
    temperature = number_of(step.data, "temperature")
    if temperature is not None and 0 <= temperature <= 2:
        data["temperature"] = temperature
    elif temperature is not None:
        step.node.lose(
            "a temperature from 0 to 2 is possible", str(temperature), f"{pointer}/temperature"
        )
    limit = number_of(step.data, "max_tokens") or number_of(step.data, "max_output_tokens")
    if limit is not None and limit > _MAX_TOKENS:
        step.node.change(
            f"more than {_MAX_TOKENS} tokens of a reply are left to the provider",
            f"{pointer}/max_tokens",
        )
    elif limit is not None and limit >= 1:
        data["maxTokens"] = int(limit)
    is_json = step.data.get("json_output") is True or step.data.get("json_mode") is True
    if is_json and has_tools:
        step.node.lose("JSON of a step with tools", "json_output", f"{pointer}/json_output")
    elif is_json:
        data["jsonOutput"] = True
    if not has_tools:
        data["stream"] = step.data.get("stream") is True
    top = number_of(step.data, "top_p")
    if top is not None and top != 1:
        step.node.change(
            f"top_p {top} is left out: planwave has no such setting", f"{pointer}/top_p"
        )
    read = {"temperature", "max_tokens", "max_output_tokens", "json_output", "json_mode", "stream"}
    note_unread(step, {*read, "top_p", "iterate"})
    return data


def _is_tool(wire: Wire) -> bool:
    return wire.source.kind in ("mcp", "python_exec") or wire.into.startswith(_TOOLS)


def _tool_handles(wires: list[Wire]) -> list[str]:
    return [wire.into for wire in wires if _is_tool(wire)]


def _may_be_object(wire: Wire) -> bool:
    source = wire.source
    if source.kind == "loop":
        return wire.out == "handle_item"
    is_json = source.kind == "llm" and bool(
        source.data.get("json_output") or source.data.get("json_mode")
    )
    return is_json or source.kind in ("conditional", "fetch")


def chat(graph: Graph, step: Step) -> Made:
    """Make the conversation for a model."""
    pointer = f"{step.node.pointer}/data"
    data: dict[str, Any] = {}
    for name, field in (
        ("history_messages", "historyMessages"),
        ("custom_messages", "customMessages"),
    ):
        messages = _messages(step, name)
        if messages:
            data[field] = messages
    if step.data.get("messages_append_mode") is True:
        data["messagesAppendMode"] = True
    memory = object_of(step.data, "memory")
    limit = number_of(memory, "max_input_tokens")
    if limit is not None and limit >= 1:
        data["maxInputTokens"] = int(limit)
    for name in ("stm", "ltm"):
        if memory.get(name):
            step.node.lose(
                "what it remembers of earlier conversations", name, f"{pointer}/memory/{name}"
            )
    fields = {
        "handle-system-context": "system",
        "handle_messages": "messages",
        "handle_user_files": "files",
        "handle_user_images": "images",
    }
    into = single_input(graph, step, "handle_user_message", *fields)
    target = step.node.becomes("chat", data, node_id=step.id, graph=graph.draft)
    read = {"history_messages", "custom_messages", "messages_append_mode", "memory"}
    note_unread(step, {*read, "session_id", "session_required"})
    made = into.made(target, {handle: Plug(target, name) for handle, name in fields.items()})
    return Made(made.into, lambda _: Plug(target, "messages"))


def _messages(step: Step, name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for entry in list_of(step.data, name):
        message = cast("dict[str, Any]", entry) if isinstance(entry, dict) else dict[str, Any]()
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES or not isinstance(content, str):
            step.node.lose(
                "a message of another form", str(message), f"{step.node.pointer}/data/{name}"
            )
            return []
        found.append({"role": role, "content": content})
    return found


def mcp(graph: Graph, step: Step) -> Made:
    """Make a node of each server, of which the operator has the address; all are linked alike."""
    targets: list[Target] = []
    for number, server in objects_in(step.data, "servers"):
        pointer = f"{step.node.pointer}/data/servers/{number}"
        name = text_of(server, "name") or text_of(server, "prefix") or f"{step.id}-{number + 1}"
        data: dict[str, Any] = {"server": name}
        if "{" in name:
            step.node.lose("a name that is no name of a server", name, pointer)
        for theirs, ours in (("tool_allowlist", "allow"), ("tool_denylist", "deny")):
            listed = [each for each in list_of(server, theirs) if isinstance(each, str)]
            if listed:
                data[ours] = listed
        if prefix := text_of(server, "prefix"):
            data["prefix"] = prefix
        target = step.node.becomes("mcp_server", data, node_id=step.id, graph=graph.draft)
        graph.conversion.needs("mcp", name, target)
        step.node.change(
            "its command or address is not copied: the operator sets the server up",
            pointer,
            hint=f"set up the MCP server {name!r}",
        )
        targets.append(target)
    note_unread(step, {"servers"})
    if not targets:
        target = step.node.becomes("placeholder", node_id=step.id, graph=graph.draft)
        step.node.becomes_placeholder("it names no server")
        targets.append(target)
    return Made(
        lambda _: None,
        lambda _: Plug(targets[0], "tools", True, tuple(targets[1:])),
    )
