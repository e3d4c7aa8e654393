"""Kinds of steps of magic_agents, and the nodes that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.magic_agents import models
from planwave.interop.importing.magic_agents.fields import (
    literal_field,
    note_unread,
)
from planwave.interop.importing.magic_agents.flow import Step
from planwave.interop.importing.magic_agents.graphs import Graph, Made, Plug, simple
from planwave.interop.importing.magic_agents.inner import inner
from planwave.interop.importing.magic_agents.rendered import (
    Names,
    parser_names,
    single_input,
    translated_field,
)
from planwave.interop.importing.magic_agents.requests import fetch
from planwave.interop.importing.reading import list_of, text_of
from planwave.interop.importing.templates import literal, quoted

_Kind = Callable[[Graph, Step], Made]
_USER_OUTPUTS: Final[Mapping[str, str]] = {
    "handle_user_message": "message",
    "handle_user_files": "files",
    "handle_user_images": "images",
    "handle_client_extras": "extras",
}


def made_of(graph: Graph, step: Step) -> Made:
    """Make the nodes of a step by its kind; one that is not known is left to be a placeholder."""
    make = KINDS.get(step.kind, _unknown)
    made = make(graph, step)
    _note_default_outputs(graph, step)
    return made


def _note_default_outputs(graph: Graph, step: Step) -> None:
    """Say of wires that leave by a handle that the current version does not know, what they carry here."""
    known = _OUTPUTS.get(step.kind)
    if known is None or graph.flow.is_legacy:
        return
    for wire in graph.wires_out(step):
        if wire.out and wire.out not in known:
            wire.edge.note(
                "import-changed",
                f"{step.kind} has no output {wire.out}: there its target waited, here it gets the output",
            )


_OUTPUTS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("handle_text_output",),
    "constant": ("handle_constant_output",),
    "parser": ("handle_parser_output",),
    "fetch": ("handle_fetch_output", "handle-tool-definition"),
    "client": ("handle-client-provider",),
    "llm": ("handle_streaming_content", "handle_generated_content"),
    "chat": ("handle_chat_output",),
    "send_message": ("handle_message_output",),
    "loop": ("handle_item", "handle_end"),
    "end": ("handle_end_output",),
    "user_input": (*_USER_OUTPUTS,),
}


def _unknown(graph: Graph, step: Step) -> Made:
    target = step.node.becomes("placeholder", node_id=step.id, graph=graph.draft)
    step.node.becomes_placeholder(f"{step.kind or 'a step without a type'} has no counterpart here")
    return Made(
        lambda handle: Plug(target, handle or "input", is_open=True),
        lambda handle: Plug(target, handle or "output", is_open=True),
    )


def _program(graph: Graph, step: Step) -> Made:
    made = _unknown(graph, step)
    step.node.notes[-1]["message"] = f"{step.kind} holds a program, which an import never runs"
    step.node.notes[-1]["hint"] = "write it as a node type or a tool, and put that in its place"
    return made


def _user_input(graph: Graph, step: Step) -> Made:
    message = next(
        (text for name in ("text", "content", "message") if (text := text_of(step.data, name))), ""
    )
    data = {"message": literal(message)} if message else {}
    for field in ("files", "images", "extras", "template"):
        if step.data.get(field):
            step.node.lose(
                f"{field} of its own", str(step.data[field]), f"{step.node.pointer}/data/{field}"
            )
    target = step.node.becomes("user_input", data, node_id=step.id, graph=graph.draft)
    note_unread(step, {"text", "content", "message", "files", "images", "extras", "template"})
    return Made(lambda _: None, lambda handle: Plug(target, _USER_OUTPUTS.get(handle, "message")))


def _text(graph: Graph, step: Step) -> Made:
    text = literal_field(step, "text", "content")
    target = step.node.becomes("text", {"text": text}, node_id=step.id, graph=graph.draft)
    note_unread(step, {"text", "content"})
    return simple(target)


def _constant(graph: Graph, step: Step) -> Made:
    kind, value = text_of(step.data, "value_type") or "str", step.data.get("value")
    node_type = _CONSTANTS.get(kind, "text")
    given = _number(value, kind) if node_type == "number" else value
    if node_type == "boolean":
        given = value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes")
    if node_type == "text":
        given = literal_field(step, "value")
    if given is None:
        step.node.lose(f"its value is no {kind}", str(value), f"{step.node.pointer}/data/value")
    data = {"text" if node_type == "text" else "value": given}
    target = step.node.becomes(node_type, data, node_id=step.id, graph=graph.draft)
    note_unread(step, {"value_type", "value"})
    return simple(target)


_CONSTANTS: Final = {
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "str": "text",
}


def _number(value: Any, kind: str) -> int | float | None:
    try:
        number = float(value)
        return int(number) if kind == "int" else number
    except (TypeError, ValueError, OverflowError):
        return None


def _parser(graph: Graph, step: Step) -> Made:
    names = parser_names(graph, step)
    text = translated_field(step, ("text", "content", "template"), names.variable)
    target = step.node.becomes("parser", {"template": text}, node_id=step.id, graph=graph.draft)
    note_unread(step, {"text", "content", "template"})
    return Made(lambda handle: Plug(target, names.port(handle)), lambda _: Plug(target, "output"))


def _send_message(graph: Graph, step: Step) -> Made:
    """The visible text is ``json_extras``; what arrives goes with it as extras."""
    shown = literal_field(step, "json_extras", "extras")
    message = text_of(step.data, "message") or text_of(step.data, "content")
    if message:
        step.node.change(
            "the text that people see is json_extras, as there; its message is shown nowhere",
            f"{step.node.pointer}/data/message",
        )
    data = {"message": shown}
    into = single_input(graph, step, "handle_send_extra")
    if into.is_fed:
        data["extras"] = '{{ input | fromjson({"text": input}) }}'
    target = step.node.becomes("send_message", data, node_id=step.id, graph=graph.draft)
    for wire in graph.wires_out(step):
        if wire.target.kind not in ("end", "void"):
            wire.edge.note(
                "import-changed", "what it passes on is its input, not the message as a chunk"
            )
    note_unread(step, {"json_extras", "extras", "message", "content"})
    return into.made(target)


def _conditional(graph: Graph, step: Step) -> Made:
    """The branch gets all that arrived, as one object, which a parser makes."""
    names = parser_names(graph, step)
    is_flat = (text_of(step.data, "merge_strategy") or "flat") != "namespaced"
    merged = step.node.becomes(
        "parser",
        {"template": f"{{{{ {_merged(names, is_flat)} }}}}"},
        node_id=f"{step.id}-inputs",
        name=f"{step.id}: inputs",
        graph=graph.draft,
    )
    condition = translated_field(step, ("condition",), names.field)
    if graph.flow.is_legacy and "value" in text_of(step.data, "condition"):
        step.node.change(
            "value is its input here; there nothing had this name, so that it was empty"
        )
    handles = _branches(graph, step)
    data: dict[str, Any] = {"condition": condition, "outputHandles": handles}
    if default := text_of(step.data, "default_handle"):
        data["defaultHandle"] = default
        step.node.note(
            "import-changed",
            "any name that is no branch goes to the default, there only an empty one",
        )
    target = step.node.becomes("conditional", data, node_id=step.id, graph=graph.draft)
    graph.join(merged, target)
    note_unread(step, {"condition", "merge_strategy", "output_handles", "default_handle"})
    return Made(
        lambda handle: Plug(merged, names.port(handle)),
        lambda handle: Plug(target, handle or (handles[0] if handles else "true")),
    )


def _branches(graph: Graph, step: Step) -> list[str]:
    listed = [each for each in list_of(step.data, "output_handles") if isinstance(each, str)]
    leaving = [wire.out for wire in graph.wires_out(step)]
    default = text_of(step.data, "default_handle")
    names = list(dict.fromkeys(each for each in (*listed, *leaving, default) if each))
    wrong = [each for each in names if each != each.strip() or "{" in each or each == "error"]
    if wrong or len(names) > 100:
        step.node.lose("a branch cannot have this name", ", ".join(wrong) or str(len(names)))
    return names


def _merged(names: Names, is_flat: bool) -> str:
    """Return the object of all inputs; with ``flat`` objects are put into it with their own fields."""
    merged = ""
    for handle in names.handles:
        value = names.read_json(handle)
        key = quoted(handle)
        own = f"{{{key}: {value}}}"
        if is_flat:
            own = f"{value} if {value} is mapping else {own}"
        if is_flat and handle == "handle_input":
            own = f"dict(({own}), value={value})"
        if names.is_optional(handle):
            own = f"({own}) if {names.port(handle)} is defined else {{}}"
        merged = f"dict({merged}, **({own}))" if merged else own
    return merged or "{}"


def _end(graph: Graph, step: Step) -> Made:
    kind = "void" if graph.is_body else "end"
    target = step.node.becomes(kind, node_id=step.id, graph=graph.draft)
    if graph.is_body:
        step.node.change("it ends inside a loop, whose result is what leads back to it")
    note_unread(step, {"end"})
    return simple(target)


def _void(graph: Graph, step: Step) -> Made:
    target = step.node.becomes("void", node_id=step.id, graph=graph.draft)
    if not graph.wires_into(step):
        step.node.note("import-ignored", "nothing leads to it")
    note_unread(step, set())
    return simple(target)


KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "user_input": _user_input,
        "text": _text,
        "constant": _constant,
        "parser": _parser,
        "fetch": fetch,
        "client": models.client,
        "llm": models.llm,
        "chat": models.chat,
        "send_message": _send_message,
        "conditional": _conditional,
        "inner": inner,
        "mcp": models.mcp,
        "end": _end,
        "void": _void,
        "python_exec": _program,
        "hook": _program,
    }
)
"""What makes the nodes of each kind; a loop is made with its body."""
