"""The inputs of a flow as the arguments of a tool: their JSON Schema, and the entry nodes they settle."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol, cast, runtime_checkable

from pydantic import BaseModel

from planwave.errors import GraphInvalid, InputError, ToolError
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Node, Port
from planwave.graph.protocols import InputAdapter, NodeTypes
from planwave.graph.reading.documents import read_graph
from planwave.graph.reading.json_schemas import loosened, target_of, types_of, written_out
from planwave.nodes.subgraphs import Subgraph, prepare

_ONE_INPUT: Final = "input"
"""The argument for the one entry node of a flow that has one output."""
_TYPES: Final = ("string", "number", "boolean", "object", "array", "null")
ANY_VALUE: Final[Mapping[str, Any]] = {"type": list(_TYPES), "items": {}}
"""Any JSON. Without a type, some clients send everything as text."""
_DECLARED: Final = "schema"
"""The data field in which an entry node declares the type of its input."""
_REFERENCE_LEVELS: Final = 2
_JSON_TYPES: Final = {
    "text": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_log = logging.getLogger(__name__)


@runtime_checkable
class DeclaresInput(Protocol):
    """An entry type whose nodes may declare what a run gives them."""

    def input_schema(self, data: Mapping[str, Json]) -> Mapping[str, Any] | None:
        """Return the JSON Schema of the value of ``output``; None where the data declare none."""
        ...


def input_schema(flow: Subgraph, catalogue: NodeTypes) -> dict[str, Any]:
    """Return the JSON Schema of a flow's inputs.

    A flow with one entry node takes ``input``, or an argument for each of its outputs besides
    ``output``; a flow with several takes one for each of these nodes, by id. An input is required
    where the node has no data of its own.
    """
    nodes = [flow.graph.by_id[node_id] for node_id, _ in flow.entries]
    properties: dict[str, Any] = {}
    required: list[str] = []
    if len(nodes) == 1:
        (node,) = nodes
        ports = _named_ports(node, catalogue)
        fields = _fields_of(node, catalogue)
        for port in ports:
            properties[port.name] = _port_schema(port, fields.get(port.name))
        if not ports:
            properties[_ONE_INPUT] = _value_schema(node, catalogue)
        if _is_required(node):
            required = list(properties)[:1]
    else:
        for node in nodes:
            properties[node.id] = _value_schema(node, catalogue)
        required = [node.id for node in nodes if _is_required(node)]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def declared_inputs(document: Mapping[str, Json], catalogue: NodeTypes) -> dict[str, Any] | None:
    """Return the ``input_schema`` of a graph document.

    None where the graph cannot be read, or a node type of somebody's own cannot say what it takes.
    """
    try:
        graph, _ = read_graph({name: document.get(name) for name in ("nodes", "edges")})
    except GraphInvalid:
        return None
    try:
        return input_schema(prepare(graph, catalogue), catalogue)
    except Exception:  # noqa: BLE001 - code of others
        _log.exception("a node type cannot say which inputs it takes")
        return None


def entry_inputs(
    flow: Subgraph, arguments: Mapping[str, Json], catalogue: NodeTypes, *, as_object: bool
) -> dict[str, dict[str, Json]]:
    """Return the values that entry nodes are settled with, ``{node id: {handle: value}}``.

    Args:
        flow: The flow.
        arguments: Arguments that fit ``input_schema``, or any with ``as_object``.
        catalogue: The node types.
        as_object: Whether each entry node gets all arguments as one object.

    Raises:
        ToolError: ``invalid-arguments``: an entry node does not take its values.
    """
    inputs: dict[str, dict[str, Json]] = {}
    for node_id, first in flow.entries:
        node = flow.graph.by_id[node_id]
        if as_object:
            values: dict[str, Json] = {first: dict(arguments)}
        elif len(flow.entries) > 1:
            values = {first: arguments[node_id]} if node_id in arguments else {}
        elif _named_ports(node, catalogue):
            values = dict(arguments)
        else:
            values = {first: arguments[_ONE_INPUT]} if _ONE_INPUT in arguments else {}
        if values:
            _check_values(node, values, catalogue)
            inputs[node_id] = values
    return inputs


def _named_ports(node: Node, catalogue: NodeTypes) -> list[Port]:
    """Return the outputs of an entry node that are parts of its ``output``."""
    facts = catalogue.type_info(node.type)
    ports = () if facts is None else facts.outputs
    return [port for port in ports if port.name != DEFAULT_SOURCE_HANDLE]


def _is_required(node: Node) -> bool:
    """Return whether an entry node has nothing to give by itself; what it declares is nothing."""
    return not node.data.keys() - {_DECLARED}


def _value_schema(node: Node, catalogue: NodeTypes) -> dict[str, Any]:
    """Return the schema of the one value of an entry node: as it declares it, or of its output."""
    implementation = catalogue.implementation(node.type)
    declared = None
    if isinstance(implementation, DeclaresInput):
        declared = implementation.input_schema(node.data)
    if declared is None:
        facts = catalogue.type_info(node.type)
        ports = () if facts is None else facts.outputs
        own = next((port for port in ports if port.name == DEFAULT_SOURCE_HANDLE), Port(""))
        kind = _JSON_TYPES.get(own.type)
        schema: dict[str, Any] = dict(ANY_VALUE) if kind is None else {"type": kind}
    else:
        schema = loosened(written_out(declared, _REFERENCE_LEVELS))
        if not ({"type", "anyOf", "oneOf", "allOf", "enum", "const"} & schema.keys()):
            schema = {**ANY_VALUE, **schema}
    description = schema.get("description") or node.description or node.name
    return {**schema, "description": description} if description else schema


def _port_schema(port: Port, data_field: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of one output among several, whose values the data field of its name has."""
    kind = _JSON_TYPES.get(port.type)
    if kind is not None:
        return {"type": kind}
    return dict(data_field or ANY_VALUE)


def _fields_of(node: Node, catalogue: NodeTypes) -> Mapping[str, Mapping[str, Any]]:
    """Return the types of a node's data fields as JSON Schemas, by name."""
    model: Any = getattr(catalogue.implementation(node.type), "Data", None)
    is_model = isinstance(model, type) and issubclass(cast("type[Any]", model), BaseModel)
    return _types_of_fields(cast("type[BaseModel]", model)) if is_model else {}


@lru_cache(maxsize=64)
def _types_of_fields(model: type[BaseModel]) -> Mapping[str, Mapping[str, Any]]:
    whole = model.model_json_schema(by_alias=True)
    return {
        name: {**_outline(field, whole), "description": field.get("description", name)}
        for name, field in whole.get("properties", {}).items()
    }


def _outline(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of a schema, and those of its items."""
    kinds = _kinds(schema, whole)
    named: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else [*kinds]}
    items = schema.get("items")
    if "array" in kinds:
        inner = cast("dict[str, Any]", items) if isinstance(items, dict) else {}
        item_kinds = _kinds(inner, whole)
        is_any = len(item_kinds) == len(_TYPES)
        named["items"] = {} if is_any else {"type": [*item_kinds]}
    return named


def _kinds(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[str, ...]:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = target_of(reference, whole)
        schema = cast("dict[str, Any]", target) if isinstance(target, dict) else {}
    choices = schema.get("anyOf", schema.get("oneOf", ()))
    kinds = [*types_of(schema), *(kind for each in choices for kind in _kinds(each, whole))]
    return tuple(dict.fromkeys(kinds)) or _TYPES


def _check_values(node: Node, values: dict[str, Json], catalogue: NodeTypes) -> None:
    """Refuse values that the type does not take; the run of the flow completes them."""
    implementation = catalogue.implementation(node.type)
    if not isinstance(implementation, InputAdapter):
        return
    try:
        implementation.adapt_inputs(values)
    except InputError as error:
        raise ToolError(error.message, code="invalid-arguments", hint=error.hint) from error
