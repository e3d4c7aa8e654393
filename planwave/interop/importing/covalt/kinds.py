"""Types of nodes of Covalt, and the nodes that they become."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.covalt.expressions import Scope, message_of
from planwave.interop.importing.covalt.flow import LINKED, Flow, Step, Wire
from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.reading import list_of, number_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import literal

_OPERATORS: Final = frozenset(
    {
        "equals", "notEquals", "contains", "notContains", "greaterThan", "lessThan", "exists",
        "notExists", "startsWith", "endsWith", "isEmpty",
    }
)  # fmt: skip
_ROLES: Final = frozenset({"system", "user", "assistant"})
_HISTORY: Final = "{{ $input.messages }}"
"""What an agent takes for the conversation before, unless it says otherwise."""
_WITHOUT_BEARING: Final = frozenset({"_label", "label", "on_error", "name", "description"})


class Plug(NamedTuple):
    """An end of an edge here: a node and its handle."""

    target: Target
    handle: str


@dataclass(frozen=True)
class Made:
    """What a node became.

    Attributes:
        main: The node that does its work.
        into: The end of a wire into a handle; None where nothing is read there.
        out: The handle that a wire leaves by.
        link: The handle that a link leaves by; "" if none does.
    """

    main: Target
    into: Callable[[str], Plug | None]
    out: Callable[[str], str] = lambda _: "output"
    link: str = ""


@dataclass
class Graph:
    """The graph that is being made.

    Attributes:
        conversion: What it is part of.
        flow: The graph of the source.
        ids: The id here of each node, by its id there.
        made: What each node became, by its id there.
        histories: Agents that get the conversation before, with the node that it begins with.
    """

    conversion: Conversion
    flow: Flow
    ids: dict[str, str] = field(default_factory=dict[str, str])
    made: dict[str, Made] = field(default_factory=dict[str, Made])
    histories: list[tuple[Step, Target]] = field(default_factory=list[tuple[Step, Target]])

    def scope(self, step: Step) -> Scope:
        """Return what the expressions of a node see."""
        return Scope(self.flow, step, self.ids)

    def add(self, step: Step, node_type: str, data: Mapping[str, Any] | None = None) -> Target:
        """Add the main node of a step."""
        may_fail = step.kind not in (*LINKED, "chat-start", "webhook-trigger")
        policy = {"onError": "continue"} if step.goes_on and may_fail else None
        return step.node.becomes(
            node_type, data, node_id=self.ids[step.id], name=step.label, policy=policy
        )


_Kind = Callable[[Graph, Step], Made]


def made_of(graph: Graph, step: Step) -> Made:
    """Make the nodes of a step by its type; one that is not known is left to be a placeholder."""
    return KINDS.get(step.kind, _unknown)(graph, step)


def _at(step: Step, name: str) -> str:
    return f"{step.node.pointer}/data/{name}"


def _one_input(target: Target) -> Callable[[str], Plug | None]:
    return lambda handle: Plug(target, "input") if handle == "input" else None


def _unknown(graph: Graph, step: Step) -> Made:
    target = graph.add(step, "placeholder")
    step.node.becomes_placeholder(f"{step.kind or 'a node without a type'} has no counterpart here")
    return Made(target, lambda handle: Plug(target, handle), lambda handle: handle, "output")


def _chat_start(graph: Graph, step: Step) -> Made:
    variables: dict[str, Any] = {}
    for number, variable in objects_in(step.data, "variables"):
        name = text_of(variable, "id")
        if not name:
            continue
        variables[name] = variable.get("default")
        step.node.note(
            "import-changed",
            f"the form of the variable {name!r} is left out; its default stays",
            _at(step, f"variables/{number}"),
        )
    data = {"variables": variables} if variables else {}
    if step.data.get("includeUserTools") is True:
        step.node.lose(
            "the tools that the user has", "includeUserTools", _at(step, "includeUserTools")
        )
    _note_unread(step, {"variables", "includeUserTools"})
    return Made(graph.add(step, "chat_start", data), lambda _: None)


def _webhook_trigger(graph: Graph, step: Step) -> Made:
    data: dict[str, Any] = {"auth": "none"}
    has_secret = bool(step.data.get("secret"))
    if has_secret:
        data = {"auth": "secret", "secrets": [f"{step.id}-secret"]}
        if header := text_of(step.data, "secretHeader"):
            data["secretHeader"] = header
    if schema := object_of(step.data, "schema"):
        data["bodySchema"] = dict(schema)
    if step.data.get("allowSse") is True:
        data["allowSse"] = True
    else:
        step.node.note(
            "import-changed", "senders may not watch the run: the file does not say that they may"
        )
    target = graph.add(step, "webhook", data)
    if has_secret:
        graph.conversion.needs("secret", f"{step.id}-secret", target)
    else:
        step.node.change("it takes requests of anyone, as there: the operator has to allow that")
    _note_unread(step, {"secret", "secretHeader", "schema", "allowSse"})
    return Made(target, lambda _: None)


def _webhook_end(graph: Graph, step: Step) -> Made:
    scope = graph.scope(step)
    status = number_of(step.data, "status")
    data: dict[str, Any] = {}
    if status is not None:
        data["status"] = int(status)
        if not 200 <= status <= 599:
            step.node.lose("a status that no answer has", str(status), _at(step, "status"))
    headers = object_of(step.data, "headers")
    if headers:
        data["headers"] = {key: str(value) for key, value in headers.items()}
        if not all(_is_header(name, str(value)) for name, value in headers.items()):
            step.node.lose(
                "headers that are no plain text", str(dict(headers)), _at(step, "headers")
            )
    target = graph.add(step, "webhook_reply", data)
    into = target
    if scope.shape in ("response", "text") and not scope.may_be_error:
        # The body is the object that the node before gave there.
        into = _helper(step, "body", "transform", {"fields": {scope.shape: "{{ input }}"}})
        new_edge(graph.conversion.graph, into.id, target.id)
    _note_unread(step, {"status", "headers"})
    return Made(target, lambda handle: Plug(into, "input") if handle in ("body", "input") else None)


def _is_header(name: str, value: str) -> bool:
    is_line = re.fullmatch(r"(?:[!-~](?:[ -~]*[!-~])?)?", value) is not None
    return (
        is_line
        and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) is not None
        and literal(value) == value
    )


def _helper(step: Step, name: str, node_type: str, data: Mapping[str, Any]) -> Target:
    return step.node.becomes(
        node_type, data, node_id=f"{step.id}-{name}", name=f"{step.label}: {name}"
    )


_MODEL_FIELDS: Final[Mapping[str, str]] = {"max_tokens": "maxTokens", "temperature": "temperature"}
_UNKNOWN_SETTINGS: Final = (
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "model_options",
)


def _model_data(graph: Graph, step: Step) -> dict[str, Any]:
    """Return the model and its settings."""
    data: dict[str, Any] = {}
    if model := text_of(step.data, "model"):
        data = provider_and_model(model)
        if "{{" in model:
            step.node.lose("a model that an expression names", model, _at(step, "model"))
    temperature, limit = number_of(step.data, "temperature"), number_of(step.data, "max_tokens")
    if temperature is not None:
        data["temperature"] = temperature
        if not 0 <= temperature <= 2:
            step.node.lose(
                "a temperature from 0 to 2 is possible", str(temperature), _at(step, "temperature")
            )
    if limit is not None and limit >= 1:
        data["maxTokens"] = int(limit)
    for name in ("temperature", "max_tokens"):
        if isinstance(value := step.data.get(name), str) and value:
            step.node.lose(f"an expression for its {name}", value, _at(step, name))
    for name in _UNKNOWN_SETTINGS:
        if step.data.get(name):
            step.node.change(f"{name} is left out: planwave has no such setting", _at(step, name))
    return data


def provider_and_model(text: str) -> dict[str, Any]:
    """Return ``{provider, model}`` of ``provider:model``."""
    provider, _, model = text.rpartition(":")
    return {name: value for name, value in (("provider", provider), ("model", model)) if value}


def _agent(graph: Graph, step: Step) -> Made:
    scope = graph.scope(step)
    data = _model_data(graph, step)
    if instructions := text_of(step.data, "instructions"):
        data["systemPrompt"] = scope.text(instructions, _at(step, "instructions"))
    sources = graph.flow.into(step, "input")
    is_chat = bool(sources) and all(wire.source.kind == "chat-start" for wire in sources)
    if sources:
        data["userPrompt"] = message_of(scope, is_chat=is_chat)
    messages = object_of(step.data, "messages")
    data |= _manual_messages(step, messages)
    if not sources and "messages" not in data and not graph.flow.is_linked(step):
        step.node.lose("nothing leads to it, and no agent may call it", "", code="import-dangling")
    target = graph.add(step, "agent", data)
    if text_of(step.data, "name") and text_of(step.data, "name") != step.label:
        target.node["name"] = text_of(step.data, "name")
    if "provider" in data:
        graph.conversion.needs("provider", data["provider"], target)
    if is_chat and messages.get("mode") != "manual" and len(sources) == 1:
        graph.histories.append((sources[0].source, target))
    _note_unread(
        step,
        {
            "model",
            "instructions",
            "messages",
            *_MODEL_FIELDS,
            *_UNKNOWN_SETTINGS,
            "disableModelVariable",
        },
    )
    handles = {
        "input": "input", "model": "model", "tools": "tools", "instructions": "systemPrompt",
        "temperature": "temperature", "max_tokens": "maxTokens",
    }  # fmt: skip
    return Made(
        target,
        lambda handle: Plug(target, handles[handle]) if handle in handles else None,
        link="tools-out",
    )


def _manual_messages(step: Step, messages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conversation before; what depends on the input is lost, but for the usual one."""
    pointer = _at(step, "messages")
    if messages.get("mode") != "manual":
        expression = text_of(messages, "expression")
        if expression not in ("", _HISTORY):
            step.node.lose("an expression for its messages", expression, pointer)
        return {}
    found: list[dict[str, str]] = []
    for entry in list_of(messages, "messages"):
        message = cast("dict[str, Any]", entry) if isinstance(entry, dict) else dict[str, Any]()
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES or not isinstance(content, str) or "{{" in content:
            step.node.lose("a message of another form", str(message), pointer)
            return {}
        found.append({"role": role, "content": content})
    return {"messages": found} if found else {}


def _completion(graph: Graph, step: Step) -> Made:
    scope = graph.scope(step)
    data = _model_data(graph, step)
    prompts, inputs = graph.flow.into(step, "prompt"), graph.flow.into(step, "input")
    target = graph.add(step, "llm", {})
    into = {"input": Plug(target, "input"), "model": Plug(target, "model")}
    into |= {name: Plug(target, field) for name, field in _MODEL_FIELDS.items()}
    pointer = _at(step, "prompt")
    written = text_of(step.data, "prompt")
    if prompts:
        text = _prompt_of(prompts)
        if inputs:
            helper = _helper(step, "prompt", "transform", {"expression": text})
            new_edge(graph.conversion.graph, helper.id, target.id, "output", "prompt")
            into["prompt"] = Plug(helper, "input")
        else:
            data["prompt"], into["prompt"] = text, Plug(target, "input")
    elif inputs:
        is_chat = all(wire.source.kind == "chat-start" for wire in inputs)
        data["prompt"] = message_of(scope, is_chat=is_chat)
    elif written.strip():
        data["prompt"] = scope.text(written, pointer)
    else:
        step.node.lose("no prompt leads to it", "", pointer, code="import-dangling")
    if written and (prompts or inputs):
        step.node.note(
            "import-ignored", "its own prompt is not used, as there: what arrives counts", pointer
        )
    target.node["data"] = data
    if "provider" in data:
        graph.conversion.needs("provider", data["provider"], target)
    _note_unread(step, {"model", "prompt", *_MODEL_FIELDS, *_UNKNOWN_SETTINGS})
    return Made(target, into.get)


def _prompt_of(wires: list[Wire]) -> str:
    """Return the text in what a wire into a prompt brings: a template gives an object."""
    if all(wire.source.kind in ("agent", "llm-completion") for wire in wires):
        return "{{ input }}"
    if all(wire.source.kind == "prompt-template" for wire in wires):
        return "{{ input.text }}"
    return "{{ (input.text if input.text is defined else input) if input is mapping else input }}"


def _prompt_template(graph: Graph, step: Step) -> Made:
    scope = graph.scope(step)
    template, pointer = text_of(step.data, "template") or "{{message}}", _at(step, "template")
    fields: dict[str, Any] = {
        "text": scope.looked_up(template, pointer),
        "template": scope.text(template, pointer),
        "values": "{{ input }}" if scope.shape else {},
    }
    for wire in graph.flow.into(step, "template"):
        step.node.lose("a template that another node gives", wire.source.id, wire.edge.pointer)
    target = graph.add(step, "parser", {"template": fields})
    _note_unread(step, {"template"})
    return Made(target, _one_input(target))


def _conditional(graph: Graph, step: Step) -> Made:
    scope = graph.scope(step)
    operator = text_of(step.data, "operator") or "equals"
    if operator not in _OPERATORS:
        step.node.lose("an operator that planwave lacks", operator, _at(step, "operator"))
    condition: dict[str, Any] = {"operator": operator}
    if path := scope.field_of_input(text_of(step.data, "field")):
        condition["field"] = path
        if literal(path) != path:
            step.node.lose("an expression for its field", path, _at(step, "field"))
    if operator not in ("exists", "notExists", "isEmpty"):
        condition["value"] = scope.value(step.data.get("value"), _at(step, "value"))
    if isinstance(step.data.get("caseSensitive"), bool):
        condition["caseSensitive"] = step.data["caseSensitive"]
    if scope.shape == "mixed":
        step.node.lose("a field of what arrives, which has different forms", path)
    target = graph.add(step, "if", {"conditions": [condition]})
    _note_unread(step, {"field", "operator", "value", "caseSensitive"})
    handles = {"true": "condition-0", "false": "false"}
    return Made(target, _one_input(target), lambda handle: handles.get(handle, handle))


def _merge(graph: Graph, step: Step) -> Made:
    target = graph.add(step, "merge")
    _note_unread(step, set())
    return Made(
        target, lambda handle: Plug(target, "input") if handle.startswith("input") else None
    )


_SOCKETS: Final[Mapping[str, tuple[str, str]]] = {
    "string": ("text", "text"),
    "int": ("number", "value"),
    "float": ("number", "value"),
    "boolean": ("boolean", "value"),
}


def _reroute(graph: Graph, step: Step) -> Made:
    """What arrives goes on; without a wire its own value does, with the type of its socket."""
    value, socket = step.data.get("value"), text_of(step.data, "_socketType")
    node_type, name = _SOCKETS.get(socket, ("json", "value"))
    given: Any = "{{ input }}"
    if not graph.flow.into(step):
        given = graph.scope(step).value(value, _at(step, "value"))
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        fits = {
            "text": isinstance(given, str),
            "number": is_number,
            "boolean": isinstance(given, bool),
        }
        if not fits.get(node_type, True):
            step.node.lose(f"its value is no {socket}", str(value), _at(step, "value"))
    elif node_type == "json":
        node_type, name = "transform", "expression"
    target = graph.add(step, node_type, {name: given})
    _note_unread(step, {"value", "_socketType"})
    is_whole = socket == "int"
    return Made(target, _one_input(target), lambda _: "integer" if is_whole else "output")


def _code(graph: Graph, step: Step) -> Made:
    code = text_of(step.data, "code") or "return $input;"
    expression = graph.scope(step).code(code)
    if expression is None:
        target = graph.add(step, "placeholder")
        step.node.becomes_placeholder(
            "it is a program, which an import never runs",
            hint="write it as a node type, and put that in its place",
        )
    else:
        target = graph.add(step, "transform", {"expression": expression})
    _note_unread(step, {"code"})
    return Made(target, _one_input(target))


def _model_selector(graph: Graph, step: Step) -> Made:
    model = text_of(step.data, "model")
    target = graph.add(step, "model", provider_and_model(model))
    if not model or "{{" in model:
        step.node.lose("a model that the file does not name", model, _at(step, "model"))
    elif provider := provider_and_model(model).get("provider"):
        graph.conversion.needs("provider", provider, target)
    _note_unread(step, {"model"})
    return Made(target, lambda _: None, link="output")


def _mcp_server(graph: Graph, step: Step) -> Made:
    server = text_of(step.data, "server")
    target = graph.add(step, "mcp_server", {"server": server})
    if not server or "{" in server:
        step.node.lose("a server that the file does not name", server, _at(step, "server"))
    else:
        graph.conversion.needs("mcp", server, target)
    _note_unread(step, {"server"})
    return Made(target, lambda _: None, link="tools")


def _toolset(graph: Graph, step: Step) -> Made:
    name = text_of(step.data, "toolset")
    target = graph.add(step, "placeholder")
    step.node.becomes_placeholder(
        f"which tools the toolset {name!r} has is not in the file",
        hint="put a toolset with their names in its place",
    )
    if name:
        graph.conversion.needs("tool", name, target)
    return Made(target, lambda handle: Plug(target, handle), link="tools")


def _note_unread(step: Step, read: set[str]) -> None:
    for name, value in step.data.items():
        is_empty = value is None or value is False or value in ("", [], {})
        if name not in read and name not in _WITHOUT_BEARING and not is_empty:
            step.node.note("import-ignored", f"its field {name} is not read here", _at(step, name))


KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "chat-start": _chat_start,
        "webhook-trigger": _webhook_trigger,
        "webhook-end": _webhook_end,
        "agent": _agent,
        "llm-completion": _completion,
        "prompt-template": _prompt_template,
        "conditional": _conditional,
        "merge": _merge,
        "reroute": _reroute,
        "code": _code,
        "model-selector": _model_selector,
        "mcp-server": _mcp_server,
        "toolset": _toolset,
        "droid-agent": _unknown,
    }
)
"""What makes the nodes of each type."""
