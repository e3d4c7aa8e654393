"""The start step: the inputs of a workflow, or the message of a chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import Read, ValueKind
from planwave.interop.importing.reading import json_of, list_of, number_of, objects_in, text_of
from planwave.interop.importing.templates import json_expression, output_of, path

_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "text-input": {"type": "string"},
    "paragraph": {"type": "string"},
    "select": {"type": "string"},
    "number": {"type": "number"},
    "checkbox": {"type": "boolean"},
    "json": {"type": "object"},
    "json_object": {"type": "object"},
    "file": {"type": "object"},
    "file-list": {"type": "array"},
}
_FILES: Final = frozenset({"file", "file-list"})
_KINDS: Final[Mapping[str, ValueKind]] = {"string": "text", "array": "list"}
_OF_CHAT: Final[Mapping[str, tuple[str, ValueKind]]] = {
    "query": ("message", "text"),
    "files": ("files", "list"),
    "images": ("images", "list"),
    "conversation_id": ("chatId", "text"),
}
"""What ``sys`` has in a chat, and the output of a ``chat_start`` that has it."""


class Variable(NamedTuple):
    """An input of the app.

    Attributes:
        name: Its name.
        schema: What it has to be.
        default: What it is where a run does not bring it.
        is_required: Whether a run has to bring it.
    """

    name: str
    schema: Mapping[str, Any]
    default: Any
    is_required: bool


def start(step: Step) -> None:
    """Become a ``start`` with an object of variables, or a ``chat_start``."""
    variables = [
        variable
        for number, fields in objects_in(step.data, "variables")
        if (variable := read_variable(step, fields, f"/variables/{number}")) is not None
    ]
    defaults = {each.name: each.default for each in variables if not each.is_required}
    if step.app.is_chat:
        main = step.becomes("chat_start", {"variables": defaults} if defaults else {})
        for name, (handle, kind) in _OF_CHAT.items():
            step.outputs[f"sys.{name}"] = Read(output_of(main.id, handle), kind=kind)
        root = output_of(main.id, "variables")
    else:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {each.name: dict(each.schema) for each in variables},
        }
        if required := [each.name for each in variables if each.is_required]:
            schema["required"] = required
        main = step.becomes("start", {"initialInput": defaults, "schema": schema})
        root = output_of(main.id)
    for each in variables:
        value = path(root, [each.name])
        if not each.is_required:
            value = f"{value} | default({json_expression(each.default) or 'none'})"
        kind: ValueKind = _KINDS.get(str(each.schema.get("type")), "any")
        step.outputs[each.name] = Read(value, kind=kind)


def read_variable(step: Step, fields: Mapping[str, Any], pointer: str) -> Variable | None:
    """Return an input of the app; None, and it is noted, where it has no name."""
    name, kind = text_of(fields, "variable"), text_of(fields, "type")
    if not name:
        step.node.change("an input without a name is left out", f"{step.pointer}{pointer}")
        return None
    schema: dict[str, Any] = dict(_SCHEMAS.get(kind, {}))
    if kind not in _SCHEMAS or kind in _FILES:
        step.node.change(
            f"the input {name!r} ({kind}) is plain JSON here", f"{step.pointer}{pointer}"
        )
    label = text_of(fields, "label")
    if label and label != name:
        schema["title"] = label
    options = [each for each in list_of(fields, "options") if isinstance(each, str)]
    if kind == "select" and options:
        schema["enum"] = list(dict.fromkeys(options))
    default = _default(fields, kind)
    has_default = fields.get("default") not in (None, "", [])
    is_required = fields.get("required") is True and not has_default
    longest = number_of(fields, "max_length")
    if schema.get("type") == "string" and "enum" not in schema and longest and longest > 0:
        schema["maxLength"] = int(longest)
    return Variable(name, schema, default, is_required)


def _default(fields: Mapping[str, Any], kind: str) -> Any:
    value = fields.get("default")
    match kind:
        case "text-input" | "paragraph" | "select":
            return text_of(fields, "default")
        case "number":
            return _number(value)
        case "checkbox":
            return value is True or str(value).lower() == "true"
        case "file-list":
            return []
        case _:
            return None


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
