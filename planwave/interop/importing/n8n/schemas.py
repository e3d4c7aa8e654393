"""Schemas of the results that n8n's model steps have: given, shown by an example, or listed as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.json_schemas import usable_schema
from planwave.interop.importing.n8n.workflow import Envelope, Step
from planwave.interop.importing.reading import json_of, object_of, objects_in, text_of

RESULT: Final = "result"
"""The field of a result that is no object there: models reply with an object here."""


class Schema(NamedTuple):
    """The schema of a result.

    Attributes:
        document: A JSON Schema of an object.
        is_wrapped: Whether the result is its field ``result``.
        is_whole: Whether nothing of what n8n has was left out.
    """

    document: dict[str, Any]
    is_wrapped: bool = False
    is_whole: bool = True

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """Where the result is: an output, and a path in it."""
        return "output", (RESULT,) if self.is_wrapped else ()

    def envelope(self, name: str) -> Envelope:
        """Return the form of a step that has its result in a field."""
        return Envelope({(name,): self.place})

    def note(self, step: Step) -> None:
        """Say how the result differs from that of n8n."""
        if self.is_wrapped:
            step.node.change(
                f"its result is no object there: here it is the field {RESULT!r} of one"
            )
        if not self.is_whole:
            step.node.change(
                "parts of its schema are no JSON Schema that is read here, and are left out"
            )


def extracted_schema(step: Step) -> Schema | None:
    """Return the schema of what an information extractor extracts; None if it has none."""
    if (text_of(step.parameters, "schemaType") or "fromAttributes") == "fromAttributes":
        attributes = _of_attributes(object_of(step.parameters, "attributes"))
        return None if attributes is None else Schema(attributes)
    return written_schema(step)


def written_schema(step: Step, default: str = "") -> Schema | None:
    """Return the schema that a step has as JSON, or that of its example; None if there is none."""
    kind = text_of(step.parameters, "schemaType") or default
    kind = kind or ("fromJson" if step.version > 1.1 else "manual")
    name = "jsonSchemaExample" if kind == "fromJson" else "inputSchema"
    written = step.parameters.get(name, step.parameters.get("jsonSchema"))
    if not isinstance(written, str) or written.startswith("="):
        return None
    try:
        value = json_of(written)
    except ValueError:
        return None
    if kind == "fromJson":
        return _of_object(_of_example(value))
    return _of_object(cast("dict[str, Any]", value)) if isinstance(value, dict) else None


def _of_object(written: Mapping[str, Any]) -> Schema:
    document, is_whole = usable_schema(written)
    if document.get("type") == "object":
        return Schema(document, is_whole=is_whole)
    around = {"type": "object", "properties": {RESULT: document}, "required": [RESULT]}
    return Schema(around, is_wrapped=True, is_whole=is_whole)


def _of_example(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        properties = {name: _of_example(each) for name, each in fields.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return {"type": "array", **({"items": _of_example(items[0])} if items else {})}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int | float):
        return {"type": "number"}
    return {"type": "string"} if isinstance(value, str) else {}


def _of_attributes(given: Mapping[str, Any]) -> dict[str, Any] | None:
    properties, required = dict[str, Any](), list[str]()
    for _, each in objects_in(given, "attributes"):
        name, kind = text_of(each, "name"), text_of(each, "type") or "string"
        properties[name] = {
            "type": kind if kind in ("string", "number", "boolean") else "string",
            "description": text_of(each, "description"),
        }
        if each.get("required") is True:
            required.append(name)
    if not properties:
        return None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})
