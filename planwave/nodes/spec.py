"""What the registry keeps of a type: its facts, worked out once when it is registered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel

from planwave.graph.capabilities import FlowExecutor, LinkMaterializer, NodeFacts
from planwave.graph.model import LINK, Json, Port
from planwave.nodes.node_type import INPUT, OUTPUT, NodeType
from planwave.nodes.sockets import DataField, fields_of, sockets_of, with_field_ports

_TEMPLATE: Final = {"type": "string", "pattern": r"\{[{%]"}
_ABOUT: Final = ("title", "description", "default", "template", "planned")
"""What a schema says of a field, not of its value."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class TypeSpec(NamedTuple):
    """One registered type.

    ``sockets`` are the data fields that wires may feed. ``is_checked`` is False where no node of the
    type can be at fault, ``is_checked_empty`` where none without data can, so that checking those
    costs nothing. ``example`` is a small graph document that can be run, {} without one.
    """

    facts: NodeFacts
    implementation: Any
    model: type[BaseModel] | None
    fields: tuple[DataField, ...]
    sockets: frozenset[str]
    calls_model: bool
    is_checked: bool
    is_checked_empty: bool
    example: Mapping[str, Json]


def spec_of(implementation: Any) -> TypeSpec:
    """Read a type's declaration.

    Args:
        implementation: A ``NodeType`` or any object with ``node_type`` and a capability; all else
            (``purpose``, ``Data``, ``inputs``, ``outputs``, ``entry``, ``effect``,
            ``template_fields``, ``calls_model``, ``chooses``, ``version``, ``reads_goal``,
            ``example``) is optional.

    Raises:
        TypeError: No usable name, or neither ``execute`` nor ``materialize``.
    """
    executes = isinstance(implementation, FlowExecutor)
    materializes = isinstance(implementation, LinkMaterializer)
    name = _vetted_name(implementation, capable=executes or materializes)
    model = getattr(implementation, "Data", None)
    fields = fields_of(model)
    inputs: tuple[Port, ...] = tuple(getattr(implementation, "inputs", (INPUT,)))
    side = fields if getattr(implementation, "field_sockets", False) else ()
    facts = NodeFacts(
        node_type=name,
        purpose=str(getattr(implementation, "purpose", "")),
        inputs=with_field_ports(inputs, side),
        outputs=tuple(getattr(implementation, "outputs", (OUTPUT,))),
        entry=bool(getattr(implementation, "entry", False)),
        executes=executes,
        materializes=materializes,
        effect=getattr(implementation, "effect", "none"),
        template_fields=_template_fields(implementation, fields),
        chooses=bool(getattr(implementation, "chooses", False)),
        version=int(getattr(implementation, "version", 1)),
        reads_goal=bool(getattr(implementation, "reads_goal", False)),
        graph_fields=tuple(field.wire for field in fields if field.marks.get("graph")),
    )
    calls_model = bool(getattr(implementation, "calls_model", False))
    is_checked_empty = (
        calls_model or _finds_faults(implementation) or any(field.required for field in fields)
    )
    return TypeSpec(
        facts=facts,
        implementation=implementation,
        model=model,
        fields=fields,
        sockets=frozenset(field.wire for field in sockets_of(side, inputs, LINK)),
        calls_model=calls_model,
        is_checked=is_checked_empty or model is not None or facts.template_fields != (),
        is_checked_empty=is_checked_empty,
        example=getattr(implementation, "example", {}),
    )


def _vetted_name(implementation: Any, *, capable: bool) -> str:
    name = getattr(implementation, "node_type", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TypeError(
            f"{implementation!r} cannot be a node type: its node_type is {name!r}; a name starts "
            "with a letter and has letters, digits, '_', '.' and '-', 64 at most"
        )
    if not capable:
        raise TypeError(f"node type {name!r} has neither execute nor materialize")
    return name


def _template_fields(implementation: Any, fields: tuple[DataField, ...]) -> tuple[str, ...] | None:
    missing: Any = object()
    declared = getattr(implementation, "template_fields", missing)
    if declared is missing:
        return tuple(field.wire for field in fields if field.template)
    return None if declared is None else tuple(declared)


def _finds_faults(implementation: Any) -> bool:
    kind = cast("Any", type(implementation))
    found = getattr(kind, "find_faults", None)
    return found is not None and found is not NodeType.find_faults


def described(spec: TypeSpec) -> dict[str, Any]:
    """Give a type as JSON, for editors: its facts, the schema of its data, and its example."""
    facts = spec.facts._asdict()
    del facts["graph_fields"]  # the schema marks them
    return {
        **facts,
        "inputs": [port._asdict() for port in spec.facts.inputs],
        "outputs": [port._asdict() for port in spec.facts.outputs],
        "template_fields": None
        if spec.facts.template_fields is None
        else list(spec.facts.template_fields),
        "schema": schema_of(spec),
        "example": spec.example,
    }


def schema_of(spec: TypeSpec) -> dict[str, Any]:
    """Give the JSON Schema of a type's ``data``; any object where it declares no model.

    Where a field with templates wants no text, a template may stand all the same. A property with
    ``sameAs`` is another name of the one it tells.
    """
    if spec.model is None:
        return {"type": "object"}
    schema = spec.model.model_json_schema()
    fields: dict[str, Any] = schema.get("properties", {})
    for field in spec.fields:
        if field.template and field.socket not in ("text", "any"):
            typed = fields[field.wire]
            kept = {name: typed.pop(name) for name in _ABOUT if name in typed}
            fields[field.wire] = {"anyOf": [*typed.get("anyOf", [typed]), _TEMPLATE], **kept}
        for name in field.others:
            fields[name] = {**fields[field.wire], "sameAs": field.wire}
    return schema
